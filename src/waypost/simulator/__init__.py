"""Simulator of the operator's Graph API, with phones; shares only `base` with the service."""

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
