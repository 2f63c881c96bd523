"""Business accounts, their apps and numbers: in memory, written through to the file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.base.object_ids import derive_id, kind_of_id
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.store import Store
from waypost.simulator.storage.tables.updates import MESSAGES_FIELD, SUBSCRIPTION_KIND, WEBHOOK_FIELDS, Outlet


class GraphApp(msgspec.Struct, frozen=True):
    """An app: its secret signs webhooks, and its callback URI receives them unless an account overrides it.

    `fields` are those of `WEBHOOK_FIELDS` that it is subscribed to; other fields cannot be left out.
    """

    app_id: str
    app_secret: str
    callback_uri: str = ""
    verify_token: str = ""
    fields: tuple[str, ...] = WEBHOOK_FIELDS

    @property
    def gets_messages(self) -> bool:
        """True if it is subscribed to messages and statuses."""
        return bool(self.callback_uri) and MESSAGES_FIELD in self.fields

    @property
    def token(self) -> str:
        """The app's access token. Source: the operator's page "App access tokens"."""
        return f"{self.app_id}|{self.app_secret}"


class Account(msgspec.Struct, frozen=True):
    """A business account; `app_id` is the app that its token belongs to.

    With `manual_reviews` the reviews of its templates wait for the control API, whatever the settings say.
    `owner_business_id` is the portfolio that owns it; empty: one of its own, see `owner_id`.
    """

    waba_id: str
    name: str
    namespace: str
    token: str
    app_id: str
    manual_reviews: bool = False
    owner_business_id: str = ""


class GraphSubscription(msgspec.Struct, frozen=True):
    """Subscription of an app to an account; `override_uri` replaces the app's callback URI unless empty."""

    waba_id: str
    app_id: str
    override_uri: str = ""


SHARED_THROUGHPUT: Final = 20  # Source: the operator's page "Onboard WhatsApp Business app users", Limitations


class AppAccess(msgspec.Struct, frozen=True):
    """The access of an app to an account that the owner has given by embedded signup.

    `solution_id` is the joint solution under which it was given; empty if there is none.
    """

    waba_id: str
    app_id: str
    system_user_id: str
    given_ms: int
    solution_id: str = ""


class Number(msgspec.Struct, frozen=True):
    """A business phone number; `throughput` is in messages a second.

    With `is_on_business_app` it is in use in the app on a phone, too.
    """

    phone_number_id: str
    waba_id: str
    phone_number: str
    name: str
    throughput: int
    is_on_business_app: bool = False

    @property
    def max_per_second(self) -> int:
        """The most messages a second that it may send: fixed for a number that is on the app, too."""
        return SHARED_THROUGHPUT if self.is_on_business_app else self.throughput

    def webhook_value(self, **members: Any) -> dict[str, Any]:
        """Return the value of a webhook about this number."""
        metadata = {"display_phone_number": self.phone_number, "phone_number_id": self.phone_number_id}
        return {"messaging_product": "whatsapp", "metadata": metadata, **members}


@dataclass(frozen=True)
class Destination:
    """Callback URI of an outlet's webhooks, the key that signs them, and the fields that the app leaves out."""

    uri: str
    app_secret: str
    unwanted_fields: frozenset[str]


APPS: Final = StoredKind("app", GraphApp, survives_reset=True)
ACCOUNTS: Final = StoredKind("account", Account, survives_reset=True)
NUMBERS: Final = StoredKind("number", Number, keys_of=lambda number: (number.phone_number,), survives_reset=True)
SUBSCRIPTIONS: Final = StoredKind(SUBSCRIPTION_KIND, GraphSubscription, survives_reset=True)
"""Of an account, by app."""
APP_ACCESSES: Final = StoredKind("app_access", AppAccess, survives_reset=True)
"""Of an account, by app."""
NUMBER_WEBHOOKS: Final = StoredKind("number_webhook", str)
"""The callback URIs of an app's numbers that have their own, by number."""


class Accounts:
    """Every account, app, number and subscription."""

    def __init__(self, store: Store) -> None:
        self._subscriptions = SUBSCRIPTIONS.cached_in(store)
        self._overrides = NUMBER_WEBHOOKS.cached_in(store)
        self._accesses = APP_ACCESSES.cached_in(store)
        self._account_ids_by_token: dict[str, tuple[str, ...]] = {}
        self.apps = APPS.cached_in(store).all
        self.by_id = ACCOUNTS.cached_in(store).all
        self.numbers = NUMBERS.cached_in(store).all
        self.numbers_by_digits = NUMBERS.cached_in(store).by_further_key

    def clear_tokens(self) -> None:
        """Clear what is known of the accounts' own tokens: an account or an access has changed."""
        self._account_ids_by_token = {}

    def accounts_with_token(self, token: str) -> tuple[str, ...]:
        """Return the ids of the accounts that an own token opens: its own, then those of its app's joint solutions.

        The token of an account that nobody gave by signup is that of the partner who has the app.
        """
        if not self._account_ids_by_token:
            self._account_ids_by_token = self._list_own_tokens()
        return self._account_ids_by_token.get(token, ())

    def _list_own_tokens(self) -> dict[str, tuple[str, ...]]:
        opened: dict[str, list[str]] = {}
        of_partners: dict[str, dict[str, None]] = {}  # app: tokens
        for account in self.by_id.values():
            opened.setdefault(account.token, []).append(account.waba_id)
            if not self.accesses_of(account.waba_id):
                of_partners.setdefault(account.app_id, {})[account.token] = None
        for waba_id in self.by_id:
            for access in self.accesses_of(waba_id).values():
                for token in of_partners.get(access.app_id, ()) if access.solution_id else ():
                    opened[token].append(waba_id)
        return {token: tuple(waba_ids) for token, waba_ids in opened.items()}

    def subscriptions_of(self, waba_id: str) -> list[GraphSubscription]:
        """Return the subscriptions to an account, in order of creation."""
        return list(self._subscriptions.values_of(waba_id).values())

    def number_override(self, app_id: str, phone_number_id: str) -> str | None:
        """Return the callback URI of a number's own with an app; None if it has none."""
        return self._overrides.values_of(app_id).get(phone_number_id)

    def subscription(self, waba_id: str, app_id: str) -> GraphSubscription | None:
        """Return an app's subscription to an account; None if there is none."""
        return self._subscriptions.values_of(waba_id).get(app_id)

    def destination(self, outlet: Outlet) -> Destination | None:
        """Return the receiver of an outlet's webhooks; None if there is none.

        Source: facts 7.1: the number's own callback URI, else the account's, else the app's.
        """
        subscription = self.subscription(outlet.waba_id, outlet.app_id)
        app = self.apps.get(outlet.app_id)
        if subscription is None or app is None:
            return None
        number_uri = self.number_override(app.app_id, outlet.phone_number_id)
        uri = number_uri or subscription.override_uri or app.callback_uri
        unwanted = frozenset(WEBHOOK_FIELDS).difference(app.fields)
        return Destination(uri, app.app_secret, unwanted) if uri else None

    def outlets_of(self, waba_id: str, app_id: str) -> list[Outlet]:
        """Return an account's outlets to an app: the common one, then those of numbers with their own URI."""
        overrides = self._overrides.values_of(app_id)
        numbers = self.numbers_of(waba_id) if overrides else ()
        apart = tuple(number.phone_number_id for number in numbers if number.phone_number_id in overrides)
        common = Outlet(waba_id, app_id, apart=apart)
        return [common, *(Outlet(waba_id, app_id, number_id) for number_id in apart)]

    def outlets(self, waba_ids: Iterable[str]) -> list[Outlet]:
        """Return every outlet of these accounts."""
        return [
            outlet
            for waba_id in waba_ids
            for app_id in self._subscriptions.values_of(waba_id)
            for outlet in self.outlets_of(waba_id, app_id)
        ]

    def has_receiver(self, waba_id: str, field: str = "") -> bool:
        """True if any webhook of the account, or any about a field, has a receiver."""
        for app_id, subscription in list(self._subscriptions.values_of(waba_id).items()):
            app = self.apps.get(app_id)
            if app is None or (field in WEBHOOK_FIELDS and field not in app.fields):
                continue
            overrides = self._overrides.values_of(app_id)
            has_number_uri = overrides and any(each.phone_number_id in overrides for each in self.numbers_of(waba_id))
            if subscription.override_uri or app.callback_uri or has_number_uri:
                return True
        return False

    def numbers_of(self, waba_id: str) -> list[Number]:
        """Return the account's numbers, in order of creation."""
        return [number for number in self.numbers.values() if number.waba_id == waba_id]

    def accounts_of_app(self, app_id: str) -> list[Account]:
        """Return the accounts that belong to an app, that it subscribes to, or that it has access to."""
        return [
            account
            for account in self.by_id.values()
            if account.app_id == app_id
            or self.subscription(account.waba_id, app_id) is not None
            or app_id in self.accesses_of(account.waba_id)
        ]

    def accesses_of(self, waba_id: str) -> Mapping[str, AppAccess]:
        """Return the accesses that were given to an account, by app."""
        return self._accesses.values_of(waba_id)

    def webhook_owners(self, app_id: str) -> list[str]:
        """Return whose webhooks an app may get: its accounts, and the business that it belongs to itself."""
        return [*(account.waba_id for account in self.accounts_of_app(app_id)), partner_id(app_id)]

    def is_shared_with(self, account: Account, business_id: str) -> bool:
        """True if an account is shared with the business that an app belongs to."""
        apps = tuple(self.accesses_of(account.waba_id)) if account.owner_business_id else (account.app_id,)
        return any(partner_id(app_id) == business_id for app_id in apps)


@dataclass(frozen=True)
class Business:
    """A business portfolio, the accounts that it owns, and those that their owners share with it."""

    business_id: str
    owned: tuple[Account, ...] = ()
    shared: tuple[Account, ...] = ()


def owner_id(account: Account) -> str:
    """Return the id of the business that owns an account: of one without a portfolio, a business of its own."""
    return account.owner_business_id or derive_id("business", f"owner {account.waba_id}")


def partner_id(app_id: str) -> str:
    """Return the id of the business that an app belongs to; the app's accounts are shared with it."""
    return derive_id("business", f"partner {app_id}")


def find_business(accounts: Accounts, business_id: str) -> Business | None:
    """Return a business by id; None if no account is owned by it or shared with it."""
    if kind_of_id(business_id) != "business":
        return None
    known = accounts.by_id.values()
    owned = tuple(account for account in known if owner_id(account) == business_id)
    shared = tuple(account for account in known if accounts.is_shared_with(account, business_id))
    return Business(business_id, owned, shared) if owned or shared else None
