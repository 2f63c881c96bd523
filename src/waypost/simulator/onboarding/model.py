"""The people and businesses who use embedded signup, the apps that offer it, and the codes at its end.

Each may have an `error_code`: the code of the error with which the window refuses it. 0 refuses nothing.
"""

from typing import Final

import msgspec

from waypost.simulator.state.accounts import ACCOUNTS, APP_ACCESSES, NUMBERS, Account, AppAccess
from waypost.simulator.state.simulator_state import Transaction
from waypost.simulator.storage.keyed_store import StoredKind


class OnboardingPerson(msgspec.Struct, frozen=True):
    """A person who signs in."""

    person_id: str
    name: str
    error_code: int = 0


class Portfolio(msgspec.Struct, frozen=True):
    """A business portfolio, and the people who manage it."""

    business_id: str
    name: str
    person_ids: tuple[str, ...]
    is_verified: bool = False
    email: str = ""
    website: str = ""
    country: str = ""
    error_code: int = 0


class BusinessAppNumber(msgspec.Struct, frozen=True):
    """A number that a business uses in the app on a phone, and not yet with the API."""

    phone_number: str
    name: str
    error_code: int = 0


class LoginConfiguration(msgspec.Struct, frozen=True):
    """A login configuration of an app: the products that it offers, and the lifetime of its tokens; None: no end."""

    config_id: str
    app_id: str
    products: tuple[str, ...] = ("cloud_api",)
    token_days: int | None = None


class AppPartner(msgspec.Struct, frozen=True):
    """The business that an app belongs to, as a partner of the operator.

    Only a solution partner has a credit line; a verified one may onboard more customers.
    """

    app_id: str
    is_verified: bool = False
    credit_line_id: str = ""
    credential_id: str = ""


class AppAddresses(msgspec.Struct, frozen=True):
    """The addresses that an app's pages may have, as its settings at the operator say it; without a row, any."""

    app_id: str
    allowed_domains: tuple[str, ...]  # of pages with the script
    redirect_uris: tuple[str, ...]  # of the dialog, whole


class SignupCode(msgspec.Struct, frozen=True):
    """A code that an app exchanges for a token, once, within a time.

    `redirect_uri` is that of the dialog, which the exchange must repeat; empty: there was none.
    """

    code: str
    app_id: str
    session_id: str
    business_id: str
    waba_ids: tuple[str, ...]
    scopes: tuple[str, ...]
    assets: dict[str, tuple[str, ...]]  # what else is shared, by the members of the message
    system_user_id: str
    redirect_uri: str
    expires_ms: int
    token_days: int | None
    used_ms: int | None = None


class CreditAllocation(msgspec.Struct, frozen=True):
    """A part of a partner's credit line that an account may use."""

    allocation_id: str
    waba_id: str
    app_id: str
    credential_id: str
    currency: str


class MigrationIntent(msgspec.Struct, frozen=True):
    """The wish that an account leaves the partner of one app for that of another, or a solution."""

    intent_id: str
    waba_id: str
    app_id: str
    solution_id: str = ""


class AssignedUser(msgspec.Struct, frozen=True):
    """A person or system user with tasks in an account."""

    user_id: str
    tasks: tuple[str, ...]


PERSONS: Final = StoredKind("person", OnboardingPerson, survives_reset=True)
PORTFOLIOS: Final = StoredKind("portfolio", Portfolio, survives_reset=True)
BUSINESS_APP_NUMBERS: Final = StoredKind("business_app_number", BusinessAppNumber)
"""By digits."""
CONFIGURATIONS: Final = StoredKind("login_configuration", LoginConfiguration, survives_reset=True)
PARTNERS: Final = StoredKind(
    "app_partner",
    AppPartner,
    keys_of=lambda partner: [("credit_line", partner.credit_line_id)] if partner.credit_line_id else [],
    survives_reset=True,
)
"""By app."""
ADDRESSES: Final = StoredKind("app_addresses", AppAddresses, survives_reset=True)
"""By app."""
SIGNUP_CODES: Final = StoredKind("signup_code", SignupCode)
ALLOCATIONS: Final = StoredKind("credit_allocation", CreditAllocation)
MIGRATION_INTENTS: Final = StoredKind("migration_intent", MigrationIntent)
"""By account."""
ASSIGNED_USERS: Final = StoredKind("assigned_user", AssignedUser)
"""Of an account, by user."""


def owned_accounts(transaction: Transaction, business_id: str) -> list[Account]:
    """Return the accounts of a portfolio, in order of creation."""
    return transaction.find_by_member(ACCOUNTS, "owner_business_id", business_id)


def find_access(transaction: Transaction, waba_id: str, app_id: str) -> AppAccess | None:
    """Return the access of an app to an account; None if it has none."""
    return transaction.find(APP_ACCESSES, app_id, waba_id)


def is_in_use(transaction: Transaction, digits: str) -> bool:
    """True if an account has a number with these digits."""
    return bool(transaction.find_by_member(NUMBERS, "phone_number", digits))
