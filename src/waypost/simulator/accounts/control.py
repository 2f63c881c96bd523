"""Control API calls for accounts, apps, their credentials and their webhooks."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from waypost.simulator.accounts.model import save_account, save_app
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, find, view_of
from waypost.simulator.apis.field_types import Id, Name, accepts
from waypost.simulator.messages.direct_send import DIRECT_SEND_ACCESS
from waypost.simulator.numbers.control import NumberView, number_view
from waypost.simulator.state.accounts import Account, Destination, GraphApp, owner_id, partner_id
from waypost.simulator.state.control_parameters import PathAccount, PathApp
from waypost.simulator.state.records import DIRECT_SEND, MARKETING
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.tokens import PERMISSIONS, Token, all_tokens, find_token, save_token, token_app
from waypost.simulator.state.usage_counts import recent_calls
from waypost.simulator.storage.tables.updates import WEBHOOK_FIELDS, Outlet
from waypost.simulator.webhooks.webhooks import (
    EndpointVerificationFailed,
    WebhookRetry,
    find_retry,
    retry_now,
    start_loops,
    verify_endpoint,
    worst_retry,
)

_ADDRESS = "an http or https URL, or an empty text: no webhooks"


KnownToken = Annotated[Name, accepts("one that GET /control/tokens shows")]
"""A token, in the body because URLs are logged."""

operation = ControlOperations()


class WebhookBody(ControlBody, frozen=True):
    """An app's callback URI, empty: no webhooks, and the fields sent to it, null: all, or as before."""

    callback_uri: Annotated[str, accepts(_ADDRESS, "^(https?://.+)?$", max_length=2000)]
    verify_token: str
    fields: tuple[Annotated[str, accepts("a webhook field", f"^({'|'.join(WEBHOOK_FIELDS)})$")], ...] | None = None


class TokenBody(ControlBody, frozen=True):
    """A new token, or a new expiry and permissions for an existing one."""

    waba_ids: Annotated[list[Id], Meta(min_length=1, max_length=100)]
    token: Name | None = None
    expires_in_ms: Annotated[int, Meta(ge=0, le=10 * 366 * 24 * 3600 * 1000)] | None = None
    permissions: tuple[Literal["whatsapp_business_management", "whatsapp_business_messaging"], ...] = PERMISSIONS
    app_id: Annotated[Id | None, accepts("the app's id, or null: that of the first account")] = None


class TokenView(Struct):
    """A token with its app, accounts and permissions."""

    token: str
    app_id: str
    waba_ids: tuple[str, ...]
    permissions: tuple[str, ...]
    issued_ms: int
    expires_ms: int | None
    is_revoked: bool
    is_good: bool


class OutletView(Struct, frozen=True):
    """The delivery of an account's webhooks to an app, or of one number's to its own callback URI."""

    app_id: str
    phone_number_id: str | None
    callback_uri: str | None
    failed_attempts: int
    next_attempt_ms: int | None
    last_failure: str | None


class AccountView(Struct, frozen=True, kw_only=True):
    """An account with its numbers and the delivery of its webhooks; the four members before them are of its app."""

    waba_id: str
    name: str
    namespace: str
    app_id: str
    owner_business_id: str
    partner_business_id: str
    manual_reviews: bool
    updates_waiting: int
    calls_this_hour: int
    callback_uri: str | None
    failed_attempts: int
    next_attempt_ms: int | None
    last_failure: str | None
    webhooks: list[OutletView]
    numbers: list[NumberView]


@operation("PUT", "/control/accounts/{waba_id}")
async def put_account(
    state: SimulatorState,
    waba_id: str,
    *,
    name: Name,
    token: Name,
    app_id: Id,
    app_secret: Name,
    namespace: str = "",
    manual_reviews: bool = False,
) -> AccountView:
    """Create or update a business account and its app; webhooks continue.

    With `manual_reviews` its templates wait for the control API's decisions.
    """
    previous = state.accounts.by_id.get(waba_id)
    app = state.accounts.apps.get(app_id) or GraphApp(app_id, app_secret)
    await save_app(state, replace(app, app_secret=app_secret))
    namespace = namespace or (previous.namespace if previous else "") or state.ids.new().replace("-", "_")
    owner = previous.owner_business_id if previous else ""
    account = Account(waba_id, name, namespace, token, app_id, manual_reviews, owner)
    await save_account(state, account)
    start_loops(state, waba_id)
    return account_view(state, account, 0)


@operation("PUT", "/control/accounts/{waba_id}/direct-send", waba_id=str, access=str)
async def put_direct_send(
    state: SimulatorState,
    waba_id: str,
    *,
    access: Annotated[str, accepts(", ".join(DIRECT_SEND_ACCESS), f"^({'|'.join(DIRECT_SEND_ACCESS)})$")],
) -> dict[str, Any]:
    """Allow or deny an account Direct Send, with the operator's error for each denial; without a webhook."""
    return await _save_record(state, waba_id, DIRECT_SEND, {"access": access})


@operation("PUT", "/control/accounts/{waba_id}/marketing-messages", waba_id=str, status=str)
async def put_marketing_status(
    state: SimulatorState, waba_id: str, *, status: Literal["INELIGIBLE", "ELIGIBLE", "ONBOARDED"]
) -> dict[str, Any]:
    """Accept the terms for marketing messages as the owner of an account, or take them back; without a webhook."""
    return await _save_record(state, waba_id, MARKETING, {"status": status})


async def _save_record(state: SimulatorState, waba_id: str, kind: str, record: dict[str, str]) -> dict[str, Any]:
    find(state.accounts.by_id, waba_id, field="waba_id", rule="is no account")
    await state.save_record(waba_id, kind, record)
    return {"waba_id": waba_id, **record}


@operation("PUT", "/control/apps/{app_id}", app_id=str, callback_uri=str)
async def put_app(state: SimulatorState, app_id: str, *, app_secret: Name) -> dict[str, Any]:
    """Create an app without subscriptions, or set its secret."""
    app = replace(state.accounts.apps.get(app_id) or GraphApp(app_id, ""), app_secret=app_secret)
    await save_app(state, app)
    return {"app_id": app_id, "callback_uri": app.callback_uri}


@operation("PUT", "/control/apps/{app_id}/webhook", app_id=str, callback_uri=str, fields=tuple[str, ...])
async def put_webhook(state: SimulatorState, body: WebhookBody, app: PathApp) -> dict[str, Any]:
    """Set an app's callback URI after a handshake; an empty one turns webhooks off."""
    if body.callback_uri:
        try:
            await verify_endpoint(body.callback_uri, body.verify_token, state.ids.digits(10))
        except EndpointVerificationFailed as failed:
            accepted = "a URL that responds with 200 and the bare hub.challenge if hub.verify_token is right"
            raise ControlApiError("callback_uri", str(failed), accepted, status=422) from failed
    fields = app.fields or WEBHOOK_FIELDS if body.fields is None else body.fields
    changes = {"callback_uri": body.callback_uri, "verify_token": body.verify_token, "fields": fields}
    await save_app(state, replace(app, **changes))
    for owner in state.accounts.webhook_owners(app.app_id):
        await retry_now(state, owner)
    return {"app_id": app.app_id, "callback_uri": body.callback_uri, "fields": fields}


@operation("POST", "/control/accounts/{waba_id}/retry", retried=bool)
async def retry_webhooks(state: SimulatorState, account: PathAccount) -> dict[str, Any]:
    """Reset the failures of an account's webhooks and deliver what is due now."""
    await retry_now(state, account.waba_id)
    return {"retried": True}


def account_view(state: SimulatorState, account: Account, waiting: int) -> AccountView:
    """Return an account with the state of its webhook delivery."""
    destination = state.accounts.destination(Outlet(account.waba_id, account.app_id))
    return view_of(
        AccountView,
        account,
        owner_business_id=owner_id(account),
        partner_business_id=partner_id(account.app_id),
        updates_waiting=waiting,
        calls_this_hour=len(recent_calls(state, account.waba_id)),
        **_delivery_view(destination, worst_retry(state, account.waba_id)),
        webhooks=[
            OutletView(
                app_id=outlet.app_id,
                phone_number_id=outlet.phone_number_id or None,
                **_delivery_view(state.accounts.destination(outlet), find_retry(state, outlet)),
            )
            for outlet in state.accounts.outlets((account.waba_id,))
        ],
        numbers=[number_view(state, number) for number in state.accounts.numbers_of(account.waba_id)],
    )


def _delivery_view(destination: Destination | None, retry: WebhookRetry | None) -> dict[str, Any]:
    return {
        "callback_uri": destination.uri if destination else None,
        "failed_attempts": retry.attempts if retry else 0,
        "next_attempt_ms": retry.next_ms if retry else None,
        "last_failure": retry.reason if retry else None,
    }


@operation("GET", "/control/tokens", tokens=list[TokenView])
async def list_tokens(state: SimulatorState) -> dict[str, Any]:
    """Return every token with its accounts and permissions; those of the accounts first."""
    return {"tokens": [_token_view(state, token) for token in all_tokens(state)]}


@operation("POST", "/control/tokens")
async def make_token(state: SimulatorState, body: TokenBody) -> TokenView:
    """Create or update a token; without a `token` in the body it gets a random one."""
    for waba_id in body.waba_ids:
        find(state.accounts.by_id, waba_id, field="waba_ids", rule="name no account")
    if body.app_id is not None:
        find(state.accounts.apps, body.app_id, field="app_id", rule="is no app")
    now_ms = state.clock.now_ms()
    token = Token(
        token=body.token or f"EAA{state.ids.secret()}",
        waba_ids=tuple(dict.fromkeys(body.waba_ids)),
        permissions=tuple(dict.fromkeys(body.permissions)),
        issued_ms=now_ms,
        expires_ms=None if body.expires_in_ms is None else now_ms + body.expires_in_ms,
        app_id=body.app_id or "",
    )
    return _token_view(state, await save_token(state, token))


@operation("POST", "/control/tokens/expire")
async def expire_token(state: SimulatorState, *, token: KnownToken) -> TokenView:
    """Expire a token now."""
    return _token_view(
        state, await save_token(state, replace(_token_of(state, token), expires_ms=state.clock.now_ms()))
    )


@operation("POST", "/control/tokens/revoke")
async def revoke_token(state: SimulatorState, *, token: KnownToken) -> TokenView:
    """Revoke a token."""
    return _token_view(state, await save_token(state, replace(_token_of(state, token), is_revoked=True)))


def _token_of(state: SimulatorState, text: str) -> Token:
    token = find_token(state, text)
    if token is None:
        raise ControlApiError("token", "is unknown", "one from GET /control/tokens", status=404)
    return token


def _token_view(state: SimulatorState, token: Token) -> TokenView:
    is_good = token.is_valid(state.clock.now_ms())
    return view_of(TokenView, token, app_id=token_app(state, token), is_good=is_good)
