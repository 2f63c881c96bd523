"""Endpoints of known calls that this service does not support; their error explains why."""

from typing import Final

from waypost.api.auth.authorisation import authorise_app, authorise_partner
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.errors import ApiError, ErrorCode

_APP: Final = "/partner/app/{app_id}"

# fmt: off
UNSUPPORTED_CALLS: Final = {  # Source: facts 2, 13; decision 0025
    "POST /partner/account/api/wallet/balance/transfer": "This service has no money in it: nobody is charged, so there is nothing to transfer.",
    f"GET {_APP}/onboarding/embed/link":                 "This service has no onboarding: the administrator connects numbers with `waypost app connect`.",
}
# fmt: on


async def reject_partner_call(services: Services, request: Request) -> ApiResponse:
    """Reject an unsupported call on a partner's account, once the caller is authorised."""
    await authorise_partner(services, request)
    raise ApiError(ErrorCode.NO_MEANING, UNSUPPORTED_CALLS[request.route])


async def onboarding_link(services: Services, request: Request) -> ApiResponse:
    """Reject a call for the onboarding link; without a query with the documented text.

    Source: facts 2, `onboarding/embed/link`.
    """
    await authorise_app(services, request)
    if not any(request.query(name) for name in ("regenerate", "user", "lang")):
        raise ApiError(ErrorCode.QUERY_EMPTY, "regenerate, user and lang are all missing.")
    raise ApiError(ErrorCode.NO_MEANING, UNSUPPORTED_CALLS[request.route])


async def enable_mm_lite(services: Services, request: Request) -> ApiResponse:
    """Reject enabling MM Lite, for which no number is set up here. Source: facts 9.3, 11."""
    await authorise_app(services, request)
    raise ApiError(ErrorCode.MM_LITE_OFF, "Nothing here sends through MM Lite; send as usual.")
