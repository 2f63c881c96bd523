"""The document of a set-up: what must exist, and the values it must have. What it does not name stays as it is."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from waypost.admin.apps import check_app_rates
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.phone_number import read_phone_number

MIN_CREDENTIAL_CHARS = 32
"""Of a client secret or an API key that is given instead of generated; 32 hex digits have 128 bits."""


class SetupPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the document. An unknown member is an error."""


class SubscriptionSetup(SetupPart, frozen=True):
    """A subscription of an app; its tag identifies it."""

    tag: str
    url: str
    modes: tuple[str, ...]
    version: int = 2
    headers: dict[str, str] = {}
    show_on_ui: bool = False
    active: bool = True
    # true if a created one, or one with a new URL, is pinged; the result is reported and is no error
    check: bool = True


class AppSetup(SetupPart, frozen=True):
    """An app of a partner; its name identifies it."""

    name: str
    phone_number: str
    phone_number_id: str
    business_account: str  # the id of a business account of the partner
    live: bool = True
    per_second: int | None = None  # the throughput of its number; None: the service's setting
    # all rates of its own, by row, such as `{"templates": "20/60s"}`; None: they stay as they are
    rates: dict[str, str] | None = None
    subscriptions: tuple[SubscriptionSetup, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields that the store does not check."""
        if read_phone_number(self.phone_number) is None:
            raise invalid_field("phone_number", "8 to 15 digits")
        if not 1 <= len(self.name) <= 150:
            raise invalid_field("name", "1 to 150 characters")
        if self.per_second is not None and not 1 <= self.per_second <= 1000:
            raise invalid_field("per_second", "1 to 1000, or absent")
        if self.rates is not None:
            check_app_rates(self.rates)
        check_unique("subscriptions", (subscription.tag for subscription in self.subscriptions))


class BusinessAccountSetup(SetupPart, frozen=True):
    """A business account of a partner; its id at the operator identifies it."""

    id: str
    operator_account: str
    namespace: str | None = None  # None: requested from the operator when it is created, and left as it is later
    subscribe: bool = False  # true if this service is to be subscribed to its webhooks at the operator


class ClientSecretSetup(SetupPart, frozen=True):
    """A client secret with a given text."""

    value: str

    def __post_init__(self) -> None:
        """Check its length."""
        _check_credential("client_secrets", self.value)


class ApiKeySetup(SetupPart, frozen=True):
    """An API key."""

    name: str
    # its text, by which it is identified; None: one with this name must exist, or is generated
    value: str | None = None

    def __post_init__(self) -> None:
        """Check its length."""
        if self.value is not None:
            _check_credential("api_keys", self.value)


class RetentionSetup(SetupPart, frozen=True):
    """The retention periods of a partner, in days; None: the service's setting."""

    keep_bodies_days: int | None = None
    keep_messages_days: int | None = None


class PartnerSetup(SetupPart, frozen=True):
    """A partner; its e-mail address identifies it."""

    email: str
    name: str
    password: str | None = None  # of a new partner; an existing one keeps its own
    contact_name: str = ""
    phone_number: str = ""
    retention: RetentionSetup | None = None  # None: stays as it is
    client_secrets: tuple[ClientSecretSetup, ...] = ()
    api_keys: tuple[ApiKeySetup, ...] = ()
    business_accounts: tuple[BusinessAccountSetup, ...] = ()
    apps: tuple[AppSetup, ...] = ()

    def __post_init__(self) -> None:
        """Check that nothing is named twice."""
        check_unique("api_keys", (key.name for key in self.api_keys))
        check_unique("apps", (app.name for app in self.apps))


class SetupDocument(SetupPart, frozen=True):
    """The whole document."""

    # by id; the members are `kind`, `base_url` and the fields of its adapter
    operator_accounts: dict[str, dict[str, str]] = {}
    partners: tuple[PartnerSetup, ...] = ()

    def __post_init__(self) -> None:
        """Check that nothing is named twice."""
        check_unique("partners", (partner.email.lower() for partner in self.partners))
        accounts = (account.id for partner in self.partners for account in partner.business_accounts)
        check_unique("business_accounts", accounts)
        apps = [app for partner in self.partners for app in partner.apps]
        check_unique("phone_number", (read_phone_number(app.phone_number) for app in apps))


def check_unique(field: str, names: Iterable[Any]) -> None:
    """Check that no two parts have the same name.

    Raises:
        ApiError: two have.
    """
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ApiError(
            ErrorCode.FIELD_BROKEN, f"{field} names {twice} twice.", field=field, accepted="each name only once"
        )


def _check_credential(field: str, value: str) -> None:
    if len(value) < MIN_CREDENTIAL_CHARS:
        raise invalid_field(field, f"texts of at least {MIN_CREDENTIAL_CHARS} characters")
