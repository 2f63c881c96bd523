"""Endpoints of known calls that this service does not support; their error explains why."""

from typing import Final

from waypost.api.auth.authorisation import authorise_app, authorise_partner
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.errors import ApiError, ErrorCode

_NO_MONEY: Final = "This service has no money in it: nobody is charged"
_NO_MIGRATION: Final = (
    "Numbers are connected by the administrator of this service: there is no contract to move them between."
)
_NO_EMBED: Final = (
    "Business accounts here belong to their business already: there is nothing to move to an embedded signup."
)
_NO_PORTAL: Final = "The people of this service are managed in its console and by its administrator, not by this call."
_NO_VERIFICATION: Final = "Businesses are verified by the operator: this service sends it no documents."
_NO_REQUESTS: Final = (
    "Every app of this service belongs to its partner from its creation, so there is no request to link one."
)

# fmt: off
UNSUPPORTED_CALLS: Final = {  # Source: facts 2, 13; ledger 1.2, 1.3, 1.5, 1.9, 1.11; decision 0025
    "POST /partner/account/api/wallet/balance/transfer":                    f"{_NO_MONEY}, so there is nothing to transfer.",
    "GET /partner/app/{app_id}/subscription/billing/monthly":               f"{_NO_MONEY}, so there is no monthly bill.",
    "PUT /partner/app/{app_id}/update/solution/provider":                   f"{_NO_MONEY}, so there is no provider who charges for the app.",
    "POST /partner/app/{app_id}/onboarding/contact/email/resend":           "This service sends no mail: the contact's address is stored and shown, and needs no verification.",
    "POST /partner/app/{app_id}/onboarding/phoneMigration":                 _NO_MIGRATION,
    "POST /partner/solution/migrate/intent":                                _NO_MIGRATION,
    "GET /partner/solution/migrate/intent/status":                          _NO_MIGRATION,
    "POST /partner/app/{app_id}/obotoembed/whitelist":                      _NO_EMBED,
    "GET /partner/app/{app_id}/obotoembed/verify":                          _NO_EMBED,
    "GET /partner/app/{app_id}/template/{template_id}/ads":                 "This service has no advertising product: a template has no advertisement.",
    "POST /partner/admin/bspsignal/{business_id}":                          _NO_VERIFICATION,
    "GET /partner/admin/bspsignal/{business_id}/whatsapp_business_submissions_status": _NO_VERIFICATION,
    "PUT /partner/users/{user_id}/active":                                  _NO_PORTAL,
    "DELETE /partner/users/{user_id}":                                      _NO_PORTAL,
    "GET /partner/users/communications":                                    _NO_PORTAL,
    "POST /partner/{partner_id}/app-link/partner-link-token":               _NO_REQUESTS,
    "POST /partner/{partner_id}/app-link/status":                           _NO_REQUESTS,
}
# fmt: on


async def reject_app_call(services: Services, request: Request) -> ApiResponse:
    """Reject an unsupported call on an app, once the caller is authorised."""
    await authorise_app(services, request)
    raise ApiError(ErrorCode.NO_MEANING, UNSUPPORTED_CALLS[request.route])


async def reject_partner_call(services: Services, request: Request) -> ApiResponse:
    """Reject an unsupported call on a partner's account, once the caller is authorised."""
    await authorise_partner(services, request)
    raise ApiError(ErrorCode.NO_MEANING, UNSUPPORTED_CALLS[request.route])
