"""Partners for wire cases: each case gets two that nobody else has, so that no case sees another's traces."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from tests.support.builders import OPERATOR, draft
from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.seals import Seals, hash_of
from waypost.domain.app import App, BusinessAccount
from waypost.domain.buttons import Button, ButtonKind
from waypost.domain.partner import Partner
from waypost.domain.template import Category, Template, TemplateStatus
from waypost.store import partners as stored
from waypost.store.database import Database
from waypost.store.kind import seed_template

PASSWORD: Final = "Correct-horse-1"
MOST: Final = 100_000_000
HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS


@dataclass(frozen=True)
class _Tenant:
    """A partner with everything it can have."""

    partner: Partner
    account: BusinessAccount
    apps: tuple[App, App]
    template: Template
    values: Mapping[str, str]


class Tenants:
    """Makes partners, and gives the placeholders that name what they have."""

    def __init__(
        self, database: Database, seals: Seals, ids: Ids, clock: Clock, password_hash: str
    ) -> None:
        self._database = database
        self._seals = seals
        self._ids = ids
        self._clock = clock
        self._password_hash = password_hash
        self._count = 0
        self._ready: list[_Tenant] = []
        self._made_ms = 0

    async def make(self) -> dict[str, str]:
        """Placeholders of a fresh partner; those of another one begin with `other_`."""
        mine, other = await self._next(), await self._next()
        return {
            **mine.values,
            **{f"other_{name}": value for name, value in other.values.items()},
        }

    async def _next(self) -> _Tenant:
        """One that nobody has had; many are made at once, because each commit is a flush to disk."""
        now_ms = self._clock.now_ms()
        if not self._ready or now_ms - self._made_ms > HOUR_MS:
            self._ready = [self._tenant() for _ in range(40)]
            self._made_ms = now_ms
            await self._database.write(self._keep, tuple(self._ready))
        return self._ready.pop()

    def _tenant(self) -> _Tenant:
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
        account = BusinessAccount(
            f"1000{number:012d}", number, self._ids.new().replace("-", "_"), OPERATOR.id
        )
        apps = (self._app(partner, account, 1), self._app(partner, account, 2))
        replies = (Button(ButtonKind.QUICK_REPLY, "Yes"), Button(ButtonKind.QUICK_REPLY, "No"))
        template = Template(
            id=self._ids.new(),
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
        names = ("client_secret", "old_client_secret", "api_key", "partner_token", "old_token")
        values: dict[str, str] = {name: self._ids.secret() for name in names}
        values |= {
            "partner_id": str(number),
            "partner_name": partner.name,
            "email": partner.email,
            "password": PASSWORD,
            "waba_id": account.id,
            "namespace": account.namespace,
            "template_id": template.id,
        }
        for prefix, app in (("", apps[0]), ("second_", apps[1])):
            values |= {
                f"{prefix}app_id": app.id,
                f"{prefix}app_name": app.name,
                f"{prefix}app_token": self._seals.app_token(app.id, 1),
                f"{prefix}source": app.phone_number,
            }
        return _Tenant(partner, account, apps, template, values)

    def _app(self, partner: Partner, account: BusinessAccount, nth: int) -> App:
        now_ms = self._clock.now_ms()
        return App(
            id=self._ids.new(),
            partner_id=partner.id,
            name=f"Shop{partner.id}x{nth}",
            phone_number=f"1{nth}{partner.id:09d}",
            phone_number_id=f"2{nth}{partner.id:014d}",
            business_account_id=account.id,
            created_on_ms=now_ms,
            modified_on_ms=now_ms,
        )

    def _keep(self, connection: Connection, tenants: tuple[_Tenant, ...]) -> None:
        now_ms = self._clock.now_ms()
        for one in tenants:
            partner_id, values = one.partner.id, one.values
            stored.add_partner(connection, one.partner, self._password_hash, now_ms)
            for name, expires in (("client_secret", None), ("old_client_secret", now_ms)):
                secret = hash_of(values[name])
                stored.add_client_secret(connection, partner_id, secret, now_ms, expires)
            stored.add_api_key(connection, hash_of(values["api_key"]), partner_id, "key", now_ms)
            for name, expires_ms in (("partner_token", now_ms + DAY_MS), ("old_token", now_ms + 1)):
                token = hash_of(values[name])
                stored.add_partner_token(connection, token, partner_id, now_ms, expires_ms)
            stored.add_business_account(connection, one.account)
            for app in one.apps:
                token = hash_of(self._seals.app_token(app.id, 1))
                stored.add_app(connection, app, token)
            seed_template(connection, one.template)
