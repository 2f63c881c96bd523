"""Authorisation of every call of the admin API, and its entry in the audit log."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from waypost.admin.operation import AdminRoute
from waypost.base.encryption import secrets_equal
from waypost.base.error_texts import release_frames
from waypost.base.http.connection_scope import mark_authenticated, mark_rejected
from waypost.base.http.hosts import hostname_of, is_loopback
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.accounts.audit_log import ADMIN_ACTOR, ANONYMOUS_ACTOR, AuditLog
from waypost.store.directory import Directory
from waypost.wire.errors import error_response

_REJECTED_DELAY_S: Final = 1.0
"""How much later a caller who has tried too many tokens is rejected: the others have the process meanwhile."""
_SAFE_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

AdminCall = Callable[[Request], Awaitable[Any]]
_encode_body: Final = msgspec.json.Encoder().encode
_log = ThrottledLog(log("admin"))


class AdminLoginLimits(Protocol):
    """Limits for callers without a valid admin token."""

    async def check_admin_attempts(self, address: str) -> None:
        """Raise ApiError after too many wrong tokens from an address."""
        ...

    async def count_wrong_admin_token(self, address: str) -> object:
        """Count a wrong token."""
        ...

    async def may_audit_rejection(self) -> bool:
        """True while rejected calls without a valid token get entries."""
        ...


class AdminGate:
    """Admits requests and records actions.

    Args:
        token: the admin token; None: only the console is admitted.
        console_token: the token of this process's console; its pages record people's actions themselves.
        hosts: host names that count as this service's own in addition to loopback.
        limits: limits of wrong tokens.
        address_of: returns the address that a client is counted by and logged with.
        audit: the audit log.
        directory: finds the partner of an app.
    """

    def __init__(
        self,
        *,
        token: str | None,
        console_token: str,
        hosts: Sequence[str],
        limits: AdminLoginLimits,
        address_of: Callable[[MutableMapping[str, Any]], str],
        audit: AuditLog,
        directory: Directory,
    ) -> None:
        self._token = token
        self._console_token = console_token
        self._hosts = hosts
        self._limits = limits
        self._address_of = address_of
        self._audit = audit
        self._directory = directory

    def guard(self, row: AdminRoute, call: AdminCall) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that authorises the request, calls the operation, records it, and responds."""

        async def respond(request: Request) -> Response:
            actor, reason, body = ANONYMOUS_ACTOR, "", None
            try:
                actor = await self._authorise(request)
                body = await call(request)
                status, headers = 200, dict[str, str]()
            except ApiError as error:
                status, body, headers = error_response(error, names_field=True)
                reason = error.code.value
                mark_rejected(request.scope)
                release_frames(error)
            except ClientDisconnect:
                raise
            except Exception:
                await self._record(request, row.name, actor, 500, "defect", None)
                raise
            if actor == ANONYMOUS_ACTOR and reason == ErrorCode.TOO_MANY_REQUESTS.value:
                await asyncio.sleep(_REJECTED_DELAY_S)
            if await self._is_recorded(actor, reason, is_action=row.is_action):
                await self._record(request, row.name, actor, status, reason, body)
            return Response(_encode_body(body), status, {**headers, **_SAFE_HEADERS}, media_type="application/json")

        return respond

    async def _authorise(self, request: Request) -> str:
        """Return the caller's name for the audit log; empty for the console.

        Raises:
            ApiError: wrong host, foreign origin, too many wrong tokens, a wrong token, or no JSON.
        """
        _check_origin(request, self._hosts)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._console_token and secrets_equal(token, self._console_token):
            _check_json(request)
            return ""
        address = self._address_of(request.scope)
        await self._limits.check_admin_attempts(address)
        if not token or self._token is None or not secrets_equal(token, self._token):
            _log.warning("a wrong admin token was rejected", address=address)
            await self._limits.count_wrong_admin_token(address)
            raise ApiError(
                ErrorCode.AUTHENTICATION_FAILED,
                "Authorization must be Bearer and the admin token, which is the setting admin_token.",
            )
        mark_authenticated(request.scope)
        _check_json(request)
        return ADMIN_ACTOR

    async def _is_recorded(self, actor: str, reason: str, *, is_action: bool) -> bool:
        """True if the call gets an entry: console pages record themselves; entries without a token are limited."""
        if actor == ADMIN_ACTOR:
            return is_action
        return (
            actor == ANONYMOUS_ACTOR
            and reason != ErrorCode.TOO_MANY_REQUESTS.value
            and await self._limits.may_audit_rejection()
        )

    async def _record(self, request: Request, action: str, actor: str, status: int, reason: str, body: Any) -> None:
        if not actor:
            return
        parameters = {**request.path_params}
        if not parameters and (new_id := _member(body, "id")) is not None:
            parameters["id"] = new_id
        await self._audit.record(
            actor=actor,
            remote_address=self._address_of(request.scope),
            action=action,
            status=status,
            partner_id=await self._partner_of(parameters, body) if actor == ADMIN_ACTOR else None,
            subject=parameters,
            detail=reason,
        )

    async def _partner_of(self, parameters: Mapping[str, Any], body: Any) -> int | None:
        """Return the partner of the affected account, if the path or the response identifies it."""
        if "app_id" in parameters:
            app = await self._directory.app(str(parameters["app_id"]))
            return None if app is None else app.partner_id
        text = str(parameters.get("partner_id", _member(body, "partner_id")))
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def _check_origin(request: Request, hosts: Sequence[str]) -> None:
    """Check that the request was not sent by a page of another site.

    The check of Host and Origin keeps out pages in an administrator's browser, also those whose name
    resolves to this machine. Source: decision 0081.
    """
    host = hostname_of("//" + request.headers.get("host", ""))
    if not (host in hosts or is_loopback(host)):
        raise ApiError(
            ErrorCode.FORBIDDEN_ORIGIN, "Host must be localhost, a loopback address, or one of the setting admin_hosts."
        )
    origin = request.headers.get("origin")
    of_origin = host if origin is None else hostname_of(origin)
    if not (of_origin in hosts or is_loopback(of_origin)):
        raise ApiError(
            ErrorCode.FORBIDDEN_ORIGIN,
            "Origin must be absent, or the address of this service: a page of another site may not call it.",
        )


def _member(response: Any, name: str) -> Any:
    """Return a member of a response, a struct or a dictionary; None if it has none."""
    if isinstance(response, Mapping):
        return cast("Mapping[str, Any]", response).get(name)
    return getattr(response, name, None)


def _check_json(request: Request) -> None:
    """Check that the Content-Type is JSON, which a page of another site cannot send without preflight."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT") and kind != "application/json":
        raise ApiError(ErrorCode.MEDIA_TYPE, "Content-Type must be application/json.")
