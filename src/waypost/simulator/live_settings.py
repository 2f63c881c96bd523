"""The settings as they are now: those given at the start, then what the control door changed."""

from typing import Any

import msgspec
from msgspec.structs import replace

from waypost.simulator.settings import ChangeableSettings, SettingsChange, SimulatorSettings
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
        names = ChangeableSettings.__struct_fields__
        known = {name: value for name, value in self._changed.all.items() if name in names}
        read = msgspec.convert(known, SettingsChange)
        self.value = replace(self.value, **{name: getattr(read, name) for name in known})

    async def change(self, changes: dict[str, Any]) -> None:
        """Keep new values of changeable settings; they have been checked."""
        await self._store.run([self._changed.save_statement(value, name) for name, value in changes.items()])
        self.value = replace(self.value, **changes)

    def changeable(self) -> dict[str, Any]:
        """The changeable settings and their values."""
        return {name: getattr(self.value, name) for name in ChangeableSettings.__struct_fields__}
