"""Small records about numbers and accounts: business profile, ice breakers, quality and limits."""

from typing import Any, Final

from waypost.simulator.storage.keyed_store import CachedKeyedValues
from waypost.simulator.storage.store import Store

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
"""The kinds of record."""

PICTURE_PREFIX: Final = "picture-"
"""Prefix of the file names of profile pictures."""


class Records:
    """One JSON object for each number or account and kind; in memory, written through."""

    def __init__(self, store: Store) -> None:
        self.values: CachedKeyedValues[dict[str, Any]]
        self.values = CachedKeyedValues(store, "record", dict[str, Any])  # of a number or account, by its kind

    def get(self, node_id: str, kind: str) -> dict[str, Any]:
        """Return a record; empty if there is none."""
        return dict(self.values.values_of(node_id).get(kind, {}))

    async def save(self, node_id: str, kind: str, record: dict[str, Any]) -> None:
        """Store a record."""
        await self.values.save(record, kind, node_id)
