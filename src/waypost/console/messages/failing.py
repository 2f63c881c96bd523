"""Why one message failed, or waits, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.console.failures import failure_of

GIVEN_UP: Final = "given up after the message's lifetime: "
"""How dispatch begins the reason of what it has tried for too long."""
INVALID_ANSWER: Final = 4002


@dataclass(frozen=True, slots=True)
class Why:
    """What is said above the steps.

    Attributes:
        tone: bad or warn.
        what: happened.
        words: the operator's own, or ours; may be empty.
        remedy: what to do.
        code: the partner's; None where there is none.
        can_go_again: whether sending it again is sensible.
    """

    tone: str
    what: str
    words: str
    remedy: str
    code: int | None = None
    can_go_again: bool = True


def why_of(trace: Mapping[str, Any]) -> Why | None:
    """What went wrong with a message; None where nothing did."""
    state, code, words = trace["state"], trace["code"], trace["reason"] or ""
    if state == "uncertain":
        return Why(
            "warn", "Not known whether it was sent", words,
            "The connection broke while it was handed over. A status settles it; it is not sent again on a guess.",
            can_go_again=False,
        )  # fmt: skip
    if state != "failed":
        return None
    if trace["doubted"]:
        known = failure_of(INVALID_ANSWER)
        return Why("bad", known.what, words, known.remedy, code)
    if words.startswith(GIVEN_UP):
        return Why(
            "bad", "It was tried for all its lifetime", words.removeprefix(GIVEN_UP),
            "See in the steps what kept it; once that is mended, send it again.", code,
        )  # fmt: skip
    if code == INVALID_ANSWER:
        return Why(
            "bad", "The operator\u2019s answer could not be read", words,
            "Send it again; tell whoever runs the service if it happens often.", code,
        )  # fmt: skip
    known = failure_of(code)
    return Why("bad", known.what, words, known.remedy, code)
