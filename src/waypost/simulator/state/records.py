"""Small records about numbers and accounts: business profile, ice breakers, quality and limits."""

from typing import Any, Final

from waypost.simulator.storage.keyed_store import StoredKind

PROFILE: Final = "profile"
AUTOMATION: Final = "automation"
NUMBER_STATUS: Final = "status"
INSIGHTS: Final = "insights"
SENDING_RESTRICTION: Final = "sending_restriction"
ALLOWED: Final = "allowed"
IDENTITY: Final = "identity"
REGISTRATION: Final = "registration"
COMMERCE: Final = "commerce"
ENCRYPTION: Final = "encryption"
SETTINGS: Final = "settings"
NAMES: Final = "names"
SYNCS: Final = "syncs"
DIRECT_SEND: Final = "direct_send"
MARKETING: Final = "marketing"
FUNDING: Final = "funding"
ONBOARDED: Final = "onboarded"
OBO: Final = "on_behalf_of"
"""The kinds of record."""

PICTURE_PREFIX: Final = "picture-"
"""Prefix of the file names of profile pictures."""


RECORDS: Final = StoredKind("record", dict[str, Any])
"""One JSON object for each number or account, by its kind."""
