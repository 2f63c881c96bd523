"""The administration door: `/admin/…`, JSON, a credential of its own, loopback unless set."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from waypost.admin import actions
from waypost.admin.actions import Office
from waypost.admin.audit import AuditCalls
from waypost.admin.callbacks import CallbackCalls, CircuitOf
from waypost.admin.gate import AdminGate
from waypost.admin.operator_calls import OperatorCalls
from waypost.admin.reading import flag_in, number_in, read_body
from waypost.admin.traces import Traces
from waypost.domain.app import App
from waypost.domain.partner import Partner
from waypost.domain.refusals import Reason, Refused
from waypost.outbound.vetted import VettedClient
from waypost.store import partners as stored
from waypost.store.credentials import CredentialKind
from waypost.store.journal import Lane, depth_of, drop_set_aside, return_set_aside, set_aside_entries
from waypost.store.trace import message_counts, message_trace, newest_messages, newest_templates

MOST_MESSAGES: Final = 100
MOST_TEMPLATES: Final = 1000


class Hashes(Protocol):
    """Hashes a password."""

    async def hash(self, password: str) -> str:
        """Its argon2id hash."""
        ...


class _NewPartner(msgspec.Struct, forbid_unknown_fields=True):
    email: str
    name: str
    password: str | None = None  # without one, client secrets alone log in
    contact_name: str = ""
    phone_number: str = ""


class _NewSecret(msgspec.Struct, forbid_unknown_fields=True):
    expires_on_ms: int | None = None


class _Password(msgspec.Struct, forbid_unknown_fields=True):
    password: str
    end_tokens: bool = False
    keep_session: str = ""


class _Connection(msgspec.Struct, forbid_unknown_fields=True):
    phone_number: str
    phone_number_id: str
    business_account_id: str
    live: bool = True


class _NewKey(msgspec.Struct, forbid_unknown_fields=True):
    name: str = "key"


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    api_key: str


class _NewApp(msgspec.Struct, forbid_unknown_fields=True):
    partner_id: int
    name: str
    phone_number: str
    phone_number_id: str
    business_account_id: str
    per_second: int | None = None


class AdminDoor:
    """The calls of the door.

    Args:
        gate: admits requests, and records what is done.
        circuit_of: gives the state of a subscription's circuit.
        outbound: posts to addresses that partners chose.
    """

    def __init__(
        self,
        office: Office,
        passwords: Hashes,
        *,
        gate: AdminGate,
        circuit_of: CircuitOf = lambda _: None,
        outbound: VettedClient,
    ) -> None:
        self._office = office
        self._callbacks = CallbackCalls(office, circuit_of, outbound)
        self._passwords = passwords
        self._audit = AuditCalls(office.database)
        self._traces = Traces(office)
        self._gate = gate

    def routes(self) -> list[Route]:
        """Every route of the door."""
        # fmt: off
        table: tuple[tuple[str, str, Callable[[Request], Awaitable[Any]]], ...] = (
            ("GET",    "/admin/partners",                             self._partners),
            ("POST",   "/admin/partners",                             self._add_partner),
            ("POST",   "/admin/partners/{partner_id}/password",       self._change_password),
            ("GET",    "/admin/partners/{partner_id}/client-secrets", self._client_secrets),
            ("POST",   "/admin/partners/{partner_id}/client-secrets", self._add_client_secret),
            ("DELETE", "/admin/partners/{partner_id}/client-secrets/{secret_id}", self._revoke_client_secret),
            ("GET",    "/admin/partners/{partner_id}/api-keys",       self._api_keys),
            ("POST",   "/admin/partners/{partner_id}/api-keys",       self._add_api_key),
            ("DELETE", "/admin/partners/{partner_id}/api-keys/{key_id}", self._revoke_api_key_named),
            ("POST",   "/admin/api-keys/revoke",                      self._revoke_api_key),
            ("GET",    "/admin/apps",                                 self._apps),
            ("POST",   "/admin/apps",                                 self._add_app),
            ("GET",    "/admin/apps/{app_id}/messages",               self._messages_of_app),
            ("GET",    "/admin/apps/{app_id}/templates",              self._templates_of_app),
            ("POST",   "/admin/apps/{app_id}/connect",                self._connect_app),
            ("POST",   "/admin/apps/{app_id}/token/revoke",           self._renew_app_token),
            ("GET",    "/admin/lanes",                                self._lanes),
            ("GET",    "/admin/entries",                              self._entries),
            ("POST",   "/admin/entries/{position}/release",           self._release_entry),
            ("DELETE", "/admin/entries/{position}",                   self._drop_entry),
            ("GET",    "/admin/messages",                             self._message_counts),
            ("GET",    "/admin/messages/{message_id}",                self._message),
            ("GET",    "/admin/trace/{message_id:path}",              self._traces.show),
            ("POST",   "/admin/trace/{message_id:path}/reveal",       self._traces.reveal),
            ("GET",    "/admin/audit",                                self._audit.show),
        )
        # fmt: on
        return [
            Route(path, self._gate.around(method, path, call), methods=[method])
            for method, path, call in (*table, *OperatorCalls(self._office).table(), *self._callbacks.table())
        ]

    async def _partners(self, _request: Request) -> Any:
        return {"partners": await self._office.database.read(stored.all_partners)}

    async def _add_partner(self, request: Request) -> Any:
        given = await read_body(request, _NewPartner)
        if given.password is not None:
            actions.check_password(given.password)
        partner = Partner(
            id=0, name=given.name, email=given.email, contact_name=given.contact_name, phone_number=given.phone_number
        )
        password_hash = await self._passwords.hash(given.password) if given.password else ""
        return {"id": await actions.add_partner(self._office, partner, password_hash)}

    async def _change_password(self, request: Request) -> Any:
        given = await read_body(request, _Password)
        actions.check_password(given.password)
        partner_id = number_in(request, "partner_id")
        password_hash = await self._passwords.hash(given.password)
        ended = await actions.change_password(
            self._office, partner_id, password_hash, ends_tokens=given.end_tokens, keeps_session=given.keep_session
        )
        return {
            "changed": True,
            "sessions_ended": ended.sessions,
            **({"tokens_ended": ended.tokens} if given.end_tokens else {}),
            "next": "The API takes client secrets only from now on.",
        }

    async def _client_secrets(self, request: Request) -> Any:
        partner_id = number_in(request, "partner_id")
        secrets = await actions.list_credentials(self._office, CredentialKind.CLIENT_SECRET, partner_id)
        now_ms = self._office.clock.now_ms()
        return {
            "client_secrets": [
                {
                    "id": one.id,
                    "created_on_ms": one.created_on_ms,
                    "expires_on_ms": one.expires_on_ms,
                    "expired": one.is_expired(now_ms),
                }
                for one in secrets
            ]
        }

    async def _revoke_client_secret(self, request: Request) -> Any:
        partner_id = number_in(request, "partner_id")
        secret_id = str(request.path_params["secret_id"])
        keep_tokens = flag_in(request, "keep_tokens")
        ended = await actions.revoke_credential(
            self._office, CredentialKind.CLIENT_SECRET, partner_id, secret_id, keep_tokens=keep_tokens
        )
        return {"revoked": secret_id, "tokens_ended": ended}

    async def _add_client_secret(self, request: Request) -> Any:
        given = await read_body(request, _NewSecret)
        partner_id = number_in(request, "partner_id")
        secret = await actions.add_credential(
            self._office, CredentialKind.CLIENT_SECRET, partner_id, expires_on_ms=given.expires_on_ms
        )
        return {"client_secret": secret}

    async def _add_api_key(self, request: Request) -> Any:
        given = await read_body(request, _NewKey)
        partner_id = number_in(request, "partner_id")
        key = await actions.add_credential(self._office, CredentialKind.API_KEY, partner_id, given.name)
        return {"api_key": key}

    async def _api_keys(self, request: Request) -> Any:
        partner_id = number_in(request, "partner_id")
        keys = await actions.list_credentials(self._office, CredentialKind.API_KEY, partner_id)
        return {"api_keys": [{"id": one.id, "name": one.name, "created_on_ms": one.created_on_ms} for one in keys]}

    async def _revoke_api_key_named(self, request: Request) -> Any:
        key_id = str(request.path_params["key_id"])
        partner_id = number_in(request, "partner_id")
        await actions.revoke_credential(self._office, CredentialKind.API_KEY, partner_id, key_id)
        return {"revoked": key_id}

    async def _revoke_api_key(self, request: Request) -> Any:
        await actions.revoke_api_key(self._office, (await read_body(request, _Key)).api_key)
        return {"revoked": True}

    async def _apps(self, _request: Request) -> Any:
        apps = await self._office.database.read(stored.all_apps)
        return {"apps": [self._shown(app) for app in apps]}

    async def _add_app(self, request: Request) -> Any:
        given = await read_body(request, _NewApp)
        app, token = await actions.add_app(
            self._office,
            partner_id=given.partner_id,
            name=given.name,
            phone_number=given.phone_number,
            phone_number_id=given.phone_number_id,
            business_account_id=given.business_account_id,
            per_second=given.per_second,
        )
        return self._shown(app) | {"app_token": token}

    async def _messages_of_app(self, request: Request) -> Any:
        app_id = await self._app_in(request)
        read = self._office.database.read
        return {"messages": await read(newest_messages, app_id, MOST_MESSAGES)}

    async def _templates_of_app(self, request: Request) -> Any:
        app_id = await self._app_in(request)
        read = self._office.database.read
        return {"templates": await read(newest_templates, app_id, MOST_TEMPLATES)}

    async def _app_in(self, request: Request) -> str:
        app_id: str = request.path_params["app_id"]
        if await self._office.database.read(stored.app_by_id, app_id) is None:
            raise Refused(Reason.NOT_FOUND, "There is no such app.")
        return app_id

    async def _connect_app(self, request: Request) -> Any:
        given = await read_body(request, _Connection)
        app = await actions.connect_app(
            self._office,
            request.path_params["app_id"],
            phone_number=given.phone_number,
            phone_number_id=given.phone_number_id,
            business_account_id=given.business_account_id,
            live=given.live,
        )
        return self._shown(app)

    async def _renew_app_token(self, request: Request) -> Any:
        token = await actions.renew_app_token(self._office, request.path_params["app_id"])
        return {"app_token": token}

    async def _lanes(self, _request: Request) -> Any:
        read = self._office.database.read
        depths = {lane: await read(depth_of, lane) for lane in Lane}
        return {
            lane.name.lower(): {state.name.lower(): count for state, count in depth.items()}
            for lane, depth in depths.items()
        }

    async def _entries(self, _request: Request) -> Any:
        rows = await self._office.database.read(set_aside_entries)
        return {
            "set_aside": [
                {
                    "position": row.position,
                    "lane": Lane(row.lane).name.lower(),
                    "ref": row.ref,
                    "defects": row.defects,
                    "note": row.note,
                }
                for row in rows
            ]
        }

    async def _release_entry(self, request: Request) -> Any:
        now_ms = self._office.clock.now_ms()
        position = number_in(request, "position")
        if not await self._office.database.write(return_set_aside, position, now_ms):
            raise Refused(Reason.NOT_FOUND, "There is no such entry set aside.")
        return {"released": position}

    async def _drop_entry(self, request: Request) -> Any:
        position = number_in(request, "position")
        if not await self._office.database.write(drop_set_aside, position):
            raise Refused(Reason.NOT_FOUND, "There is no such entry set aside.")
        return {"dropped": position}

    async def _message_counts(self, _request: Request) -> Any:
        return {"messages": await self._office.database.read(message_counts)}

    async def _message(self, request: Request) -> Any:
        trace = await self._office.database.read(message_trace, request.path_params["message_id"])
        if trace is None:
            raise Refused(Reason.NOT_FOUND, "There is no such message.")
        return trace

    def _shown(self, app: App) -> dict[str, Any]:
        shown: dict[str, Any] = msgspec.to_builtins(app)
        return shown
