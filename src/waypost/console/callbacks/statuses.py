"""The status of a callback as what happened: the response, the next attempt, or why it waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from waypost.store.callbacks.deliveries import OpenCallback, SubscriptionHealth
from waypost.store.queue.names import JobState


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """Status of a callback: the event, and the time that it names.

    Attributes:
        state: of the badge, in `web/state_kinds.py`.
        text: followed by the time, if there is one.
        at_ms: the time that the text is about.
        form: of the time on pages.
    """

    state: str
    text: str
    at_ms: int | None = None
    form: str = "relative"


def delivery_status(
    callback: Mapping[str, Any],
    responses: Sequence[int | None],
    job: OpenCallback | None,
    subscription: SubscriptionHealth | None,
    now_ms: int,
) -> DeliveryStatus:
    """Return the status of a callback.

    Args:
        callback: with `ended_on_ms` and `delivered`.
        responses: status of the response to each attempt that was no replay, oldest first; None: no response.
        job: None if it has ended.
        subscription: None if it is deleted.
        now_ms: by the service's clock.
    """
    if callback["ended_on_ms"] is not None:
        if callback["delivered"]:
            return DeliveryStatus("delivered", response_text(responses[-1]) if responses else "Delivered")
        return DeliveryStatus(
            "given up", f"Not delivered: {response_text(responses[-1])}" if responses else "Not delivered"
        )
    if subscription is None:
        return DeliveryStatus("deleted", "Subscription deleted")
    if not subscription.active:
        return DeliveryStatus("paused by you", "Paused by you")
    if subscription.paused_on_ms is not None:
        return DeliveryStatus("paused", "Paused by the service since", subscription.paused_on_ms, "moment")
    if job is not None and job.state >= JobState.DEAD_LETTER:
        return DeliveryStatus("dead letter", "Dead letter after internal errors")
    if responses:
        due_ms = max(job.due_ms if job else 0, subscription.next_attempt_ms or 0)
        text = f"Retrying: {responses[-1] or 'no response'}, next"
        return (
            DeliveryStatus("retrying", text, due_ms) if due_ms > now_ms else DeliveryStatus("retrying", f"{text} now")
        )
    if subscription.failing_since_ms is not None:
        text = f"Blocked: {subscription.last_status or 'no response'} since"
        return DeliveryStatus("blocked", text, subscription.failing_since_ms, "moment")
    return DeliveryStatus("waiting", "Queued")


def response_text(status: int | None) -> str:
    """Return the status of a response as HTTP writes it, `200 OK`."""
    if status is None:
        return "no response"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:  # not a registered one
        return str(status)
