"""Simulator of the operator's Graph API, with phones; shares only `base` with the service.

From the bottom: `apis` has how calls are declared and read, `storage` the file, and `state` the context that every
function works on. Each subject above has its `model`, its `graph` and its `control`, as far as it needs them; `serving`
lists the calls of all subjects and serves them.
"""

from waypost.simulator.apis.dev_partners import DevPartners
from waypost.simulator.apis.dev_snapshots import Snapshot, SnapshotBusy, SnapshotError, SnapshotStore, UnknownSnapshot
from waypost.simulator.faults.fault_reading import InvalidScenario, Scenario, read_scenario
from waypost.simulator.serving.simulator import Simulator
from waypost.simulator.state.settings import AccountSeed, NumberSeed, SimulatorSettings
from waypost.simulator.storage.store import FILE_REVISION, DamagedFile, IncompatibleFile

STARTUP_ERRORS = (DamagedFile, IncompatibleFile, InvalidScenario, SnapshotError)
"""Errors that prevent a start; their texts have a fix hint."""

__all__ = [
    "FILE_REVISION",
    "STARTUP_ERRORS",
    "AccountSeed",
    "DevPartners",
    "IncompatibleFile",
    "InvalidScenario",
    "NumberSeed",
    "Scenario",
    "Simulator",
    "SimulatorSettings",
    "Snapshot",
    "SnapshotBusy",
    "SnapshotError",
    "SnapshotStore",
    "UnknownSnapshot",
    "read_scenario",
]
