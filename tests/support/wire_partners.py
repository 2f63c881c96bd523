"""Partners for wire cases: each case has its own, so that no case sees the effects of another."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Table, insert

from tests.support.builders import OPERATOR, draft
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox, hash_secret
from waypost.base.ids import Ids
from waypost.domain.app import App, AppPreferences, BusinessAccount, Hosting
from waypost.domain.partner import Partner
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.store import tables
from waypost.store.database import Database
from waypost.store.encoding import app_columns, partner_columns, template_columns
from waypost.store.queue.inbound_webhooks import record_inbound_messages
from waypost.wire.tokens import issue_partner_token

REACHABLE_OPERATOR: Final = "reachable"
"""The operator account of the apps whose operator can be reached."""
PASSWORD: Final = "Correct-horse-1"
MAX_PARTNER_ID: Final = 100_000_000
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
BATCH_SIZE: Final = 16
UPLOADS: Final = {"image": "image/png", "video": "video/mp4", "document": "application/pdf"}
"""The uploads that each partner has: their placeholders, such as `{image_id}`, and their MIME types."""


@dataclass(frozen=True)
class _Tenant:
    """A partner with accounts, apps, templates and credentials."""

    partner: Partner
    accounts: tuple[BusinessAccount, BusinessAccount]
    apps: tuple[App, ...]
    templates: tuple[Template, ...]
    values: Mapping[str, str]


class Tenants:
    """Creates partners, and returns the placeholders for their ids, names and credentials."""

    def __init__(self, database: Database, secret_box: SecretBox, ids: Ids, clock: Clock, password_hash: str) -> None:
        self._database = database
        self._secret_box = secret_box
        self._ids = ids
        self._clock = clock
        self._password_hash = password_hash
        self._count = 0
        self._ready: dict[Hosting, list[_Tenant]] = {}
        self._created_ms = 0

    async def make(self, *, with_other: bool = True) -> dict[str, str]:
        """Return the placeholders of a new partner and, if requested, of another one, as `other_…`.

        The other's second app is on the on-premises variant. Only the apps `direct_…` have an
        operator that can be reached. The apps `bare_…` have no number.
        """
        own = await self._next(Hosting.CLOUD)
        if not with_other:
            return dict(own.values)
        other = await self._next(Hosting.ON_PREMISES)
        return {**own.values, **{f"other_{name}": value for name, value in other.values.items()}}

    async def record_inbound(self, partner_id: int, app_id: str, message_id: str) -> None:
        """Record that an app has received a message with this id."""
        await self._database.write(record_inbound_messages, self._inbound_rows(partner_id, app_id, message_id))

    def _inbound_rows(self, partner_id: int, app_id: str, message_id: str) -> list[dict[str, Any]]:
        return [
            {
                "operator_message_id": message_id,
                "partner_id": partner_id,
                "app_id": app_id,
                "recipient_id": 1,
                "kind": "text",
                "item_id": 1,
                "received_on_ms": self._clock.now_ms(),
            }
        ]

    async def _next(self, second: Hosting) -> _Tenant:
        """Return a partner that no case has used; they are created in batches, because each commit is a flush to disk."""
        now_ms = self._clock.now_ms()
        if now_ms - self._created_ms > HOUR_MS:
            self._ready.clear()
            self._created_ms = now_ms
        ready = self._ready.setdefault(second, [])
        if not ready:
            ready += [self._tenant(second) for _ in range(BATCH_SIZE)]
            await self._database.write(self._store, tuple(ready))
        return ready.pop()

    def _tenant(self, second: Hosting) -> _Tenant:
        self._count += 1
        number = MAX_PARTNER_ID - self._count  # counts down: ids that the store assigns are above
        now_ms = self._clock.now_ms()
        partner = Partner(
            id=number,
            name=f"Acme {number}",
            email=f"ada{number}@acme.test",
            contact_name="Ada Lovelace",
            phone_number="15550009999",
        )
        account = BusinessAccount(f"1000{number:012d}", number, self._ids.new().replace("-", "_"), OPERATOR.id)
        reachable = BusinessAccount(f"1001{number:012d}", number, self._ids.new().replace("-", "_"), REACHABLE_OPERATOR)
        apps = (
            self._app(partner, account, 1),
            self._app(partner, account, 2, second),
            self._app(partner, reachable, 3),
            replace(self._app(partner, account, 4), phone_number="", phone_number_id="", business_account_id=""),
        )
        replies = (TemplateButton(ButtonKind.QUICK_REPLY, "Yes"), TemplateButton(ButtonKind.QUICK_REPLY, "No"))
        older, newer = sorted((self._ids.new(), self._ids.new()))
        template = Template(
            id=newer,
            partner_id=number,
            app_id=apps[0].id,
            business_account_id=account.id,
            namespace=account.namespace,
            draft=draft(element_name="seeded", buttons=replies),
            status=TemplateStatus.APPROVED,
            created_on_ms=now_ms,
            modified_on_ms=now_ms,
            category=Category.UTILITY,
        )
        disabled = replace(
            template,
            id=older,
            draft=draft(element_name="disabled", category="MARKETING"),
            category=Category.MARKETING,
            status=TemplateStatus.DISABLED,
            quality="LOW",
            operator_template_id=f"13{number:014d}",
        )
        offer = replace(
            disabled,
            id=self._ids.new(),
            app_id=apps[2].id,
            business_account_id=reachable.id,
            namespace=reachable.namespace,
            draft=draft(element_name="offer", category="MARKETING"),
            status=TemplateStatus.APPROVED,
            operator_template_id=f"14{number:014d}",
        )
        names = ("client_secret", "old_client_secret", "api_key")
        values: dict[str, str] = {name: self._ids.secret() for name in names}
        for name in ("partner_token", "old_token"):
            values[name] = issue_partner_token(self._secret_box, partner, jti=self._ids.new(), now_ms=now_ms)
        values |= {
            "partner_id": str(number),
            "partner_name": partner.name,
            "email": partner.email,
            "password": PASSWORD,
            "waba_id": account.id,
            "namespace": account.namespace,
            "template_id": template.id,
            "inbound_id": f"wamid.in{number}",
            "second_inbound_id": f"wamid.second{number}",
            "lost_inbound_id": f"wamid.lost{number}",
            "disabled_template_id": disabled.id,
            "direct_template_id": offer.id,
            "direct_operator_template_id": str(offer.operator_template_id),
            "direct_waba_id": reachable.id,
            "direct_phone_number_id": apps[2].phone_number_id,
            **{f"{kind}_id": f"{nth}5{number:014d}" for nth, kind in enumerate(UPLOADS, 1)},
        }
        for prefix, app in zip(("", "second_", "direct_", "bare_"), apps, strict=True):
            values |= {
                f"{prefix}app_id": app.id,
                f"{prefix}app_name": app.name,
                f"{prefix}app_token": self._secret_box.app_token(app.id, 1),
                f"{prefix}source": app.phone_number,
            }
        return _Tenant(partner, (account, reachable), apps, (template, disabled, offer), values)

    def _app(self, partner: Partner, account: BusinessAccount, nth: int, hosting: Hosting = Hosting.CLOUD) -> App:
        created_ms = self._clock.now_ms() - 10 + nth  # so that lists have an order
        return App(
            id=self._ids.new(),
            partner_id=partner.id,
            name=f"Shop{partner.id}x{nth}",
            phone_number=f"1{nth}{partner.id:09d}",
            phone_number_id=f"2{nth}{partner.id:014d}",
            business_account_id=account.id,
            created_on_ms=created_ms,
            modified_on_ms=created_ms,
            hosting=hosting,
            preferences=AppPreferences(marketing_messages=nth in (2, 3)),
        )

    def _store(self, connection: Connection, tenants: Sequence[_Tenant]) -> None:
        """Insert all rows of a table in one statement: row by row takes a third of the suite's time."""
        now_ms = self._clock.now_ms()
        rows: dict[Table, list[dict[str, Any]]] = {}

        def add(table: Table, **columns: Any) -> None:
            rows.setdefault(table, []).append(columns)

        for tenant in tenants:
            owner, values = {"partner_id": tenant.partner.id}, tenant.values
            created = {"created_on_ms": now_ms}
            hashed = {"password_hash": self._password_hash, "id": tenant.partner.id}
            add(tables.partners, **partner_columns(tenant.partner), **hashed, **created)
            for name, expires_ms in (("client_secret", None), ("old_client_secret", now_ms)):
                secret = {"hash": hash_secret(values[name]), "expires_on_ms": expires_ms}
                add(tables.client_secrets, **secret, **owner, **created)
            key = {"hash": hash_secret(values["api_key"]), "name": "key"}
            add(tables.api_keys, **key, **owner, **created)
            for name, expires_ms in (("partner_token", now_ms + DAY_MS), ("old_token", now_ms + 1)):
                token = {"hash": hash_secret(values[name]), "expires_on_ms": expires_ms}
                add(tables.partner_tokens, **token, **owner)
            for account in tenant.accounts:
                add(tables.business_accounts, **asdict(account))
            for app in tenant.apps:
                add(tables.apps, **app_columns(app, hash_secret(self._secret_box.app_token(app.id, 1))))
            for template in tenant.templates:
                add(tables.templates, **template_columns(template))
            for app, name in zip(tenant.apps, ("inbound_id", "second_inbound_id", "lost_inbound_id"), strict=False):
                [inbound] = self._inbound_rows(tenant.partner.id, app.id, values[name])
                add(tables.inbound_messages, **inbound)
            for kind, mime_type in UPLOADS.items():
                upload = {"id": values[f"{kind}_id"], "handle": None, "mime_type": mime_type, "size_bytes": 1}
                lasting = {"expires_on_ms": now_ms + 30 * DAY_MS, "sha256": "0" * 64, "file_name": ""}
                add(tables.media, **upload, **lasting, **owner, **created, app_id=tenant.apps[0].id)
        for table, table_rows in rows.items():
            connection.execute(insert(table), table_rows)
