"""The control door's calls about access tokens: made, ended, taken back."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta
from starlette.requests import Request

from waypost.simulator.accounts.tokens import PERMISSIONS, Token
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import Id, Name, NothingShape, read_shape
from waypost.simulator.parts import Parts


class TokenShape(NothingShape, frozen=True):
    """A new token, or another life and other permissions for one that is there."""

    accepted: ClassVar[str] = (
        "{waba_ids: accounts' ids, token?: its text, expires_in_ms?: from now on, or null: never, "
        "permissions?: of whatsapp_business_management, whatsapp_business_messaging, "
        "app_id?: the app that it is a credential of; the first account's if absent}"
    )
    waba_ids: Annotated[list[Id], Meta(min_length=1, max_length=100)]
    token: Name | None = None
    expires_in_ms: Annotated[int, Meta(ge=0, le=10 * 366 * 24 * 3600 * 1000)] | None = None
    permissions: tuple[Literal["whatsapp_business_management", "whatsapp_business_messaging"], ...] = PERMISSIONS
    app_id: Id | None = None


class WhichTokenShape(NothingShape, frozen=True):
    """A token, named in the body, because addresses are written down in logs."""

    accepted: ClassVar[str] = "{token: one that GET /control/tokens shows}"
    token: Name


async def list_tokens(parts: Parts, _request: Request) -> dict[str, Any]:
    """Every token with what it opens; those of the accounts first."""
    return {"tokens": [_view(parts, token) for token in parts.tokens.all()]}


async def make_token(parts: Parts, request: Request) -> dict[str, Any]:
    """Make a token, or change one; without a text of its own it gets one."""
    wish = read_shape(TokenShape, await request.body())
    unknown = [waba_id for waba_id in wish.waba_ids if waba_id not in parts.accounts.by_id]
    if unknown:
        known = ", ".join(parts.accounts.by_id) or "none yet"
        raise ControlRefused(404, field="waba_ids", rule="name no account", accepted=known)
    if wish.app_id is not None and wish.app_id not in parts.accounts.apps:
        known = ", ".join(parts.accounts.apps) or "none yet"
        raise ControlRefused(404, field="app_id", rule="is no app", accepted=known)
    now_ms = parts.clock.now_ms()
    token = Token(
        token=wish.token or f"EAA{parts.ids.secret()}",
        waba_ids=tuple(dict.fromkeys(wish.waba_ids)),
        permissions=tuple(dict.fromkeys(wish.permissions)),
        issued_ms=now_ms,
        expires_ms=None if wish.expires_in_ms is None else now_ms + wish.expires_in_ms,
        app_id=wish.app_id or "",
    )
    return _view(parts, await parts.tokens.keep(token))


async def expire_token(parts: Parts, request: Request) -> dict[str, Any]:
    """Let a token's time be over now."""
    return _view(parts, await parts.tokens.expire(await _token_of(parts, request)))


async def revoke_token(parts: Parts, request: Request) -> dict[str, Any]:
    """Take a token back."""
    return _view(parts, await parts.tokens.revoke(await _token_of(parts, request)))


async def _token_of(parts: Parts, request: Request) -> Token:
    wish = read_shape(WhichTokenShape, await request.body())
    token = parts.tokens.find(wish.token)
    if token is None:
        raise ControlRefused(404, field="token", rule="is unknown", accepted="one from GET /control/tokens")
    return token


def _view(parts: Parts, token: Token) -> dict[str, Any]:
    return {
        "token": token.token,
        "app_id": parts.tokens.app_of(token),
        "waba_ids": list(token.waba_ids),
        "permissions": list(token.permissions),
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "is_revoked": token.is_revoked,
        "is_good": token.is_good(parts.clock.now_ms()),
    }
