"""Partners for wire cases: each case has one that nobody else has, so that no case sees another's traces."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Table, insert

from tests.support.builders import OPERATOR, draft
from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox, hash_secret
from waypost.base.ids import Ids
from waypost.domain.app import App, BusinessAccount, Hosting
from waypost.domain.partner import Partner
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.store import tables
from waypost.store.database import Database
from waypost.store.encoding import app_columns, partner_columns, template_columns
from waypost.store.queue.inbound_webhooks import record_inbound_messages
from waypost.wire.login import issue_partner_token

ANSWERING: Final = "answering"
"""The operator account of the apps behind which somebody answers."""
PASSWORD: Final = "Correct-horse-1"
MOST: Final = 100_000_000
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
AT_ONCE: Final = 16


@dataclass(frozen=True)
class _Tenant:
    """A partner with everything it can have."""

    partner: Partner
    accounts: tuple[BusinessAccount, BusinessAccount]
    apps: tuple[App, ...]
    templates: tuple[Template, Template]
    values: Mapping[str, str]


class Tenants:
    """Makes partners, and gives the placeholders that name what they have."""

    def __init__(self, database: Database, seals: SecretBox, ids: Ids, clock: Clock, password_hash: str) -> None:
        self._database = database
        self._seals = seals
        self._ids = ids
        self._clock = clock
        self._password_hash = password_hash
        self._count = 0
        self._ready: dict[Hosting, list[_Tenant]] = {}
        self._made_ms = 0

    async def make(self, *, with_other: bool = True) -> dict[str, str]:
        """Placeholders of a fresh partner; those of another one, if it is wanted, begin with `other_`.

        The other's second app is on the on-premises variant. Behind the apps `direct_…` there is an
        operator that answers; behind all others nobody does. The apps `bare_…` have no number.
        """
        mine = await self._next(Hosting.CLOUD)
        if not with_other:
            return dict(mine.values)
        other = await self._next(Hosting.ON_PREMISES)
        return {**mine.values, **{f"other_{name}": value for name, value in other.values.items()}}

    async def hear(self, partner_id: int, app_id: str, message_id: str) -> None:
        """Note that an app has received a message with this id."""
        await self._database.write(record_inbound_messages, self._heard(partner_id, app_id, message_id))

    def _heard(self, partner_id: int, app_id: str, message_id: str) -> list[dict[str, Any]]:
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
        """One that nobody has had; many are made at once, because each commit is a flush to disk."""
        now_ms = self._clock.now_ms()
        if now_ms - self._made_ms > HOUR_MS:
            self._ready.clear()
            self._made_ms = now_ms
        ready = self._ready.setdefault(second, [])
        if not ready:
            ready += [self._tenant(second) for _ in range(AT_ONCE)]
            await self._database.write(self._keep, tuple(ready))
        return ready.pop()

    def _tenant(self, second: Hosting) -> _Tenant:
        self._count += 1
        number = MOST - self._count  # downwards: what the store numbers itself is above
        now_ms = self._clock.now_ms()
        partner = Partner(
            id=number,
            name=f"Acme {number}",
            email=f"ada{number}@acme.test",
            contact_name="Ada Lovelace",
            phone_number="15550009999",
        )
        account = BusinessAccount(f"1000{number:012d}", number, self._ids.new().replace("-", "_"), OPERATOR.id)
        answering = BusinessAccount(f"1001{number:012d}", number, self._ids.new().replace("-", "_"), ANSWERING)
        apps = (
            self._app(partner, account, 1),
            self._app(partner, account, 2, second),
            self._app(partner, answering, 3),
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
        )
        names = ("client_secret", "old_client_secret", "api_key")
        values: dict[str, str] = {name: self._ids.secret() for name in names}
        for name in ("partner_token", "old_token"):
            values[name] = issue_partner_token(self._seals, partner, jti=self._ids.new(), now_ms=now_ms)
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
            "direct_waba_id": answering.id,
            "direct_phone_number_id": apps[2].phone_number_id,
        }
        for prefix, app in zip(("", "second_", "direct_", "bare_"), apps, strict=True):
            values |= {
                f"{prefix}app_id": app.id,
                f"{prefix}app_name": app.name,
                f"{prefix}app_token": self._seals.app_token(app.id, 1),
                f"{prefix}source": app.phone_number,
            }
        return _Tenant(partner, (account, answering), apps, (template, disabled), values)

    def _app(self, partner: Partner, account: BusinessAccount, nth: int, hosting: Hosting = Hosting.CLOUD) -> App:
        made_ms = self._clock.now_ms() - 10 + nth  # so that lists have an order
        return App(
            id=self._ids.new(),
            partner_id=partner.id,
            name=f"Shop{partner.id}x{nth}",
            phone_number=f"1{nth}{partner.id:09d}",
            phone_number_id=f"2{nth}{partner.id:014d}",
            business_account_id=account.id,
            created_on_ms=made_ms,
            modified_on_ms=made_ms,
            hosting=hosting,
        )

    def _keep(self, connection: Connection, tenants: Sequence[_Tenant]) -> None:
        """All rows of a table in one statement: for three thousand cases, row by row is a third of the suite."""
        now_ms = self._clock.now_ms()
        rows: dict[Table, list[dict[str, Any]]] = {}

        def keep(table: Table, **columns: Any) -> None:
            rows.setdefault(table, []).append(columns)

        for one in tenants:
            owner, values = {"partner_id": one.partner.id}, one.values
            made = {"created_on_ms": now_ms}
            hashed = {"password_hash": self._password_hash, "id": one.partner.id}
            keep(tables.partners, **partner_columns(one.partner), **hashed, **made)
            for name, expires_ms in (("client_secret", None), ("old_client_secret", now_ms)):
                secret = {"hash": hash_secret(values[name]), "expires_on_ms": expires_ms}
                keep(tables.client_secrets, **secret, **owner, **made)
            key = {"hash": hash_secret(values["api_key"]), "name": "key"}
            keep(tables.api_keys, **key, **owner, **made)
            for name, expires_ms in (("partner_token", now_ms + DAY_MS), ("old_token", now_ms + 1)):
                token = {"hash": hash_secret(values[name]), "expires_on_ms": expires_ms}
                keep(tables.partner_tokens, **token, **owner)
            for account in one.accounts:
                keep(tables.business_accounts, **asdict(account))
            for app in one.apps:
                keep(tables.apps, **app_columns(app, hash_secret(self._seals.app_token(app.id, 1))))
            for template in one.templates:
                keep(tables.templates, **template_columns(template))
            for app, name in zip(one.apps, ("inbound_id", "second_inbound_id", "lost_inbound_id"), strict=False):
                [heard] = self._heard(one.partner.id, app.id, values[name])
                keep(tables.inbound_messages, **heard)
        for table, all_of_it in rows.items():
            connection.execute(insert(table), all_of_it)
