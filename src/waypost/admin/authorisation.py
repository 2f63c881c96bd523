"""Around every call of the admin API: who may make it, and its entry in the audit log."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from waypost.admin.route import AdminRoute
from waypost.base.encryption import same
from waypost.base.http.hosts import hostname_of, is_loopback
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.accounts.audit_log import ADMIN, NOBODY, AuditLog
from waypost.store.directory import Directory
from waypost.wire.errors import error_response

Call = Callable[[Request], Awaitable[Any]]
_encode: Final = msgspec.json.Encoder().encode
_log = ThrottledLog(log("admin"))


class Limits(Protocol):
    """Bounds for those who have no valid admin token."""

    async def check_admin(self, address: str) -> None:
        """Raise Refused after too many wrong tokens from an address."""
        ...

    async def spend_admin(self, address: str) -> object:
        """Count a wrong token."""
        ...

    async def may_audit_refusal(self) -> bool:
        """True while refusals without a valid token get entries."""
        ...


class AdminGate:
    """Admits requests and records actions.

    Args:
        token: the admin token; None: nobody but the console is admitted.
        console_token: what the console of this process holds; its pages record what people do there.
        hosts: host names that count as this service's own beside loopback.
        limits: of wrong tokens.
        address_of: what a client is counted by, and known by in the log.
        audit: the log.
        directory: finds whose an app is.
    """

    def __init__(
        self,
        *,
        token: str | None,
        console_token: str,
        hosts: Sequence[str],
        limits: Limits,
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

    def around(self, row: AdminRoute, call: Call) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that admits, calls, records, and then responds."""

        async def respond(request: Request) -> Response:
            actor, reason, body = NOBODY, "", None
            try:
                actor = await self._admit(request)
                body = await call(request)
                status, headers = 200, dict[str, str]()
            except ApiError as refused:
                status, body, headers = error_response(refused, names_field=True)
                reason = refused.code.value
            except Exception:
                await self._record(request, row.name, actor, 500, "defect", None)
                raise
            if await self._is_recorded(actor, reason, is_action=row.is_action):
                await self._record(request, row.name, actor, status, reason, body)
            return Response(_encode(body), status, headers, media_type="application/json")

        return respond

    async def _admit(self, request: Request) -> str:
        """Return who asks.

        Raises:
            Refused: wrong host, foreign origin, too many wrong tokens, a wrong token, or no JSON.
        """
        _check_origin(request, self._hosts)
        given = _token_of(request)
        if self._console_token and same(given, self._console_token):
            _check_json(request)
            return ""
        address = self._address_of(request.scope)
        await self._limits.check_admin(address)
        if not given or self._token is None or not same(given, self._token):
            _log.warning("a wrong admin token was refused", address=address)
            await self._limits.spend_admin(address)
            raise ApiError(ErrorCode.AUTHENTICATION_FAILED, "Authorization must be Bearer and the admin_token.")
        _check_json(request)
        return ADMIN

    async def _is_recorded(self, actor: str, reason: str, *, is_action: bool) -> bool:
        """The console's pages record themselves; of refusals without a token only so many are."""
        if actor == ADMIN:
            return is_action
        return (
            actor == NOBODY and reason != ErrorCode.TOO_MANY_REQUESTS.value and await self._limits.may_audit_refusal()
        )

    async def _record(self, request: Request, action: str, actor: str, status: int, reason: str, body: Any) -> None:
        if not actor:
            return
        told: Mapping[str, Any] = {}
        if isinstance(body, dict) and status < 400:
            told = cast("Mapping[str, Any]", body)
        named = {**request.path_params}
        if "id" in told and not named:
            named["id"] = told["id"]
        await self._audit.record(
            actor=actor,
            remote_address=self._address_of(request.scope),
            action=action,
            status=status,
            partner_id=await self._partner_of(named, told) if actor == ADMIN else None,
            subject=" ".join(f"{name}={value}" for name, value in named.items()),
            detail=reason,
        )

    async def _partner_of(self, named: Mapping[str, Any], told: Mapping[str, Any]) -> int | None:
        """The partner whose account it concerns, where the path or the response says so."""
        if "app_id" in named:
            app = await self._directory.app(str(named["app_id"]))
            return None if app is None else app.partner_id
        given = str(named.get("partner_id", told.get("partner_id", "")))
        return int(given) if given.isascii() and given.isdecimal() and len(given) < 19 else None


def _check_origin(request: Request, hosts: Sequence[str]) -> None:
    """Return when no page of another site has sent the request.

    Host and origin keep a page in somebody's browser out, also one whose name resolves to this
    machine. Source: decision 0081.

    Raises:
        Refused: wrong host, or foreign origin.
    """
    host = hostname_of("//" + request.headers.get("host", ""))
    if not (host in hosts or is_loopback(host)):
        raise ApiError(ErrorCode.FORBIDDEN_ORIGIN, "Host must be a loopback name or one of admin_hosts.")
    origin = request.headers.get("origin")
    of_origin = host if origin is None else hostname_of(origin)
    if not (of_origin in hosts or is_loopback(of_origin)):
        raise ApiError(ErrorCode.FORBIDDEN_ORIGIN, "Origin must be this service's own.")


def _token_of(request: Request) -> str:
    """The token that a request holds; empty: none."""
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _check_json(request: Request) -> None:
    """Return when a body is said to be JSON, which no page of another site can send unasked.

    Raises:
        Refused: it is not.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT") and kind != "application/json":
        raise ApiError(ErrorCode.MEDIA_TYPE, "Content-Type must be application/json.")
