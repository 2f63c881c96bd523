"""Small records about numbers and accounts: a business profile, ice breakers, a standing."""

from typing import Any, Final

import msgspec

from waypost.simulator.store import Store

PROFILE: Final = "profile"
AUTOMATION: Final = "automation"
STANDING: Final = "standing"
INSIGHTS: Final = "insights"
HINDRANCE: Final = "hindrance"
ALLOWED: Final = "allowed"
IDENTITY: Final = "identity"
REGISTRATION: Final = "registration"
COMMERCE: Final = "commerce"
ENCRYPTION: Final = "encryption"
SETTINGS: Final = "settings"
"""The kinds of record."""

PICTURE_PREFIX: Final = "picture-"
"""What the files of profile pictures begin with."""

_KEEP: Final = "INSERT OR REPLACE INTO records VALUES (?,?,?)"


class Records:
    """One JSON object for each number or account and kind; in memory, written through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._all: dict[tuple[str, str], dict[str, Any]] = {}

    async def open(self) -> None:
        """Read everything from the file."""
        for node_id, kind, body in await self._store.rows("SELECT * FROM records"):
            self._all[node_id, kind] = msgspec.json.decode(body, type=dict[str, Any])

    def of(self, node_id: str, kind: str) -> dict[str, Any]:
        """A record; empty when there is none."""
        return dict(self._all.get((node_id, kind), {}))

    async def keep(self, node_id: str, kind: str, record: dict[str, Any]) -> None:
        """Set a record."""
        body = msgspec.json.encode(record).decode()
        await self._store.run([(_KEEP, (node_id, kind, body))])
        self._all[node_id, kind] = record

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self._all.clear()
