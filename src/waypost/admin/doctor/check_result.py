"""What a look at one thing has found."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How serious it is: `wrong` keeps something from working, `warning` soon may, or is to be known."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. No secret is ever part of it.

    Attributes:
        about: what was looked at, such as `operator account cloud`.
        text: what was found.
        remedy: what to do; empty where there is nothing to do.
    """

    about: str
    state: State
    text: str
    remedy: str = ""


def ok(about: str, text: str) -> Finding:
    """It is as it should be."""
    return Finding(about, State.OK, text)


def warning(about: str, text: str, remedy: str) -> Finding:
    """It works, and somebody should know."""
    return Finding(about, State.WARNING, text, remedy)


def wrong(about: str, text: str, remedy: str) -> Finding:
    """It does not work."""
    return Finding(about, State.WRONG, text, remedy)
