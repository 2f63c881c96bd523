"""Business accounts, their apps and numbers: few, kept in memory, written through to the file."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from waypost.simulator.keyed_store import LoadedKind, StoredKind
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import JUDGED, OUTBOX, RETRY, SUBSCRIPTION, Outlet


class App(msgspec.Struct, frozen=True):
    """What signs webhooks, and where they go unless an account says otherwise."""

    app_id: str
    app_secret: str
    callback_uri: str = ""
    verify_token: str = ""

    @property
    def token(self) -> str:
        """What its owner sets it up with. Source: the operator's page "App access tokens"."""
        return f"{self.app_id}|{self.app_secret}"


class Account(msgspec.Struct, frozen=True):
    """A business account; `app_id` is the app whose credential its token is."""

    waba_id: str
    name: str
    namespace: str
    token: str
    app_id: str


class Subscription(msgspec.Struct, frozen=True):
    """An app hears of an account; `override_uri` is where, empty for the app's own address."""

    waba_id: str
    app_id: str
    override_uri: str = ""


class Number(msgspec.Struct, frozen=True):
    """A business phone number; `throughput` is in messages a second."""

    phone_number_id: str
    waba_id: str
    phone_number: str
    name: str
    throughput: int


@dataclass(frozen=True)
class Destination:
    """Where the webhooks of an outlet go, and the key that signs them."""

    uri: str
    app_secret: str


class Accounts:
    """Knows every account, app and number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._apps = LoadedKind(store, "app", App, stays=True)
        self._accounts = LoadedKind(store, "account", Account, stays=True)
        self._numbers = LoadedKind(store, "number", Number, stays=True)
        self._subscriptions = LoadedKind(store, SUBSCRIPTION, Subscription, stays=True)  # of an account, by app
        self._overrides = LoadedKind(store, "number_webhook", str)  # addresses of an app, by number
        self._retries = StoredKind(store, RETRY, object)
        self._holders: dict[str, tuple[str, ...]] = {}
        self.apps = self._apps.all
        self.by_id = self._accounts.all
        self.numbers = self._numbers.all
        self.numbers_by_digits = self._numbers.index(lambda number: (number.phone_number,))

    def holders(self, token: str) -> tuple[str, ...]:
        """The ids of the accounts that were made with this token."""
        if not self._holders:
            for account in self.by_id.values():
                self._holders[account.token] = (*self._holders.get(account.token, ()), account.waba_id)
        return self._holders.get(token, ())

    def subscriptions_of(self, waba_id: str) -> list[Subscription]:
        """Which apps hear of an account, in the order in which they began to."""
        return list(self._subscriptions.of(waba_id).values())

    def override_of(self, app_id: str, phone_number_id: str) -> str | None:
        """The webhook address that a number has of its own with an app."""
        return self._overrides.of(app_id).get(phone_number_id)

    def subscription(self, waba_id: str, app_id: str) -> Subscription | None:
        """How an app hears of an account; None when it does not."""
        return self._subscriptions.of(waba_id).get(app_id)

    def destination(self, outlet: Outlet) -> Destination | None:
        """Where the webhooks of an outlet go; None when nobody listens.

        Source: facts 7.1: the number's own address, else the account's, else the app's.
        """
        subscription = self.subscription(outlet.waba_id, outlet.app_id)
        app = self.apps.get(outlet.app_id)
        if subscription is None or app is None:
            return None
        own = self.override_of(app.app_id, outlet.phone_number_id)
        uri = own or subscription.override_uri or app.callback_uri
        return Destination(uri, app.app_secret) if uri else None

    def outlets_of(self, waba_id: str, app_id: str) -> list[Outlet]:
        """What of an account goes to each address of an app: all the rest first."""
        own = self._overrides.of(app_id)
        apart = tuple(
            one.phone_number_id for one in (self.numbers_of(waba_id) if own else ()) if one.phone_number_id in own
        )
        rest = Outlet(waba_id, app_id, apart=apart)
        return [rest, *(Outlet(waba_id, app_id, number_id) for number_id in apart)]

    def outlets(self, waba_ids: Iterable[str]) -> list[Outlet]:
        """Every outlet of these accounts."""
        return [
            outlet
            for waba_id in waba_ids
            for app_id in self._subscriptions.of(waba_id)
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
        await self._apps.save(app, app.app_id)

    async def keep_account(self, account: Account) -> None:
        """Make an account, which its app then hears of, or change it; another app takes over."""
        waba_id, before = account.waba_id, self.by_id.get(account.waba_id)
        left, heard = None, Subscription(waba_id, account.app_id) if before is None else None
        statements: list[Statement] = []
        if before is not None and before.app_id != account.app_id:
            left = self.subscription(waba_id, before.app_id)
            heard = msgspec.structs.replace(left, app_id=account.app_id) if left else None
            moved = {"app_id": account.app_id}
            statements += [one.update(moved, waba_id=waba_id, app_id=before.app_id) for one in (OUTBOX, JUDGED)]
        if left is not None:
            statements.append(self._subscriptions.delete_statement(left.app_id, waba_id))
        if heard is not None:
            statements.append(self._subscriptions.save_statement(heard, heard.app_id, waba_id))
        await self._accounts.save(account, waba_id, also=statements)
        if left is not None:
            self._subscriptions.pop(left.app_id, waba_id)
        if heard is not None:
            self._subscriptions.put(heard, heard.app_id, waba_id)
        self._holders.clear()

    async def keep_number(self, number: Number) -> None:
        """Make a number, or change it."""
        holder = self.numbers_by_digits.get(number.phone_number, number)
        is_other = holder.phone_number_id != number.phone_number_id
        also = [self._numbers.delete_statement(holder.phone_number_id)] if is_other else []
        await self._numbers.save(number, number.phone_number_id, also=also)

    async def override(self, app_id: str, number: Number, uri: str) -> None:
        """Give a number a webhook address of its own with an app; an empty one takes it away."""
        if uri:
            await self._overrides.save(uri, number.phone_number_id, app_id)
        else:
            await self._overrides.delete(number.phone_number_id, app_id)

    async def subscribe(self, subscription: Subscription) -> None:
        """Let an app hear of an account, or change where it does."""
        await self._subscriptions.save(subscription, subscription.app_id, subscription.waba_id)

    async def unsubscribe(self, waba_id: str, app_id: str) -> None:
        """Let an app hear of an account no more; what it has not heard yet is dropped."""
        unheard = [table.delete(waba_id=waba_id, app_id=app_id) for table in (OUTBOX, JUDGED)]
        retries = self._retries.delete_owner_statement(f"{waba_id} {app_id}")
        await self._subscriptions.delete(app_id, waba_id, also=[*unheard, retries])
