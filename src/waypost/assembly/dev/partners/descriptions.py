"""One line each for a callback, a message on a phone and a message's trace, in the explanation of a failed wait."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from waypost.assembly.dev.partners.inbox import CallbackAttemptView
from waypost.base.json_values import object_of, objects_in

_MAX_LINE_CHARS: Final = 96


def shorten(text: str) -> str:
    """Return a text as one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[: _MAX_LINE_CHARS - 1]}…"


def describe_callback(attempt: CallbackAttemptView) -> str:
    """Return a callback with the response to it."""
    parts = [attempt.kind]
    if attempt.message_id:
        parts.append(f"of message {attempt.message_id}")
    if attempt.phone:
        parts.append(f"phone {attempt.phone}")
    parts += [f'"{shorten(text)}"' for text in (attempt.text, attempt.reason) if text]
    if attempt.template_status:
        parts.append(attempt.template_status)
    response = f"response {attempt.status}" if attempt.status else "no response"
    reason = f": {shorten(attempt.response)}" if attempt.response and not attempt.was_delivered else ""
    return f"{', '.join(parts)}; {response}{reason}"


def describe_message(view: Mapping[str, Any]) -> str:
    """Return a message of a phone from its record in the control API."""
    from_phone = view.get("direction") == "from_phone"
    labels = "".join(f" [{label}]" for label in button_labels(view))
    state = "" if from_phone else f", {view.get('state', '')}"
    verb = "wrote" if from_phone else "got"
    text = shorten(str(view.get("text") or ""))
    return f'{_clock_time(int(view["at_ms"]))} {verb} {view.get("type", "")} "{text}"{labels}{state}'


def button_labels(view: Mapping[str, Any]) -> list[str]:
    """Return the labels of a message's buttons, then of those of its cards."""
    cards = [button for card in objects_in(view.get("cards")) for button in objects_in(card.get("buttons"))]
    return [str(button.get("text", "")) for button in (*objects_in(view.get("buttons")), *cards)]


def describe_trace(view: Mapping[str, Any]) -> str:
    """Return a message's state and steps from its record in the admin API."""
    times = [
        ("accepted", view["accepted_on_ms"]),
        *((one["event"], one["at_ms"]) for one in objects_in(view["events"])),
    ]
    steps = " → ".join(f"{event} {_clock_time(int(at_ms))}" for event, at_ms in times)
    failure = f" {view.get('code') or ''} {view.get('reason') or ''}".rstrip() if view["state"] == "failed" else ""
    job = _describe_job(object_of(view.get("waiting")))
    return f"{view['id']} to {view['destination']}: {view['state']}{failure} ({steps}){f'; {job}' if job else ''}"


def describe_fault(view: Mapping[str, Any]) -> str:
    """Return a fault from its record in the control API."""
    effect = ", ".join(_describe_member(name, value) for name, value in view.get("what", {}).items())
    condition = ", ".join(_describe_member(name, value) for name, value in view.get("when", {}).items())
    name = view.get(str(view.get("on")), "*")
    return f"{view.get('on')} {name}: {effect}; {condition}; applied {_times(int(view.get('hits', 0)))}"


def _describe_job(job: Mapping[str, Any]) -> str:
    if not job:
        return ""
    if not job["attempt"]:
        return "no attempt yet"
    reason = f": {job['note']}" if job.get("note") else ""
    return f"tried {_times(int(job['attempt']))}, next attempt at {_clock_time(int(job['due_ms']))}{reason}"


def _describe_member(name: str, value: object) -> str:
    return name if value is True else f"{name} {shorten(json.dumps(value))}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _clock_time(at_ms: int) -> str:
    """Return the time of day in UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.") + f"{at_ms % 1000:03d}"
