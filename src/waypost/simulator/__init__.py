"""Simulator of the operator's Graph API, with phones; shares only `base` with the service."""

from waypost.simulator.control.fault_reading import Scenario, WrongScenario, read_scenario
from waypost.simulator.settings import AccountSeed, NumberSeed, SimulatorSettings, StatusesVersion
from waypost.simulator.simulator import Simulator
from waypost.simulator.store import FILE_REVISION, WrongFile
from waypost.simulator.whole_state import Keeper, NotAtRest, NotKept, Snapshot, UnknownSnapshot

__all__ = [
    "FILE_REVISION",
    "AccountSeed",
    "Keeper",
    "NotAtRest",
    "NotKept",
    "NumberSeed",
    "Scenario",
    "Simulator",
    "SimulatorSettings",
    "Snapshot",
    "StatusesVersion",
    "UnknownSnapshot",
    "WrongFile",
    "WrongScenario",
    "read_scenario",
]
