"""The settings as they are now: those given at the start, then what the control door changed."""

from dataclasses import replace
from typing import Any

from waypost.simulator.settings import CHANGEABLE, SimulatorSettings, StatusesVersion
from waypost.simulator.state import LoadedKind
from waypost.simulator.store import Store


class LiveSettings:
    """Holds the settings that apply at this moment; what was changed is in the file."""

    def __init__(self, settings: SimulatorSettings, store: Store) -> None:
        self._store = store
        self._changed = LoadedKind[Any](store, "setting", object, stays=True)
        self.value = settings

    def open(self) -> None:
        """Apply what was changed before the last stop."""
        self._apply(self._changed.all)

    async def change(self, changes: dict[str, Any]) -> None:
        """Keep new values of settings in `CHANGEABLE`; their types have been checked."""
        await self._store.run([self._changed.save_statement(value, name) for name, value in changes.items()])
        self._apply(changes)

    def changeable(self) -> dict[str, Any]:
        """The changeable settings and their values."""
        return {name: getattr(self.value, name) for name in CHANGEABLE}

    def _apply(self, changes: dict[str, Any]) -> None:
        known = {name: value for name, value in changes.items() if name in CHANGEABLE}
        if "statuses_version" in known:
            known["statuses_version"] = StatusesVersion(known["statuses_version"])
        if "marketing_words" in known:
            known["marketing_words"] = tuple(known["marketing_words"])
        self.value = replace(self.value, **known)
