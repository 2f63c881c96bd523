"""The other party: a stand-in for the operator's Graph interface, with phones; shares only `base` with us."""

from waypost.simulator.settings import (
    AccountSeed,
    NumberSeed,
    SimulatorSettings,
    StatusesVersion,
)
from waypost.simulator.simulator import Simulator

__all__ = ["AccountSeed", "NumberSeed", "Simulator", "SimulatorSettings", "StatusesVersion"]
