"""View models of the steps of a message's trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One failed attempt to send to the operator that will be retried.

    Attributes:
        id: element id inside a fold.
        number: number among all attempts of the message, from 1.
        gap_ms: time since the previous step.
        text: error of the attempt; empty if the fold has the same one for all.
    """

    id: str
    number: int
    at_ms: int
    gap_ms: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class AttemptFold:
    """Consecutive attempts, shown as one step.

    Attributes:
        id: id of the element with the attempts between the first and the last.
        between: the newest of those, oldest first.
        older: number of those that are not listed.
    """

    id: str
    first: FailedAttempt
    last: FailedAttempt
    between: Sequence[FailedAttempt]
    older: int


@dataclass(frozen=True, slots=True)
class TraceStepView:
    """One step of a trace.

    Attributes:
        id: element id.
        at_ms: time of the step; None for a future step.
        who: You, Waypost, Operator or Callback.
        tone: good, bad, warn, info or quiet.
        title: in a few words.
        text: details.
        gap_ms: time since the previous step; None for the first and for a future step.
        kind: type of the attached data: `request`, `callback`, or empty.
        source: data that is attached.
        number: number of an attempt at the operator, from 1; 0 for other steps.
        fold: the attempts that this step combines; None for a single step.
    """

    id: str
    at_ms: int | None
    who: str
    tone: str
    title: str
    text: str = ""
    gap_ms: int | None = None
    kind: str = ""
    source: Mapping[str, Any] | None = None
    number: int = 0
    fold: AttemptFold | None = None
