"""Cached lookups of credentials, apps and operator accounts, which are read often and change rarely.

Only hits are cached, for at most five seconds; `invalidate` applies a change at once, in every
process that shares the store.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox
from waypost.domain.app import App, AppKey, AppRoute, BusinessAccount, KeyStatus, OperatorAccount
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.accounts import credentials
from waypost.store.accounts import partners as stored
from waypost.store.apps.keys import app_key_by_hash
from waypost.store.apps.operator_history import find_app_route
from waypost.store.database import NOTIFICATIONS_MISSED, Database
from waypost.store.templates.templates import template_by_id

CachedValue = TypeVar("CachedValue")

DIRECTORY_CACHE_MS: Final = 5_000  # Source: decision 0082
MAX_DIRECTORY_ENTRIES: Final = 50_000
DIRECTORY_CHANGED: Final = "directory_changed"
"""Notification between processes: something that others may have cached has changed."""


class Directory:
    """Cached lookups of rows that rarely change."""

    def __init__(self, database: Database, secret_box: SecretBox, clock: Clock) -> None:
        self._database = database
        self._secret_box = secret_box
        self._clock = clock
        self._entries: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._generation = 0
        database.add_notification_listener(self._receive_notification)

    def invalidate(self) -> None:
        """Drop every cached hit, here and in every other process: a credential or an app has changed.

        Call it once the change is on disk: later reads are cached again.
        """
        self._clear()
        self._database.notify(DIRECTORY_CHANGED, "")

    def _clear(self) -> None:
        self._generation += 1
        self._entries.clear()

    def _receive_notification(self, subject: str, _content: str) -> None:
        if subject in (DIRECTORY_CHANGED, NOTIFICATIONS_MISSED):
            self._clear()

    def partner_of_api_key(self, key_hash: str) -> Awaitable[int | None]:
        """Return the partner with this API key."""
        return self._look_up("key", credentials.partner_of_api_key, key_hash)

    async def partner_of_app_token(self, token_hash: str) -> int | None:
        """Return the partner of the app of this token; an additional key or a minted token is accepted too."""
        partner_id = await self._look_up("app token", stored.partner_of_app_token, token_hash)
        if partner_id is not None:
            return partner_id
        key = await self.app_key(token_hash)
        if key is not None:
            return key.partner_id
        old = await self._look_up("old app token", stored.partner_of_old_app_token, token_hash)
        return old[0] if old and old[1] > self._clock.now_ms() else None

    async def app_key(self, key_hash: str) -> AppKey | None:
        """Return the additional key or minted token with this hash, unless it has expired or was revoked."""
        key = await self._look_up("app key", app_key_by_hash, key_hash)
        if key is None or key.status(self._clock.now_ms()) is not KeyStatus.ACTIVE:
            return None
        return key

    async def partner_of_token(self, token_hash: str) -> int | None:
        """Return the partner with this partner token, unless it has expired."""
        token = await self._look_up("token", stored.partner_of_token, token_hash)
        return token[0] if token and token[1] > self._clock.now_ms() else None

    async def partner_of_universal_token(self, token_hash: str) -> int | None:
        """Return the partner with this universal token, unless it has expired."""
        token = await self._look_up("universal token", credentials.universal_token, token_hash)
        return token[0] if token and token[1] > self._clock.now_ms() else None

    def app(self, app_id: str) -> Awaitable[App | None]:
        """Return one app; the caller compares its partner."""
        return self._look_up("app", stored.app_by_id, app_id)

    def app_by_source(self, partner_id: int, source: str) -> Awaitable[App | None]:
        """Return the partner's app with this source number."""
        return self._look_up("source", stored.app_by_source, partner_id, source)

    def business_account(self, account_id: str) -> Awaitable[BusinessAccount | None]:
        """Return one business account."""
        return self._look_up("business account", stored.business_account_by_id, account_id)

    def operator_account(self, account_id: str) -> Awaitable[OperatorAccount | None]:
        """Return one operator account with its secrets decrypted."""
        return self._look_up("operator account", stored.operator_account_by_id, account_id, self.unseal)

    async def operator_account_of(self, app: App) -> OperatorAccount | None:
        """Return the operator account of an app."""
        account = await self.business_account(app.business_account_id)
        return await self.operator_account(account.operator_account_id) if account else None

    def app_route(self, app_id: str) -> Awaitable[AppRoute | None]:
        """Return an app with its operator account, both of the same moment: never half switched."""
        return self._look_up("app route", find_app_route, app_id, self.unseal)

    def first_operator_account_id(self) -> Awaitable[str | None]:
        """Return the id of the operator account of the plain webhook path."""
        return self._look_up("first", stored.first_operator_account_id)

    async def template(self, app: App, template_id: str) -> Template | None:
        """Return the template with this id, of any status but deleted, if it belongs to the app's business account."""
        template = await self.template_by_id(template_id)
        is_visible = (
            template is not None
            and template.status is not TemplateStatus.DELETED
            and template.partner_id == app.partner_id
            and template.business_account_id == app.business_account_id
        )
        return template if is_visible else None

    def template_by_id(self, template_id: str) -> Awaitable[Template | None]:
        """Return the template with this id, of any status and partner."""
        return self._look_up("template", template_by_id, template_id)

    def seal(self, secret: str, owner_id: str) -> bytes:
        """Encrypt with the instance key."""
        return self._secret_box.seal(secret, owner=owner_id)

    def unseal(self, sealed: bytes, owner_id: str) -> str:
        """Decrypt with the instance key."""
        return self._secret_box.open(sealed, owner=owner_id)

    async def _look_up(self, kind: str, query: Callable[..., CachedValue | None], *args: Any) -> CachedValue | None:
        key = (kind, *args)
        now_ms = self._clock.real_ms()
        cached = self._entries.get(key)
        if cached is not None and now_ms - cached[0] < DIRECTORY_CACHE_MS:
            return cached[1]
        generation = self._generation
        record = await self._database.read(query, *args)
        if record is None:
            self._entries.pop(key, None)
        elif generation == self._generation:  # otherwise it may be older than the change
            if len(self._entries) >= MAX_DIRECTORY_ENTRIES:
                self._entries.clear()
            self._entries[key] = (now_ms, record)
        return record
