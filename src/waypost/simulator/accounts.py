"""Business accounts, their apps and numbers: few, kept in memory, written through to the file."""

from dataclasses import dataclass, replace
from typing import Final

from waypost.simulator.store import Row, Store

_KEEP_APP: Final = "INSERT OR REPLACE INTO apps VALUES (?,?,?,?)"
_KEEP_ACCOUNT: Final = "INSERT OR REPLACE INTO accounts VALUES (?,?,?,?,?,?,?)"
_OVERRIDE: Final = "INSERT OR REPLACE INTO number_webhooks VALUES (?,?)"
_NO_OVERRIDE: Final = "DELETE FROM number_webhooks WHERE phone_number_id=?"
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
    """A business account; `override_uri` is its own webhook address, empty for the app's."""

    waba_id: str
    name: str
    namespace: str
    token: str
    app_id: str
    subscribed: bool = True
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
class Destination:
    """Where an account's webhooks go, and the key that signs them."""

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
        self.overrides: dict[str, str] = {}
        self._holders: dict[str, tuple[str, ...]] = {}

    async def open(self) -> None:
        """Read everything from the file."""
        for row in await self._store.rows("SELECT * FROM apps"):
            self.apps[row[0]] = App(*row)
        for row in await self._store.rows("SELECT * FROM accounts"):
            self.by_id[row[0]] = Account(*row[:5], subscribed=bool(row[5]), override_uri=row[6])
        for row in await self._store.rows("SELECT * FROM numbers"):
            self._learn(Number(*row))
        for number_id, uri in await self._store.rows("SELECT * FROM number_webhooks"):
            self.overrides[number_id] = uri
        self._learn_tokens()

    def holders(self, token: str) -> tuple[str, ...]:
        """The ids of the accounts that were made with this token."""
        return self._holders.get(token, ())

    def destination(self, waba_id: str, phone_number_id: str = "") -> Destination | None:
        """Where the webhooks of an account, or of one of its numbers, go; None when nobody listens.

        Source: facts 7.1: the number's own address, else the account's, else the app's.
        """
        account = self.by_id.get(waba_id)
        app = self.apps.get(account.app_id) if account else None
        if account is None or app is None or not account.subscribed:
            return None
        uri = self.overrides.get(phone_number_id) or account.override_uri or app.callback_uri
        return Destination(uri, app.app_secret) if uri else None

    def is_heard(self, waba_id: str) -> bool:
        """Whether anything of the account goes anywhere."""
        if self.destination(waba_id) is not None:
            return True
        return bool(self.overrides) and any(
            self.destination(waba_id, number.phone_number_id) for number in self.numbers_of(waba_id)
        )

    def numbers_of(self, waba_id: str) -> list[Number]:
        """The account's numbers, in the order they were made."""
        return [number for number in self.numbers.values() if number.waba_id == waba_id]

    def has_number(self, waba_id: str) -> bool:
        """Whether the account has any number."""
        return any(number.waba_id == waba_id for number in self.numbers.values())

    def of_app(self, app_id: str) -> list[Account]:
        """The accounts that belong to an app."""
        return [account for account in self.by_id.values() if account.app_id == app_id]

    async def keep_app(self, app: App) -> None:
        """Make an app, or change it."""
        values: Row = (app.app_id, app.app_secret, app.callback_uri, app.verify_token)
        await self._store.run([(_KEEP_APP, values)])
        self.apps[app.app_id] = app

    async def keep_account(self, account: Account) -> None:
        """Make an account, or change it."""
        values: Row = (
            account.waba_id, account.name, account.namespace, account.token, account.app_id,
            int(account.subscribed), account.override_uri,
        )  # fmt: skip
        await self._store.run([(_KEEP_ACCOUNT, values)])
        self.by_id[account.waba_id] = account
        self._learn_tokens()

    async def keep_number(self, number: Number) -> None:
        """Make a number, or change it."""
        values: Row = (
            number.phone_number_id, number.waba_id, number.phone_number, number.name,
            number.throughput,
        )  # fmt: skip
        await self._store.run([(_KEEP_NUMBER, values)])
        self._learn(number)

    async def override(self, number: Number, uri: str) -> None:
        """Give a number a webhook address of its own; an empty one takes it away."""
        values: Row = (number.phone_number_id, uri)
        await self._store.run([(_OVERRIDE, values) if uri else (_NO_OVERRIDE, values[:1])])
        self.overrides.pop(number.phone_number_id, None)
        if uri:
            self.overrides[number.phone_number_id] = uri

    async def subscribe(self, account: Account, *, override_uri: str = "") -> None:
        """Let the account's webhooks go to its app, or to an address of its own."""
        await self.keep_account(replace(account, subscribed=True, override_uri=override_uri))

    async def unsubscribe(self, account: Account) -> None:
        """Let nobody hear of the account any more."""
        await self.keep_account(replace(account, subscribed=False, override_uri=""))

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
