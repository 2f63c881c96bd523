"""Ids of objects of an operator: each kind has a range of its own, so that an id of another kind is found at once.

All have 16 digits, below 2^53: a client that reads them as numbers loses none. Ids that the owner of the simulator
chooses, as those of the first accounts and apps, may be from any range; they are found before a range is asked.
"""

import hashlib
from functools import cache
from typing import Final

from waypost.base.ids import Ids

_ID_DIGITS: Final = 16
ID_RANGES: Final = {
    # kind             first digits; no row begins with those of another
    "template": "1",
    "account": "25",
    "app": "26",
    "business": "3",
    "number": "4",
    "flow": "5",
    "person": "60",
    "system user": "61",
    "solution": "62",
    "login configuration": "63",
    "credit line": "64",
    "credit allocation": "65",
    "credit credential": "66",
    "onboarding session": "67",
    "migration intent": "68",
    "sync request": "69",
    "media": "7",
    "signup": "8",
    "ad account": "27",
    "page": "28",
    "data set": "290",
    "catalog": "291",
    "Instagram account": "292",
    "preverified number": "293",
}
_FIELD_KINDS: Final = {
    "waba_id": "account",
    "app_id": "app",
    "waba_ids": "account",
    "further_waba_ids": "account",
    "business_id": "business",
    "phone_number_id": "number",
    "flow_id": "flow",
    "person_id": "person",
    "person_ids": "person",
    "template_id": "template",
    "config_id": "login configuration",
    "session_id": "onboarding session",
    "media_id": "media",
    "ad_account_ids": "ad account",
    "page_ids": "page",
    "dataset_ids": "data set",
    "catalog_ids": "catalog",
    "instagram_account_ids": "Instagram account",
    "preverified_id": "preverified number",
}
"""The kinds that fields and the parts of paths are ids of."""


def make_id(ids: Ids, kind: str) -> str:
    """Return a new id of a kind."""
    first = ID_RANGES[kind]
    return first + ids.digits(_ID_DIGITS - len(first))


@cache
def derive_id(kind: str, name: str) -> str:
    """Return the id of a kind that a name always has."""
    first, count = ID_RANGES[kind], _ID_DIGITS - len(ID_RANGES[kind])
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    return f"{first}{digest % 10**count:0{count}d}"


def kind_of_id(text: str) -> str | None:
    """Return the kind whose range an id is from; None if it is from no range."""
    if len(text) != _ID_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return next((kind for kind, first in ID_RANGES.items() if text.startswith(first)), None)


def describe_other_kind(text: str, *accepted: str) -> str:
    """Return a sentence about an id that is from the range of another kind than the accepted; else an empty text.

    Args:
        accepted: kinds, or the names of fields that are ids of one.
    """
    kind = kind_of_id(text)
    kinds = {_FIELD_KINDS.get(name, name) for name in accepted}
    if kind is None or kind in kinds or not kinds & ID_RANGES.keys():
        return ""
    return f"it is the id of {_add_article(kind)}, not of {_add_article(' or '.join(sorted(kinds)))}"


def _add_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
