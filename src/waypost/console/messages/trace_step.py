"""View models of the steps of a message's trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waypost.console.callbacks.statuses import DeliveryStatus


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
class TraceBranch:
    """One callback about the event of a step: the branch of its subscription.

    Attributes:
        id: element id.
        tag: of the subscription; empty if it is deleted.
        after_ms: time from the event to its delivery; None: it was not delivered.
        tries: number of attempts that are no replays.
        replays: number of replays.
        callback: with its body and attempts.
    """

    id: str
    tag: str
    status: DeliveryStatus
    after_ms: int | None
    tries: int
    replays: int
    callback: Mapping[str, Any]


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
        event: that callbacks are about; empty if there are none about this step.
        branches: those callbacks, by the tags of their subscriptions.
        is_request: the request is attached.
        job: the job that this step waits for.
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
    event: str = ""
    branches: Sequence[TraceBranch] = ()
    is_request: bool = False
    job: Mapping[str, Any] | None = None
    number: int = 0
    fold: AttemptFold | None = None
