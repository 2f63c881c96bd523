"""The contract of what runs the service for a test run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class NotStarted(Exception):
    """No service is available for the tests; the text has the reason and a fix hint."""


class ServiceRuntime(Protocol):
    """Runs the service, or knows one that runs."""

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that `waypost dev` writes for other programs."""
        ...

    def stop(self) -> None:
        """Stop it in order; a service that we did not start goes on."""
        ...


@dataclass(frozen=True, slots=True)
class ExternalRuntime:
    """A service that was started elsewhere."""

    variables: Mapping[str, str]

    def stop(self) -> None:
        """Do nothing."""
