"""Known calls that this service does not support; their error explains why."""

from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct, defstruct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field, keep_text
from waypost.api.operation import APP, AppCall, Operations, PartnerCall
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.responses import success

_SIGNAL: Final = "/partner/admin/bspsignal/{business_id}"
_NO_MONEY: Final = "This service has no money in it: nobody is charged"
_NO_MIGRATION: Final = (
    "Numbers are connected by the administrator of this service: there is no contract to move them between."
)
_NO_EMBED: Final = (
    "Business accounts here belong to their business already: there is nothing to move to an embedded signup."
)
_NO_PORTAL: Final = "The people of this service are managed in its console and by its administrator, not by this call."
_NO_VERIFICATION: Final = "Businesses are verified by the operator: this service sends it no documents."

operation = Operations("ledger 1.3; decision 0025", Credential.PARTNER_TOKEN, at_operator=False)
_explanations: Final[dict[str, str]] = {}


async def reject_app_call(call: AppCall) -> None:
    """Reject an unsupported call on an app, once the caller is authorised."""
    raise ApiError(ErrorCode.NO_MEANING, _explanations[call.request.route])


async def reject_partner_call(call: PartnerCall) -> None:
    """Reject an unsupported call on a partner's account, once the caller is authorised."""
    raise ApiError(ErrorCode.NO_MEANING, _explanations[call.request.route])


def _reject(method: str, path: str, explanation: str, source: str = "", **declared: Any) -> None:
    """Declare an unsupported call; `declared` is what its declaration has besides."""
    _explanations[f"{method} {path}"] = explanation
    declare = operation(
        method,
        path,
        None,
        status=400,
        source=source and f"{source}; decision 0025",
        errors=(ErrorCode.NO_MEANING,),
        **declared,
    )
    declare(reject_app_call if path.startswith(APP) else reject_partner_call)


def _unread(name: str, *members: tuple[str, type, str, str]) -> type[Struct]:
    """Return a struct of fields that nothing reads: name, type, meaning, example."""
    return defstruct(
        name,
        [
            (member, Annotated[type_, Field(meaning, example, read=keep_text)], None)
            for member, type_, meaning, example in members
        ],
    )


_by_app_token: Final = partial(_reject, credential=Credential.APP_TOKEN)
_UNAUTHORIZED: Final = ErrorCode.UNAUTHORIZED_ACCESS
_NO_TRANSFER: Final = "For a transfer that this service does not support."
_NO_MIGRATION_HERE: Final = "Accepted; there is no migration here."

# Source: facts 2, 13; ledger 1.2, 1.3, 1.5, 1.9, 1.11; decision 0025
_reject(
    "POST",
    "/partner/solution/migrate/intent",
    _NO_MIGRATION,
    wrong_credential=_UNAUTHORIZED,
    body=_unread("Intent", ("email", str, _NO_MIGRATION_HERE, ""), ("app_list", str, _NO_MIGRATION_HERE, "")),
)
_reject("POST", _SIGNAL, _NO_VERIFICATION)
_reject("GET", f"{_SIGNAL}/whatsapp_business_submissions_status", _NO_VERIFICATION)
_by_app_token(
    "PUT",
    f"{APP}/update/solution/provider",
    f"{_NO_MONEY}, so there is no provider who charges for the app.",
    "ledger 1.2",
    body=_unread("Provider", ("provider", str, "Accepted; there are no providers here.", "GUPSHUP")),
)
_by_app_token("GET", f"{APP}/subscription/billing/monthly", f"{_NO_MONEY}, so there is no monthly bill.", "ledger 1.9")
_reject("PUT", "/partner/users/{user_id}/active", _NO_PORTAL, "ledger 1.9")
_reject("DELETE", "/partner/users/{user_id}", _NO_PORTAL, "ledger 1.9")
_reject("GET", "/partner/users/communications", _NO_PORTAL, "ledger 1.9")
_reject(
    "POST",
    "/partner/account/api/wallet/balance/transfer",
    f"{_NO_MONEY}, so there is nothing to transfer.",
    "facts 13",
    body=_unread("Transfer", *((name, str, _NO_TRANSFER, "") for name in ("walletName", "customerId", "amount"))),
)


_embed_operation = partial(
    operation,
    returns=None,
    status=400,
    credential=Credential.APP_TOKEN,
    rate="app_token",
    errors=(ErrorCode.NO_MEANING,),
)


@_embed_operation("POST", f"{APP}/obotoembed/whitelist")
async def reject_whitelisting(call: AppCall) -> None:
    """Reject the move of a business account that no partner owns on behalf of its business, with the documented text."""
    raise ApiError(ErrorCode.NO_MEANING, _NO_EMBED, text="Error while whitelisting WABA.")


@_embed_operation("GET", f"{APP}/obotoembed/verify")
async def reject_credit_line(call: AppCall) -> None:
    """Reject the check of such a move, with the documented text: there was none that needs a credit line."""
    text = f"Unable to add credit line for WABA id {call.app.business_account_id}"
    raise ApiError(ErrorCode.NO_MEANING, _NO_EMBED, text=text)


@operation(
    "GET",
    "/partner/solution/migrate/intent/status",
    success(appStatus=list[dict[str, Any]]),
    wrong_credential=_UNAUTHORIZED,
)
async def list_solution_migrations(call: PartnerCall) -> dict[str, Any]:
    """Return the migrations of the partner's apps between solutions: there are none, since none can be begun."""
    return {"status": "success", "appStatus": []}
