"""The other party: a stand-in for the operator's Graph interface, with phones; shares only `base` with us."""

from waypost.simulator.control.scenarios import Scenario, WrongScenario, read_scenario
from waypost.simulator.keeper import Keeper, NotAtRest, NotKept, Snapshot
from waypost.simulator.settings import AccountSeed, NumberSeed, SimulatorSettings, StatusesVersion
from waypost.simulator.simulator import Simulator
from waypost.simulator.store import FILE_REVISION, OLDEST_FILE_REVISION, WrongFile, upgrade_file

__all__ = [
    "FILE_REVISION",
    "OLDEST_FILE_REVISION",
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
    "WrongFile",
    "WrongScenario",
    "read_scenario",
    "upgrade_file",
]
