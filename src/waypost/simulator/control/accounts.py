"""Control API calls for accounts, apps, their credentials and their webhooks."""

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict, replace

from waypost.simulator.accounts.accounts import Account, App, Destination
from waypost.simulator.accounts.tokens import PERMISSIONS, Token
from waypost.simulator.control.endpoints import find
from waypost.simulator.control.numbers import number_view
from waypost.simulator.control.request_structs import Body
from waypost.simulator.field_types import Id, Name, accepts
from waypost.simulator.services import Parts
from waypost.simulator.tables.updates import Outlet
from waypost.simulator.violation import BrokenRule
from waypost.simulator.webhooks.webhooks import HandshakeFailed, Retry

_ADDRESS = "an http or https URL, or an empty text: no webhooks"


class AccountBody(Body, frozen=True):
    """A business account with its app."""

    name: Name
    token: Name
    app_id: Id
    app_secret: Name
    namespace: str = ""


class AppBody(Body, frozen=True):
    """An app."""

    app_secret: Name


class WebhookBody(Body, frozen=True):
    """An app's callback URI; an empty one turns webhooks off."""

    callback_uri: Annotated[str, accepts(_ADDRESS, "^(https?://.+)?$", max_length=2000)]
    verify_token: str


class TokenBody(Body, frozen=True):
    """A new token, or a new expiry and permissions for an existing one."""

    waba_ids: Annotated[list[Id], Meta(min_length=1, max_length=100)]
    token: Name | None = None
    expires_in_ms: Annotated[int, Meta(ge=0, le=10 * 366 * 24 * 3600 * 1000)] | None = None
    permissions: tuple[Literal["whatsapp_business_management", "whatsapp_business_messaging"], ...] = PERMISSIONS
    app_id: Annotated[Id | None, accepts("the app's id, or null: that of the first account")] = None


class WhichTokenBody(Body, frozen=True):
    """A token, in the body because URLs are logged."""

    token: Annotated[Name, accepts("one that GET /control/tokens shows")]


async def put_account(parts: Parts, waba_id: str, body: AccountBody) -> dict[str, Any]:
    """Create or update a business account and its app; webhooks continue."""
    previous = parts.accounts.by_id.get(waba_id)
    app = parts.accounts.apps.get(body.app_id) or App(body.app_id, body.app_secret)
    await parts.accounts.keep_app(replace(app, app_secret=body.app_secret))
    namespace = body.namespace or (previous.namespace if previous else "") or parts.ids.new().replace("-", "_")
    account = Account(waba_id, body.name, namespace, body.token, body.app_id)
    await parts.accounts.keep_account(account)
    parts.webhooks.serve(waba_id)
    return account_view(parts, account, 0)


async def put_app(parts: Parts, app_id: str, body: AppBody) -> dict[str, Any]:
    """Create an app without subscriptions, or set its secret."""
    app = replace(parts.accounts.apps.get(app_id) or App(app_id, ""), app_secret=body.app_secret)
    await parts.accounts.keep_app(app)
    return {"app_id": app_id, "callback_uri": app.callback_uri}


async def put_webhook(parts: Parts, body: WebhookBody, app: App) -> dict[str, Any]:
    """Set an app's callback URI after a handshake; an empty one turns webhooks off."""
    if body.callback_uri:
        try:
            await parts.webhooks.shake_hands(body.callback_uri, body.verify_token)
        except HandshakeFailed as failed:
            accepted = "a URL that responds with 200 and the bare hub.challenge if hub.verify_token is right"
            raise BrokenRule("callback_uri", str(failed), accepted, status=422) from failed
    await parts.accounts.keep_app(replace(app, callback_uri=body.callback_uri, verify_token=body.verify_token))
    for account in parts.accounts.of_app(app.app_id):
        await parts.webhooks.retry_now(account.waba_id)
    return {"app_id": app.app_id, "callback_uri": body.callback_uri}


async def retry_webhooks(parts: Parts, account: Account) -> dict[str, Any]:
    """Reset the failures of an account's webhooks and deliver what is due now."""
    await parts.webhooks.retry_now(account.waba_id)
    return {"retried": True}


def account_view(parts: Parts, account: Account, waiting: int) -> dict[str, Any]:
    """Return an account with the state of its webhook delivery.

    Args:
        parts: the simulator's services.
        account: the account.
        waiting: number of updates queued for its webhooks.
    """
    destination = parts.accounts.destination(Outlet(account.waba_id, account.app_id))
    return {
        "waba_id": account.waba_id,
        "name": account.name,
        "namespace": account.namespace,
        "app_id": account.app_id,
        "callback_uri": None,
        "updates_waiting": waiting,
        "calls_this_hour": parts.usage.count(account.waba_id),
        **_delivery_view(destination, parts.webhooks.worst_retry(account.waba_id)),
        "webhooks": [_outlet_view(parts, outlet) for outlet in parts.accounts.outlets((account.waba_id,))],
        "numbers": [number_view(parts, number) for number in parts.accounts.numbers_of(account.waba_id)],
    }


def _outlet_view(parts: Parts, outlet: Outlet) -> dict[str, Any]:
    """Return an outlet's app, number and callback URI, with the state of its delivery."""
    return {
        "app_id": outlet.app_id,
        "phone_number_id": outlet.phone_number_id or None,
        **_delivery_view(parts.accounts.destination(outlet), parts.webhooks.retries.get(outlet)),
    }


def _delivery_view(destination: Destination | None, retry: Retry | None) -> dict[str, Any]:
    return {
        "callback_uri": destination.uri if destination else None,
        "failed_attempts": retry.attempts if retry else 0,
        "next_attempt_ms": retry.next_ms if retry else None,
        "last_failure": retry.reason if retry else None,
    }


async def list_tokens(parts: Parts) -> dict[str, Any]:
    """Return every token with its accounts and permissions; those of the accounts first."""
    return {"tokens": [_token_view(parts, token) for token in parts.tokens.all()]}


async def make_token(parts: Parts, body: TokenBody) -> dict[str, Any]:
    """Create or update a token; without a `token` in the body it gets a random one."""
    for waba_id in body.waba_ids:
        find(parts.accounts.by_id, waba_id, field="waba_ids", rule="name no account")
    if body.app_id is not None:
        find(parts.accounts.apps, body.app_id, field="app_id", rule="is no app")
    now_ms = parts.clock.now_ms()
    token = Token(
        token=body.token or f"EAA{parts.ids.secret()}",
        waba_ids=tuple(dict.fromkeys(body.waba_ids)),
        permissions=tuple(dict.fromkeys(body.permissions)),
        issued_ms=now_ms,
        expires_ms=None if body.expires_in_ms is None else now_ms + body.expires_in_ms,
        app_id=body.app_id or "",
    )
    return _token_view(parts, await parts.tokens.keep(token))


async def expire_token(parts: Parts, body: WhichTokenBody) -> dict[str, Any]:
    """Expire a token now."""
    return _token_view(parts, await parts.tokens.expire(_token_of(parts, body)))


async def revoke_token(parts: Parts, body: WhichTokenBody) -> dict[str, Any]:
    """Revoke a token."""
    return _token_view(parts, await parts.tokens.revoke(_token_of(parts, body)))


def _token_of(parts: Parts, body: WhichTokenBody) -> Token:
    token = parts.tokens.find(body.token)
    if token is None:
        raise BrokenRule("token", "is unknown", "one from GET /control/tokens", status=404)
    return token


def _token_view(parts: Parts, token: Token) -> dict[str, Any]:
    first = {"token": token.token, "app_id": ""}
    derived = {"app_id": parts.tokens.app_of(token), "is_good": token.is_good(parts.clock.now_ms())}
    return first | asdict(token) | derived
