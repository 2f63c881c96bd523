"""What runs the service for a test run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class NotStarted(Exception):
    """There is no service to test against; the text says why, and what to do."""


class Engine(Protocol):
    """Something that runs the service."""

    @property
    def variables(self) -> Mapping[str, str]:
        """What `waypost dev` tells other programs."""
        ...

    def stop(self) -> None:
        """Stop it in order; what was not ours goes on."""
        ...


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A service that somebody else runs."""

    variables: Mapping[str, str]

    def stop(self) -> None:
        """Leave it alone."""
