"""The result of one check."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The severity: `wrong` prevents something from working, `warning` soon may or should be known."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. No secret is ever part of it.

    Attributes:
        about: the subject of the check, such as `operator account cloud`.
        text: the result in one sentence.
        remedy: the fix hint; empty if there is nothing to fix.
    """

    about: str
    state: State
    text: str
    remedy: str = ""


def ok(about: str, text: str) -> Finding:
    """Return the result of a passed check."""
    return Finding(about, State.OK, text)


def warning(about: str, text: str, remedy: str) -> Finding:
    """Return a result that does not prevent anything from working but should be known."""
    return Finding(about, State.WARNING, text, remedy)


def wrong(about: str, text: str, remedy: str) -> Finding:
    """Return the result of a failed check."""
    return Finding(about, State.WRONG, text, remedy)
