"""Table: the reasons for which a job waits. Trace, console, `waypost doctor`, admin API and metrics use its words."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class WaitReason(StrEnum):
    """Why a job is not worked now; the value is the key in the admin API and the label of metrics."""

    OPERATOR_AWAY = "operator_away"
    OPERATOR_PAUSE = "operator_pause"
    SOURCE_PACE = "source_pace"
    PAIR_PACE = "pair_pace"
    RECEIVER_FAILING = "receiver_failing"
    RECEIVER_PAUSE = "receiver_pause"
    RECEIVER_NEW = "receiver_new"
    SUBSCRIPTION_PAUSED = "subscription_paused"
    SLOTS = "slots"
    RETRY = "retry"
    NOT_DUE = "not_due"
    ORDER = "order"
    BACKLOG = "backlog"
    UPLOAD = "upload"
    HANDED_OVER = "handed_over"


class WaitCause(StrEnum):
    """The side that a reason lies on: who can do something about it."""

    OPERATOR = "operator"
    RECEIVER = "receiver"
    PARTNER = "partner"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class WaitExplanation:
    """One row."""

    cause: WaitCause
    text: str  # follows `waiting: `
    ends: str  # what ends it
    is_problem: bool = False  # `waypost doctor` warns of it


WAIT_EXPLANATIONS: Final = {  # Source: decision 0119
    WaitReason.OPERATOR_AWAY: WaitExplanation(
        WaitCause.OPERATOR,
        "the operator is away; one message at a time tests it",
        "any response of the operator",
        is_problem=True,
    ),
    WaitReason.OPERATOR_PAUSE: WaitExplanation(
        WaitCause.OPERATOR, "the operator requires a pause", "the time that the operator requires", is_problem=True
    ),
    WaitReason.SOURCE_PACE: WaitExplanation(
        WaitCause.OPERATOR, "the number sends as fast as the operator allows", "the next part of a second"
    ),
    WaitReason.PAIR_PACE: WaitExplanation(
        WaitCause.OPERATOR,
        "the recipient gets messages as fast as the operator allows for one recipient",
        "6 seconds for each message beyond the burst",
    ),
    WaitReason.RECEIVER_FAILING: WaitExplanation(
        WaitCause.RECEIVER,
        "the receiver fails; one callback at a time tests it",
        "a callback that is delivered, a new URL, or `waypost callbacks retry`",
        is_problem=True,
    ),
    WaitReason.RECEIVER_PAUSE: WaitExplanation(
        WaitCause.RECEIVER,
        "the receiver requires a pause (Retry-After)",
        "the time that the receiver requires, or `waypost callbacks retry`",
        is_problem=True,
    ),
    WaitReason.RECEIVER_NEW: WaitExplanation(WaitCause.SERVICE, "the subscription is being read", "the read"),
    WaitReason.SUBSCRIPTION_PAUSED: WaitExplanation(
        WaitCause.PARTNER,
        "the subscription is paused",
        "`waypost callbacks resume`, or the partner's own change of the subscription",
        is_problem=True,
    ),
    WaitReason.SLOTS: WaitExplanation(
        WaitCause.SERVICE, "as many are in flight as it may have", "the end of one of those in flight"
    ),
    WaitReason.RETRY: WaitExplanation(WaitCause.SERVICE, "it failed, and is retried by its schedule", "its due time"),
    WaitReason.NOT_DUE: WaitExplanation(WaitCause.SERVICE, "it is not due yet", "its due time"),
    WaitReason.ORDER: WaitExplanation(
        WaitCause.SERVICE, "an earlier one for the same recipient has not ended", "the end of the earlier one"
    ),
    WaitReason.BACKLOG: WaitExplanation(
        WaitCause.SERVICE, "many earlier ones are before it", "the end of the earlier ones"
    ),
    WaitReason.UPLOAD: WaitExplanation(
        WaitCause.SERVICE, "its media are being uploaded to the operator", "the end of the uploads"
    ),
    WaitReason.HANDED_OVER: WaitExplanation(
        WaitCause.SERVICE, "another process has sent for the number until just now", "the rest of the second"
    ),
}
