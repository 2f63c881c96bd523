"""Small records about numbers and accounts: business profile, ice breakers, quality and limits."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.store import Statement, Store

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
        self._records = CachedKeyedValues(store, "record", dict[str, Any])  # of a number or account, by its kind

    def get(self, node_id: str, kind: str) -> dict[str, Any]:
        """Return a record; empty if there is none."""
        return dict(self._records.values_of(node_id).get(kind, {}))

    async def save(self, node_id: str, kind: str, record: dict[str, Any]) -> None:
        """Store a record."""
        await self._records.save(record, kind, node_id)

    def save_statements(self, node_id: str, records: Mapping[str, dict[str, Any]]) -> list[Statement]:
        """Return the statements that store records by kind; `put` follows when they are on disk."""
        return [self._records.save_statement(record, kind, node_id) for kind, record in records.items()]

    def put(self, node_id: str, records: Mapping[str, dict[str, Any]]) -> None:
        """Set records by kind in memory."""
        for kind, record in records.items():
            self._records.put(record, kind, node_id)
