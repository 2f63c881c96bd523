"""Two partners with their apps, numbers, templates and subscriptions, on both sides."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from simulation.agreement import ExpectedTerms
from simulation.choices import Choices
from simulation.observed import Observed, SubscriptionTerms
from waypost.admin import provisioning
from waypost.admin.apps import NewApp, add_app
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.encryption import hash_secret
from waypost.domain.app import BusinessAccount
from waypost.domain.callbacks import Subscription
from waypost.domain.partner import Partner
from waypost.operators.cloud.numbers import cloud_account
from waypost.simulator import AccountSeed, NumberSeed, Simulator
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.accounts.partners import add_partner
from waypost.store.callbacks.subscriptions import add_subscription
from waypost.store.properties import seed_template

PORTS: Final = {"service": 8001, "operator": 8002, "receiver 1": 8003, "receiver 2": 8004, "site": 8005}
ALL_MODES: Final = ("ENQUEUED", "SENT", "DELIVERED", "READ", "FAILED", "MESSAGE", "TEMPLATE")
MODES: Final[Sequence[tuple[str, ...]]] = (
    ALL_MODES,
    ("ENQUEUED", "FAILED", "MESSAGE"),
    ("SENT", "DELIVERED", "READ"),
    ("READ", "FAILED"),
)
REJECTS_UNTIL_S: Final = (400, 3000)
"""Longer than a callback that fails blocks the later ones of its recipient, and than the retry after that takes: for
each of the settings."""
_BUTTONS: Final[Any] = demo.COMPONENTS[-1]["buttons"]
BUTTONS: Final = tuple(str(button["text"]) for button in _BUTTONS)
"""The labels of each partner's first template."""
SLOW_PER_SECOND: Final = 2
"""The throughput of the second app."""


@dataclass
class AppAccount:
    """An app with its number; `id` and `token` once it is added to the service."""

    name: str
    source: str
    per_second: int
    number_id: str
    id: str = ""
    token: str = ""

    def __str__(self) -> str:
        """Return its name, for a story."""
        return self.name


@dataclass
class PartnerAccount:
    """A partner with one business account at an operator account of its own."""

    number: int
    name: str
    apps: list[AppAccount]
    api_keys: list[str]
    graph_tokens: list[str]
    subscriptions: dict[str, str] = field(default_factory=dict)
    """The ids of the subscriptions that it may change, by the path of their URL."""
    expected_terms: dict[str, ExpectedTerms] = field(default_factory=dict)
    """What may be stored of each subscription, by that path."""

    def __str__(self) -> str:
        """Return its name, for a story."""
        return self.name

    @property
    def operator_account(self) -> str:
        """Return the id of its operator account."""
        return f"operator-{self.number}"

    @property
    def waba_id(self) -> str:
        """Return the operator's id of its business account."""
        return f"100000000000010{self.number}"

    @property
    def template_id(self) -> str:
        """Return the id of its first template, which all of its apps may send."""
        return f"{demo.TEMPLATE_ID[:-1]}{self.number}"

    @property
    def receiver_port(self) -> int:
        """Return the port of its receiver."""
        return PORTS[f"receiver {self.number}"]


def make_partners() -> list[PartnerAccount]:
    """Return both partners: one with two apps, of which one is slow, and one with one app."""
    return [
        PartnerAccount(
            1,
            "Acme",
            [
                AppAccount("AcmeShop", "15550001001", 80, "1000000000000201"),
                AppAccount("AcmeBank", "15550001002", SLOW_PER_SECOND, "1000000000000202"),
            ],
            [demo.API_KEY],
            ["graph-token-1"],
        ),
        PartnerAccount(
            2, "Bolt", [AppAccount("BoltTaxi", "15550001003", 80, "1000000000000203")], ["b1" * 32], ["graph-token-2"]
        ),
    ]


async def seed_operator(simulator: Simulator, partner: PartnerAccount) -> None:
    """Give a partner its business account, numbers and a template at the operator."""
    account = AccountSeed(
        waba_id=partner.waba_id,
        name=partner.name,
        namespace=f"de300000_0000_7000_8000_0000000000a{partner.number}",
        token=partner.graph_tokens[0],
        app_id=f"100000000000030{partner.number}",
        app_secret=f"app-secret-{partner.number}",
        verify_token=demo.VERIFY_TOKEN,
        callback_uri=f"http://127.0.0.1:{PORTS['service']}/operator/webhook/{partner.operator_account}",
    )
    numbers = [NumberSeed(app.number_id, partner.waba_id, app.source, app.name) for app in partner.apps]
    await simulator.seed(account, numbers)
    draft = demo.template(0).draft
    await simulator.seed_template(
        template_id=f"100000000000040{partner.number}",
        waba_id=partner.waba_id,
        name=draft.element_name or "",
        language=draft.language_code,
        category=draft.category or "",
        components=list(demo.COMPONENTS),
    )


async def seed_service(waypost: Waypost, partner: PartnerAccount, choices: Choices, observed: Observed) -> None:
    """Give a partner its accounts, apps, templates and first subscriptions at the service."""
    context, database = waypost.admin_context, waypost.database
    now_ms = context.clock.now_ms()
    operator_account = cloud_account(
        partner.operator_account,
        f"http://127.0.0.1:{PORTS['operator']}",
        version=demo.GRAPH_VERSION,
        token=partner.graph_tokens[0],
        app_id=f"100000000000030{partner.number}",
        app_secret=f"app-secret-{partner.number}",
        verify_token=demo.VERIFY_TOKEN,
    )
    await provisioning.put_operator_account(context, operator_account)
    account = Partner(id=partner.number, name=partner.name, email=f"partner-{partner.number}@waypost.test")
    await database.write(add_partner, account, "no password", now_ms)
    key_hash = hash_secret(partner.api_keys[0])
    await database.write(add_credential, CredentialKind.API_KEY, partner.number, key_hash, now_ms)
    namespace = f"de300000_0000_7000_8000_0000000000a{partner.number}"
    business_account = BusinessAccount(partner.waba_id, partner.number, namespace, partner.operator_account)
    await provisioning.add_business_account(context, business_account)
    for app in partner.apps:
        new_app = NewApp(partner.number, app.name, app.source, app.number_id, partner.waba_id, app.per_second)
        added = await add_app(context, new_app)
        app.id, app.token = added.id, added.app_token
        for nth in range(1 + int(choices.between("more subscriptions", 0, 2.99))):
            modes = choices.pick("modes", MODES)
            path = f"/{app.name}/first-{nth}"
            version = choices.pick("version", (2, 3))
            number = await _subscribe(waypost, partner, app, path, modes, version, now_ms)
            if nth:  # the partner may change all but the first
                partner.subscriptions[path] = number
            observed.subscriptions[path] = SubscriptionTerms(app.id, modes, is_steady=not nth)
            partner.expected_terms[path] = ExpectedTerms((frozenset(modes), True))

    template = replace(
        demo.template(now_ms),
        id=partner.template_id,
        app_id=partner.apps[0].id,
        partner_id=partner.number,
        business_account_id=partner.waba_id,
        namespace=namespace,
        operator_template_id=f"100000000000040{partner.number}",
    )
    await database.write(seed_template, template)


async def _subscribe(
    waypost: Waypost,
    partner: PartnerAccount,
    app: AppAccount,
    path: str,
    modes: tuple[str, ...],
    version: int,
    now_ms: int,
) -> str:
    url = f"http://127.0.0.1:{partner.receiver_port}{path}"
    subscription = Subscription("", partner.number, app.id, path, url, version, modes, now_ms, now_ms)
    return await waypost.database.write(add_subscription, subscription, waypost.directory.seal, 5)


class Receiver:
    """A partner's receiver; what it got is in what was observed.

    Args:
        rejects_nth: the callback that it rejects for so long, as a mistake of its own would; None: none.

    Attributes:
        takes_s: for each callback.
        fails_at: it answers 503 to all callbacks of this path, as when it is away; empty: none.
    """

    takes_s, fails_at = 0.0, ""

    def __init__(self, rejects_nth: int | None = None, rejects_until_s: float = 0) -> None:
        self.rejects_nth, self._rejects_until_s = rejects_nth, rejects_until_s
        self._seen: dict[bytes, int] = {}  # ids of callbacks, in the order of their first attempts

    def reject_next(self, for_s: float) -> None:
        """Reject the next callback that is new, for so many seconds from now on."""
        self.rejects_nth, self._rejects_until_s = len(self._seen), _now_s() + for_s

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Accept one callback, or reject it."""
        while (await receive()).get("more_body"):
            pass
        await asyncio.sleep(self.takes_s)
        callback_id = dict(scope["headers"]).get(b"waypost-callback-id")
        nth = None if callback_id is None else self._seen.setdefault(callback_id, len(self._seen))
        is_rejected = nth is not None and nth == self.rejects_nth and _now_s() < self._rejects_until_s
        status = 503 if scope["path"] == self.fails_at else 400 if is_rejected else 200
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


def _now_s() -> float:
    return asyncio.get_running_loop().time()
