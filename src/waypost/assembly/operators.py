"""The operator adapters of the service: one row for each kind of operator."""

from collections.abc import Callable, Mapping
from typing import Final

from waypost.base.clock import Clock
from waypost.config import Settings
from waypost.operators.cloud.account import KIND as CLOUD
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import Operator, Operators

MakeOperator = Callable[[Settings, Clock], Operator]

ADAPTERS: Final[
    Mapping[str, MakeOperator]
] = {  # kind of operator account: its adapter. Kinds are stored: never change one
    CLOUD: lambda settings, clock: CloudOperator(clock, timeout_s=settings.operator_timeout_s, held=settings.hold)
}


def make_operators(settings: Settings, clock: Clock, adapters: Mapping[str, MakeOperator]) -> Operators:
    """Return the adapters of a service, not yet open."""
    return Operators({kind: make(settings, clock) for kind, make in adapters.items()})
