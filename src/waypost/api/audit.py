"""The audit log's entries for calls of the partner API that change an account."""

from typing import Final

from waypost.api.auth.authorisation import find_partner
from waypost.api.http.proxies import rate_limit_address
from waypost.api.http.requests import UNCOUNTED, ApiResponse, Request
from waypost.api.route import Endpoint, RouteRow
from waypost.api.services import Services
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.accounts.partners import partner_by_id

AUDITED_ROUTES: Final = frozenset(  # names of routes; each takes a partner token, deletion an app token too
    {
        "POST /partner/app",
        "PUT /partner/app/{app_id}",
        "DELETE /partner/app/{app_id}",
        "POST /partner/account/api/appLink",
        "POST /partner/{partner_id}/auth/token",
        "POST /partner/{partner_id}/auth/revoke",
        "POST /partner/{partner_id}/app-link/app-token",
        "POST /partner/app/{app_id}/token",
        "POST /partner/app/{app_id}/token/revoke",
        "POST /partner/app/{app_id}/apikey",
        "POST /partner/app/{app_id}/apikey/revoke",
        "DELETE /partner/app/{app_id}/apikey/{key_id}",
    }
)


def audited_endpoint(row: RouteRow) -> Endpoint:
    """Return a row's endpoint; if the route is audited, wrapped so that it writes an entry before it returns."""
    if row.name not in AUDITED_ROUTES:
        return row.endpoint

    async def endpoint(services: Services, request: Request) -> ApiResponse:
        # Before the call, because it may delete the credential. Log and metrics have the errors without an entry.
        partner_id = await find_partner(services, request)
        try:
            response = await row.endpoint(services, request)
        except ApiError as error:
            if partner_id is not None and error.code is not ErrorCode.TOO_MANY_REQUESTS:  # their number is unbounded
                await _record(services, request, row, partner_id, 400, error.code.value)
            raise
        partner_id = partner_id or request.partner_id  # a call without a token names its partner itself
        if partner_id is not None:
            await _record(services, request, row, partner_id, response.status, "")
        return response

    return endpoint


async def _record(
    services: Services, request: Request, row: RouteRow, partner_id: int, status: int, detail: str
) -> None:
    if UNCOUNTED in request.scope:  # the console's own call: its page has an entry
        return
    partner = await services.database.read(partner_by_id, partner_id)
    await services.audit.record(
        actor="" if partner is None else partner.email,
        remote_address=rate_limit_address(services.proxies.client_address(request.scope)),
        action=row.name,
        status=status,
        partner_id=partner_id,
        subject=request.path,
        detail=detail,
    )
