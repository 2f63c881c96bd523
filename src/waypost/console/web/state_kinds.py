"""The one table of states and their kinds: a state has one colour on every page, in badges and charts."""

from typing import Any, Final

STATE_KINDS: Final = {
    # kind: states, in lower case
    "good": (
        "active",
        "approved",
        "delivered",
        "done",
        "green",
        "high",
        "live",
        "no errors",
        "ok",
        "valid",
        "window open",
    ),
    "info": (
        "clock changed",
        "in appeal",
        "of this app",
        "pending",
        "read",
        "sandbox requested",
        "setting",
        "simulated phones",
        "stopped",
        "unread",
        "waiting",
        "you",
    ),
    "quiet": (
        "accepted",
        "archived",
        "default",
        "deleted",
        "does not expire",
        "ended",
        "enqueued",
        "fleet",
        "in progress",
        "paused by you",
        "real time",
        "revoked",
        "sandbox",
        "sent",
        "window closed",
    ),
    "warn": (
        "blocked",
        "expires soon",
        "flagged",
        "held by pacing",
        "locked",
        "medium",
        "no marketing",
        "off",
        "offline",
        "paused",
        "paused by the service",
        "people",
        "rejected in review",
        "retrying",
        "uncertain",
        "unconfirmed",
        "warning",
        "yellow",
    ),
    "bad": (
        "api error",
        "armed",
        "dead letter",
        "deactivated",
        "disabled",
        "error",
        "expired",
        "failed",
        "failing",
        "failure",
        "given up",
        "low",
        "no response",
        "phone condition",
        "reached",
        "red",
        "rejected",
    ),
}
_KIND_BY_STATE: Final = {state: kind for kind, states in STATE_KINDS.items() for state in states}


def state_kind(state: Any) -> str:
    """Return the kind of a state, or of the status of an HTTP response; quiet if the table does not have it."""
    if isinstance(state, int):
        return {2: "good", 3: "warn"}.get(state // 100, "bad")
    return _KIND_BY_STATE.get(str(state).lower().replace("_", " "), "quiet")
