"""Formatting of numbers, durations, phone numbers and JSON; and the one table of states and their kinds."""

import json
from functools import lru_cache
from typing import Any, Final


def format_chart_number(number: float) -> str:
    """Return a number for a chart, with thousands separators; below ten with one decimal."""
    text = f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return text.replace(",", "\u202f")


def format_duration(ms: float) -> str:
    """Return milliseconds as `35 ms`, `1.2 s` or `10 s`, with a no-break space."""
    if ms < 1:
        return "under 1\u00a0ms"
    if ms < 1000:
        return f"{ms:.0f}\u00a0ms"
    return f"{ms / 1000:.0f}\u00a0s" if ms >= 10_000 or ms % 1000 == 0 else f"{ms / 1000:.1f}\u00a0s"


def format_number(number: float | None) -> str:
    """Return an exact number with thousands separators; empty for None."""
    return "" if number is None else f"{number:,}".replace(",", "\u202f")


@lru_cache(maxsize=4096)
def format_phone(digits: str | None) -> str:
    """Return a phone number in its country's format, `+44 20 7946 0958`; other texts unchanged."""
    if not digits or not (digits.isascii() and digits.isdecimal()) or not 8 <= len(digits) <= 15:
        return digits or ""
    import phonenumbers  # here, because its tables are large

    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return f"+{digits}"
    grouped = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
    return grouped.replace("-", " ")


def pretty_json(value: Any) -> str:
    """Return indented JSON; a text that is not JSON unchanged."""
    if isinstance(value, (str, bytes)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
    return json.dumps(value, indent=2, ensure_ascii=False)


STATE_KINDS: Final = {  # kind: states, in lower case
    kind: states.split(", ")
    for kind, states in {
        "good": "active, approved, delivered, done, green, high, live, no errors, ok, published, valid, verified, window open",
        "info": (
            "clock changed, in appeal, of this app, pending, read, sandbox requested, setting, "
            "simulated phones, stopped, unread, waiting, you"
        ),
        "quiet": (
            "accepted, archived, default, deleted, deprecated, does not expire, draft, ended, enqueued, fleet, in progress, "
            "paused by you, real time, revoked, sandbox, sent, window closed"
        ),
        "warn": (
            "blocked, expires soon, flagged, held by pacing, locked, medium, no marketing, off, offline, "
            "paused, paused by the service, people, rejected in review, retrying, throttled, uncertain, unconfirmed, "
            "warning, yellow"
        ),
        "bad": (
            "api error, armed, dead letter, deactivated, disabled, error, expired, failed, failing, "
            "failure, given up, low, no response, phone condition, reached, red, rejected"
        ),
    }.items()
}
_KIND_BY_STATE: Final = {state: kind for kind, states in STATE_KINDS.items() for state in states}


def state_kind(state: Any) -> str:
    """Return the kind of a state, or of the status of an HTTP response; quiet if the table does not have it."""
    if isinstance(state, int):
        return {2: "good", 3: "warn"}.get(state // 100, "bad")
    return _KIND_BY_STATE.get(str(state).lower().replace("_", " "), "quiet")
