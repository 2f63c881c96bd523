"""What a step of a message's trace is, and what many equal ones are together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Try:
    """One try at the operator that did not end the message.

    Attributes:
        id: of its element inside a fold.
        number: counted over all tries of the message, from 1.
        gap_ms: since the step before.
        text: what came of it; empty where the fold says it for all.
    """

    id: str
    number: int
    at_ms: int
    gap_ms: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Tries that followed each other, as one step.

    Attributes:
        id: of the element that holds those between the first and the last.
        between: the newest of them, oldest first.
        older: how many more are between, and are not listed.
    """

    id: str
    first: Try
    last: Try
    between: Sequence[Try]
    older: int


@dataclass(frozen=True, slots=True)
class Step:
    """One.

    Attributes:
        id: of its element.
        at_ms: when; None: it is still to come.
        who: whose doing it is: you, Waypost, the operator or your receiver.
        tone: good, bad, warn, info or quiet.
        title: in a few words.
        text: more of it.
        gap_ms: since the step before; None: it is the first, or still to come.
        kind: what is shown with it: `request`, `callback`, or nothing.
        of: what that is made from.
        number: of a try at the operator, from 1; 0: it is none.
        fold: the tries that it stands for; None: it stands for itself.
    """

    id: str
    at_ms: int | None
    who: str
    tone: str
    title: str
    text: str = ""
    gap_ms: int | None = None
    kind: str = ""
    of: Mapping[str, Any] | None = None
    number: int = 0
    fold: Fold | None = None
