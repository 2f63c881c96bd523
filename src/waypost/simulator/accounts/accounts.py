"""Business accounts, their apps and numbers: few, kept in memory, written through to the file."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from waypost.simulator.store import Row, Statement, Store

_KEEP_APP: Final = "INSERT OR REPLACE INTO apps VALUES (?,?,?,?)"
_KEEP_ACCOUNT: Final = "INSERT OR REPLACE INTO accounts VALUES (?,?,?,?,?)"
_SUBSCRIBE: Final = "INSERT OR REPLACE INTO subscriptions VALUES (?,?,?)"
_UNSUBSCRIBE: Final = tuple(
    f"DELETE FROM {table} WHERE waba_id=? AND app_id=?"  # noqa: S608
    for table in ("subscriptions", "outbox", "judged_updates", "retries")
)
_OTHER_APP: Final = tuple(
    f"UPDATE OR REPLACE {table} SET app_id=?2 WHERE waba_id=?1 AND app_id=?3"  # noqa: S608
    for table in ("subscriptions", "outbox", "judged_updates")
)
_OVERRIDE: Final = "INSERT OR REPLACE INTO number_webhooks VALUES (?,?,?)"
_NO_OVERRIDE: Final = "DELETE FROM number_webhooks WHERE app_id=? AND phone_number_id=?"
_KEEP_NUMBER: Final = "INSERT OR REPLACE INTO numbers VALUES (?,?,?,?,?)"


@dataclass(frozen=True)
class App:
    """What signs webhooks, and where they go unless an account says otherwise."""

    app_id: str
    app_secret: str
    callback_uri: str = ""
    verify_token: str = ""

    @property
    def token(self) -> str:
        """What its owner sets it up with. Source: the operator's page "App access tokens"."""
        return f"{self.app_id}|{self.app_secret}"


@dataclass(frozen=True)
class Account:
    """A business account; `app_id` is the app whose credential its token is."""

    waba_id: str
    name: str
    namespace: str
    token: str
    app_id: str


@dataclass(frozen=True)
class Subscription:
    """An app hears of an account; `override_uri` is where, empty for the app's own address."""

    waba_id: str
    app_id: str
    override_uri: str = ""


@dataclass(frozen=True)
class Number:
    """A business phone number; `throughput` is in messages a second."""

    phone_number_id: str
    waba_id: str
    phone_number: str
    name: str
    throughput: int


@dataclass(frozen=True)
class Outlet:
    """What of an account goes to one address: in order, and held up by no other outlet.

    Args:
        waba_id: the account.
        app_id: the app that hears it.
        phone_number_id: the number that has an address of its own with the app; empty: all the rest.
        apart: the numbers that are not among the rest.
    """

    waba_id: str
    app_id: str
    phone_number_id: str = ""
    apart: tuple[str, ...] = field(default=(), compare=False)

    @property
    def condition(self) -> tuple[str, Row]:
        """What is true of the outlet's updates, as SQL, and the values that belong into it."""
        known = (self.waba_id, self.app_id)
        if self.phone_number_id:
            return "waba_id=? AND app_id=? AND phone_number_id=?", (*known, self.phone_number_id)
        if self.apart:
            marks = ",".join("?" * len(self.apart))
            return (f"waba_id=? AND app_id=? AND phone_number_id NOT IN ({marks})", (*known, *self.apart))
        return "waba_id=? AND app_id=?", known


@dataclass(frozen=True)
class Destination:
    """Where the webhooks of an outlet go, and the key that signs them."""

    uri: str
    app_secret: str


class Accounts:
    """Knows every account, app and number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.apps: dict[str, App] = {}
        self.by_id: dict[str, Account] = {}
        self.numbers: dict[str, Number] = {}
        self.numbers_by_digits: dict[str, Number] = {}
        self.overrides: dict[tuple[str, str], str] = {}
        """Addresses of their own, by app and number."""
        self._subscriptions: dict[str, dict[str, Subscription]] = {}
        self._holders: dict[str, tuple[str, ...]] = {}

    async def open(self) -> None:
        """Read everything from the file."""
        for row in await self._store.rows("SELECT * FROM apps"):
            self.apps[row[0]] = App(*row)
        for row in await self._store.rows("SELECT * FROM accounts"):
            self.by_id[row[0]] = Account(*row)
        for row in await self._store.rows("SELECT * FROM subscriptions"):
            self._hear(Subscription(*row))
        for row in await self._store.rows("SELECT * FROM numbers"):
            self._learn(Number(*row))
        for app_id, number_id, uri in await self._store.rows("SELECT * FROM number_webhooks"):
            self.overrides[app_id, number_id] = uri
        self._learn_tokens()

    def holders(self, token: str) -> tuple[str, ...]:
        """The ids of the accounts that were made with this token."""
        return self._holders.get(token, ())

    def subscriptions_of(self, waba_id: str) -> list[Subscription]:
        """Which apps hear of an account, in the order in which they began to."""
        return list(self._subscriptions.get(waba_id, {}).values())

    def subscription(self, waba_id: str, app_id: str) -> Subscription | None:
        """How an app hears of an account; None when it does not."""
        return self._subscriptions.get(waba_id, {}).get(app_id)

    def destination(self, outlet: Outlet) -> Destination | None:
        """Where the webhooks of an outlet go; None when nobody listens.

        Source: facts 7.1: the number's own address, else the account's, else the app's.
        """
        subscription = self.subscription(outlet.waba_id, outlet.app_id)
        app = self.apps.get(outlet.app_id)
        if subscription is None or app is None:
            return None
        own = self.overrides.get((app.app_id, outlet.phone_number_id))
        uri = own or subscription.override_uri or app.callback_uri
        return Destination(uri, app.app_secret) if uri else None

    def outlets_of(self, waba_id: str, app_id: str) -> list[Outlet]:
        """What of an account goes to each address of an app: all the rest first."""
        apart = tuple(
            number.phone_number_id
            for number in (self.numbers_of(waba_id) if self.overrides else ())
            if (app_id, number.phone_number_id) in self.overrides
        )
        rest = Outlet(waba_id, app_id, apart=apart)
        return [rest, *(Outlet(waba_id, app_id, number_id) for number_id in apart)]

    def outlets(self, waba_ids: Iterable[str]) -> list[Outlet]:
        """Every outlet of these accounts."""
        return [
            outlet
            for waba_id in waba_ids
            for app_id in self._subscriptions.get(waba_id, {})
            for outlet in self.outlets_of(waba_id, app_id)
        ]

    def is_heard(self, waba_id: str) -> bool:
        """Whether anything of the account goes anywhere."""
        return any(self.destination(outlet) is not None for outlet in self.outlets((waba_id,)))

    def numbers_of(self, waba_id: str) -> list[Number]:
        """The account's numbers, in the order they were made."""
        return [number for number in self.numbers.values() if number.waba_id == waba_id]

    def has_number(self, waba_id: str) -> bool:
        """Whether the account has any number."""
        return any(number.waba_id == waba_id for number in self.numbers.values())

    def of_app(self, app_id: str) -> list[Account]:
        """The accounts that belong to an app, or that it hears of."""
        return [
            account
            for account in self.by_id.values()
            if account.app_id == app_id or self.subscription(account.waba_id, app_id) is not None
        ]

    async def keep_app(self, app: App) -> None:
        """Make an app, or change it."""
        values: Row = (app.app_id, app.app_secret, app.callback_uri, app.verify_token)
        await self._store.run([(_KEEP_APP, values)])
        self.apps[app.app_id] = app

    async def keep_account(self, account: Account) -> None:
        """Make an account, which its app then hears of, or change it; another app takes over."""
        waba_id, before = account.waba_id, self.by_id.get(account.waba_id)
        values: Row = (waba_id, account.name, account.namespace, account.token, account.app_id)
        statements: list[Statement] = [(_KEEP_ACCOUNT, values)]
        heard = Subscription(waba_id, account.app_id) if before is None else None
        if before is None:
            statements.append((_SUBSCRIBE, (waba_id, account.app_id, "")))
        elif before.app_id != account.app_id:
            known = self.subscription(waba_id, before.app_id)
            heard = Subscription(waba_id, account.app_id, known.override_uri) if known else None
            statements += [(statement, (waba_id, account.app_id, before.app_id)) for statement in _OTHER_APP]
        await self._store.run(statements)
        self.by_id[waba_id] = account
        if before is not None and before.app_id != account.app_id:
            self._subscriptions.get(waba_id, {}).pop(before.app_id, None)
        if heard is not None:
            self._hear(heard)
        self._learn_tokens()

    async def keep_number(self, number: Number) -> None:
        """Make a number, or change it."""
        values: Row = (
            number.phone_number_id, number.waba_id, number.phone_number, number.name,
            number.throughput,
        )  # fmt: skip
        await self._store.run([(_KEEP_NUMBER, values)])
        self._learn(number)

    async def override(self, app_id: str, number: Number, uri: str) -> None:
        """Give a number a webhook address of its own with an app; an empty one takes it away."""
        key = (app_id, number.phone_number_id)
        await self._store.run([(_OVERRIDE, (*key, uri)) if uri else (_NO_OVERRIDE, key)])
        self.overrides.pop(key, None)
        if uri:
            self.overrides[key] = uri

    async def subscribe(self, subscription: Subscription) -> None:
        """Let an app hear of an account, or change where it does."""
        values: Row = (subscription.waba_id, subscription.app_id, subscription.override_uri)
        await self._store.run([(_SUBSCRIBE, values)])
        self._hear(subscription)

    async def unsubscribe(self, waba_id: str, app_id: str) -> None:
        """Let an app hear of an account no more; what it has not heard yet is dropped."""
        await self._store.run([(statement, (waba_id, app_id)) for statement in _UNSUBSCRIBE])
        self._subscriptions.get(waba_id, {}).pop(app_id, None)

    def _hear(self, subscription: Subscription) -> None:
        apps = self._subscriptions.setdefault(subscription.waba_id, {})
        apps[subscription.app_id] = subscription

    def _learn(self, number: Number) -> None:
        before = self.numbers.get(number.phone_number_id)
        if before is not None:
            self.numbers_by_digits.pop(before.phone_number, None)
        self.numbers[number.phone_number_id] = number
        self.numbers_by_digits[number.phone_number] = number

    def _learn_tokens(self) -> None:
        self._holders.clear()
        for account in self.by_id.values():
            self._holders[account.token] = (*self.holders(account.token), account.waba_id)
