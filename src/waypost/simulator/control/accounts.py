"""Control API calls for accounts, apps, their credentials and their webhooks."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from waypost.simulator.accounts.accounts import Account, Destination, GraphApp, owner_id, partner_id
from waypost.simulator.accounts.records import DIRECT_SEND, MARKETING
from waypost.simulator.accounts.tokens import PERMISSIONS, Token
from waypost.simulator.control.endpoints import ControlBody, ControlOperations, find
from waypost.simulator.control.numbers import number_view
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.field_types import Id, Name, accepts
from waypost.simulator.messages.direct_send import DIRECT_SEND_ACCESS
from waypost.simulator.onboarding.accounts import save_account, save_app
from waypost.simulator.services import SimulatorServices
from waypost.simulator.tables.updates import WEBHOOK_FIELDS, Outlet
from waypost.simulator.webhooks.webhooks import EndpointVerificationFailed, WebhookRetry, verify_endpoint

_ADDRESS = "an http or https URL, or an empty text: no webhooks"

operation = ControlOperations()


class AccountBody(ControlBody, frozen=True):
    """A business account with its app."""

    name: Name
    token: Name
    app_id: Id
    app_secret: Name
    namespace: str = ""
    manual_reviews: bool = False


class DirectSendBody(ControlBody, frozen=True):
    """An account's access to Direct Send."""

    access: Annotated[str, accepts(", ".join(DIRECT_SEND_ACCESS), f"^({'|'.join(DIRECT_SEND_ACCESS)})$")]


class MarketingStatusBody(ControlBody, frozen=True):
    """The response of an account's owner to the terms for marketing messages."""

    status: Literal["INELIGIBLE", "ELIGIBLE", "ONBOARDED"]


class AppBody(ControlBody, frozen=True):
    """An app."""

    app_secret: Name


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


class TokenReferenceBody(ControlBody, frozen=True):
    """A token, in the body because URLs are logged."""

    token: Annotated[Name, accepts("one that GET /control/tokens shows")]


class DirectSendAccess(Struct):
    """An account's access to Direct Send."""

    waba_id: str
    access: str


class MarketingStatus(Struct):
    """The response of an account's owner to the terms for marketing messages."""

    waba_id: str
    status: str


class AppView(Struct):
    """An app; its fields only after a change of its webhooks."""

    app_id: str
    callback_uri: str
    fields: tuple[str, ...] | UnsetType = UNSET


class RetriedWebhooks(Struct):
    """The failures of an account's webhooks were reset."""

    retried: bool


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


class TokenList(Struct):
    """Every token."""

    tokens: list[TokenView]


@operation("PUT", "/control/accounts/{waba_id}")
async def put_account(services: SimulatorServices, waba_id: str, body: AccountBody) -> dict[str, Any]:
    """Create or update a business account and its app; webhooks continue.

    With `manual_reviews` its templates wait for the control API's decisions.
    """
    previous = services.accounts.by_id.get(waba_id)
    app = services.accounts.apps.get(body.app_id) or GraphApp(body.app_id, body.app_secret)
    await save_app(services, replace(app, app_secret=body.app_secret))
    namespace = body.namespace or (previous.namespace if previous else "") or services.ids.new().replace("-", "_")
    account = Account(waba_id, body.name, namespace, body.token, body.app_id, body.manual_reviews)
    await save_account(services, account)
    services.webhooks.start_loops(waba_id)
    return account_view(services, account, 0)


@operation("PUT", "/control/accounts/{waba_id}/direct-send")
async def put_direct_send(services: SimulatorServices, waba_id: str, body: DirectSendBody) -> DirectSendAccess:
    """Allow or deny an account Direct Send, with the operator's error for each denial; without a webhook."""
    find(services.accounts.by_id, waba_id, field="waba_id", rule="is no account")
    await services.records.save(waba_id, DIRECT_SEND, {"access": body.access})
    return DirectSendAccess(waba_id, body.access)


@operation("PUT", "/control/accounts/{waba_id}/marketing-messages")
async def put_marketing_status(services: SimulatorServices, waba_id: str, body: MarketingStatusBody) -> MarketingStatus:
    """Accept the terms for marketing messages as the owner of an account, or take them back; without a webhook."""
    find(services.accounts.by_id, waba_id, field="waba_id", rule="is no account")
    await services.records.save(waba_id, MARKETING, {"status": body.status})
    return MarketingStatus(waba_id, body.status)


@operation("PUT", "/control/apps/{app_id}")
async def put_app(services: SimulatorServices, app_id: str, body: AppBody) -> AppView:
    """Create an app without subscriptions, or set its secret."""
    app = replace(services.accounts.apps.get(app_id) or GraphApp(app_id, ""), app_secret=body.app_secret)
    await save_app(services, app)
    return AppView(app_id, app.callback_uri)


@operation("PUT", "/control/apps/{app_id}/webhook")
async def put_webhook(services: SimulatorServices, body: WebhookBody, app: GraphApp) -> AppView:
    """Set an app's callback URI after a handshake; an empty one turns webhooks off."""
    if body.callback_uri:
        try:
            await verify_endpoint(body.callback_uri, body.verify_token, services.ids.digits(10))
        except EndpointVerificationFailed as failed:
            accepted = "a URL that responds with 200 and the bare hub.challenge if hub.verify_token is right"
            raise ControlApiError("callback_uri", str(failed), accepted, status=422) from failed
    fields = app.fields or WEBHOOK_FIELDS if body.fields is None else body.fields
    changes = {"callback_uri": body.callback_uri, "verify_token": body.verify_token, "fields": fields}
    await save_app(services, replace(app, **changes))
    for account in services.accounts.accounts_of_app(app.app_id):
        await services.webhooks.retry_now(account.waba_id)
    return AppView(app.app_id, body.callback_uri, fields)


@operation("POST", "/control/accounts/{waba_id}/retry")
async def retry_webhooks(services: SimulatorServices, account: Account) -> RetriedWebhooks:
    """Reset the failures of an account's webhooks and deliver what is due now."""
    await services.webhooks.retry_now(account.waba_id)
    return RetriedWebhooks(retried=True)


def account_view(services: SimulatorServices, account: Account, waiting: int) -> dict[str, Any]:
    """Return an account with the state of its webhook delivery."""
    destination = services.accounts.destination(Outlet(account.waba_id, account.app_id))
    return {
        "waba_id": account.waba_id,
        "name": account.name,
        "namespace": account.namespace,
        "app_id": account.app_id,
        "owner_business_id": owner_id(account),
        "partner_business_id": partner_id(account.app_id),
        "manual_reviews": account.manual_reviews,
        "callback_uri": None,
        "updates_waiting": waiting,
        "calls_this_hour": services.usage.count(account.waba_id),
        **_delivery_view(destination, services.webhooks.worst_retry(account.waba_id)),
        "webhooks": [_outlet_view(services, outlet) for outlet in services.accounts.outlets((account.waba_id,))],
        "numbers": [number_view(services, number) for number in services.accounts.numbers_of(account.waba_id)],
    }


def _outlet_view(services: SimulatorServices, outlet: Outlet) -> dict[str, Any]:
    """Return an outlet's app, number and callback URI, with the state of its delivery."""
    return {
        "app_id": outlet.app_id,
        "phone_number_id": outlet.phone_number_id or None,
        **_delivery_view(services.accounts.destination(outlet), services.webhooks.retries.get(outlet)),
    }


def _delivery_view(destination: Destination | None, retry: WebhookRetry | None) -> dict[str, Any]:
    return {
        "callback_uri": destination.uri if destination else None,
        "failed_attempts": retry.attempts if retry else 0,
        "next_attempt_ms": retry.next_ms if retry else None,
        "last_failure": retry.reason if retry else None,
    }


@operation("GET", "/control/tokens")
async def list_tokens(services: SimulatorServices) -> TokenList:
    """Return every token with its accounts and permissions; those of the accounts first."""
    return TokenList([_token_view(services, token) for token in services.tokens.list_tokens()])


@operation("POST", "/control/tokens")
async def make_token(services: SimulatorServices, body: TokenBody) -> TokenView:
    """Create or update a token; without a `token` in the body it gets a random one."""
    for waba_id in body.waba_ids:
        find(services.accounts.by_id, waba_id, field="waba_ids", rule="name no account")
    if body.app_id is not None:
        find(services.accounts.apps, body.app_id, field="app_id", rule="is no app")
    now_ms = services.clock.now_ms()
    token = Token(
        token=body.token or f"EAA{services.ids.secret()}",
        waba_ids=tuple(dict.fromkeys(body.waba_ids)),
        permissions=tuple(dict.fromkeys(body.permissions)),
        issued_ms=now_ms,
        expires_ms=None if body.expires_in_ms is None else now_ms + body.expires_in_ms,
        app_id=body.app_id or "",
    )
    return _token_view(services, await services.tokens.save(token))


@operation("POST", "/control/tokens/expire")
async def expire_token(services: SimulatorServices, body: TokenReferenceBody) -> TokenView:
    """Expire a token now."""
    return _token_view(services, await services.tokens.expire(_token_of(services, body)))


@operation("POST", "/control/tokens/revoke")
async def revoke_token(services: SimulatorServices, body: TokenReferenceBody) -> TokenView:
    """Revoke a token."""
    return _token_view(services, await services.tokens.revoke(_token_of(services, body)))


def _token_of(services: SimulatorServices, body: TokenReferenceBody) -> Token:
    token = services.tokens.find(body.token)
    if token is None:
        raise ControlApiError("token", "is unknown", "one from GET /control/tokens", status=404)
    return token


def _token_view(services: SimulatorServices, token: Token) -> TokenView:
    return TokenView(
        token=token.token,
        app_id=services.tokens.app_of(token),
        waba_ids=token.waba_ids,
        permissions=token.permissions,
        issued_ms=token.issued_ms,
        expires_ms=token.expires_ms,
        is_revoked=token.is_revoked,
        is_good=token.is_valid(services.clock.now_ms()),
    )
