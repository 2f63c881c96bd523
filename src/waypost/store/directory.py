"""Cached lookups of credentials, apps and operator accounts, which are read often and change rarely.

Only hits are cached, for at most five seconds; `invalidate` applies a change at once, in every
process that shares the store.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.encryption import Seals
from waypost.domain.app import App, AppKey, BusinessAccount, KeyStatus, Line, OperatorAccount
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.store.accounts import credentials
from waypost.store.accounts import partners as stored
from waypost.store.apps.keys import app_key_by_hash
from waypost.store.apps.operator_history import line_of
from waypost.store.database import MISSED, Database
from waypost.store.templates.templates import template_by_id

Found = TypeVar("Found")

KEPT_MS: Final = 5_000  # Source: decision 0082
MOST_KEPT: Final = 50_000
FORGET: Final = "forget"
"""Notification between processes: something that others may have cached has changed."""


class Directory:
    """Cached lookups of rows that rarely change."""

    def __init__(self, database: Database, seals: Seals, clock: Clock) -> None:
        self._database = database
        self._seals = seals
        self._clock = clock
        self._kept: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._times_forgotten = 0
        database.on_notification(self._told)

    def forget(self) -> None:
        """Drop every cached hit, here and in every other process: a credential or an app has changed.

        Call it once the change is on disk: later reads are cached again.
        """
        self._forget()
        self._database.notify(FORGET, "")

    def _forget(self) -> None:
        self._times_forgotten += 1
        self._kept.clear()

    def _told(self, subject: str, _words: str) -> None:
        if subject in (FORGET, MISSED):
            self._forget()

    async def partner_of_api_key(self, key_hash: str) -> int | None:
        """Return the partner with this API key."""
        return await self._look("key", credentials.partner_of_api_key, key_hash)

    async def partner_of_app_token(self, token_hash: str) -> int | None:
        """Return the partner of the app of this token; an additional key or a minted token is accepted too."""
        partner_id = await self._look("app token", stored.partner_of_app_token, token_hash)
        if partner_id is not None:
            return partner_id
        key = await self.app_key(token_hash)
        return key.partner_id if key is not None else None

    async def app_key(self, key_hash: str) -> AppKey | None:
        """Return the additional key or minted token with this hash, unless it has expired or was revoked."""
        key = await self._look("app key", app_key_by_hash, key_hash)
        if key is None or key.status(self._clock.now_ms()) is not KeyStatus.ACTIVE:
            return None
        return key

    async def partner_of_token(self, token_hash: str) -> int | None:
        """Return the partner with this partner token, unless it has expired."""
        token = await self._look("token", stored.partner_of_token, token_hash)
        return token[0] if token and token[1] > self._clock.now_ms() else None

    async def app(self, app_id: str) -> App | None:
        """Return one app; the caller compares its partner."""
        return await self._look("app", stored.app_by_id, app_id)

    async def app_by_source(self, partner_id: int, source: str) -> App | None:
        """Return the partner's app with this source number."""
        return await self._look("source", stored.app_by_source, partner_id, source)

    async def business_account(self, account_id: str) -> BusinessAccount | None:
        """Return one business account."""
        return await self._look("business account", stored.business_account_by_id, account_id)

    async def operator_account(self, account_id: str) -> OperatorAccount | None:
        """Return one operator account with its secrets decrypted."""
        return await self._look("operator account", stored.operator_account_by_id, account_id, self.unseal)

    async def operator_account_of(self, app: App) -> OperatorAccount | None:
        """Return the operator account of an app."""
        account = await self.business_account(app.business_account_id)
        return await self.operator_account(account.operator_account_id) if account else None

    async def line(self, app_id: str) -> Line | None:
        """Return an app with its operator account, both of the same moment: never half switched."""
        return await self._look("app route", line_of, app_id, self.unseal)

    async def first_operator_account_id(self) -> str | None:
        """Return the id of the operator account of the plain webhook path."""
        return await self._look("first", stored.first_operator_account_id)

    async def template(self, app: App, template_id: str) -> Template | None:
        """Return the template with this id, of any status but deleted, if it belongs to the app's business account."""
        template = await self._look("template", template_by_id, template_id)
        is_visible = (
            template is not None
            and template.status is not TemplateStatus.DELETED
            and template.partner_id == app.partner_id
            and template.business_account_id == app.business_account_id
        )
        return template if is_visible else None

    def seal(self, secret: str, of: str) -> bytes:
        """Encrypt with the instance key."""
        return self._seals.seal(secret, of=of)

    def unseal(self, sealed: bytes, of: str) -> str:
        """Decrypt with the instance key."""
        return self._seals.open(sealed, of=of)

    async def _look(self, kind: str, look: Callable[..., Found | None], *args: Any) -> Found | None:
        key = (kind, *args)
        now_ms = self._clock.real_ms()
        cached = self._kept.get(key)
        if cached is not None and now_ms - cached[0] < KEPT_MS:
            return cached[1]
        generation = self._times_forgotten
        record = await self._database.read(look, *args)
        if record is None:
            self._kept.pop(key, None)
        elif generation == self._times_forgotten:  # otherwise it may be older than the change
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (now_ms, record)
        return record
