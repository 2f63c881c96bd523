"""Business portfolios: the owner of each account, and the partner whose app the account is shared with.

They are derived from accounts and apps, so nothing is stored; their ids are a range of their own.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from waypost.simulator.accounts.accounts import Account, Accounts

_ID_DIGITS: Final = 16
_FIRST_DIGIT: Final = "3"  # apart from the ids of templates (1), flows (5) and media (7)


@dataclass(frozen=True)
class Business:
    """A business portfolio, the accounts that it owns, and those that their owners share with it."""

    business_id: str
    owned: tuple[Account, ...] = ()
    shared: tuple[Account, ...] = ()


def owner_id(account: Account) -> str:
    """Return the id of the business that owns an account: each account's owner is another business."""
    return _derive_id(f"owner {account.waba_id}")


def partner_id(app_id: str) -> str:
    """Return the id of the business that an app belongs to; the app's accounts are shared with it."""
    return _derive_id(f"partner {app_id}")


def find_business(accounts: Accounts, business_id: str) -> Business | None:
    """Return a business by id; None if no account is owned by it or shared with it."""
    if len(business_id) != _ID_DIGITS or not business_id.startswith(_FIRST_DIGIT):
        return None
    owned = tuple(account for account in accounts.by_id.values() if owner_id(account) == business_id)
    shared = tuple(account for account in accounts.by_id.values() if partner_id(account.app_id) == business_id)
    return Business(business_id, owned, shared) if owned or shared else None


def _derive_id(name: str) -> str:
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    return f"{_FIRST_DIGIT}{digest % 10 ** (_ID_DIGITS - 1):0{_ID_DIGITS - 1}d}"
