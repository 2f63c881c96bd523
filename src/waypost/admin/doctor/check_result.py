"""The result of one check."""

from dataclasses import dataclass
from enum import StrEnum


class CheckState(StrEnum):
    """The severity: `wrong` prevents something from working, `warning` soon may or should be known."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report. No secret is ever part of it.

    Attributes:
        about: the subject of the check, such as `operator account cloud`.
        text: the result in one sentence.
        remedy: the fix hint; empty if there is nothing to fix.
    """

    about: str
    state: CheckState
    text: str
    remedy: str = ""


def ok(about: str, text: str) -> CheckResult:
    """Return the result of a passed check."""
    return CheckResult(about, CheckState.OK, text)


def warning(about: str, text: str, fix_hint: str) -> CheckResult:
    """Return a result that does not prevent anything from working but should be known."""
    return CheckResult(about, CheckState.WARNING, text, fix_hint)


def failure(about: str, text: str, fix_hint: str) -> CheckResult:
    """Return the result of a failed check."""
    return CheckResult(about, CheckState.WRONG, text, fix_hint)
