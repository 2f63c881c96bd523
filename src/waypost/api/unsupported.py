"""Endpoints of known calls that this service does not support; their error explains why."""

from typing import Final

from waypost.api.auth.authorisation import authorise_partner
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.errors import ApiError, ErrorCode

# fmt: off
UNSUPPORTED_CALLS: Final = {  # Source: facts 2, 13; decision 0025
    "POST /partner/account/api/wallet/balance/transfer": "This service has no money in it: nobody is charged, so there is nothing to transfer.",
}
# fmt: on


async def reject_partner_call(services: Services, request: Request) -> ApiResponse:
    """Reject an unsupported call on a partner's account, once the caller is authorised."""
    await authorise_partner(services, request)
    raise ApiError(ErrorCode.NO_MEANING, UNSUPPORTED_CALLS[request.route])
