"""Texts of failed waits: what was expected, what was received instead, and likely causes."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from waypost.assembly.dev.partners.partner import PartnerForTest
from waypost.base.clock import DAY_MS
from waypost.base.json_values import object_of, objects_in
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.simulator.apis.dev_partners import CallbackAttemptView

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
    payload = object_of(attempt.body.get("payload"))
    if payload.get("status"):  # of a template
        parts.append(f"{payload.get('elementName', '')} {payload['status']}".strip())
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


LookupResult = TypeVar("LookupResult")
_MAX_LISTED: Final = 12
_MAX_TRACES: Final = 5
_ARRIVED_STATES: Final = ("delivered", "read")


async def explain_missing_message(
    partner: PartnerForTest, title: str, name: str, digits: str, received: Sequence[Mapping[str, Any]]
) -> str:
    """Return why a wait for a message on a person's phone failed. `received`: the messages on the phone."""
    arrived_ids = {view.get("callback_data") for view in received}
    sent = await _sent_messages(partner)
    lost = [view["id"] for view in sent if view["destination"] == digits and view["id"] not in arrived_ids]
    others = {view["destination"] for view in sent} - {digits}
    receiver = partner.inbox.options.forward_to or "the test's own receiver"
    # Callbacks without a 2xx response may be why the application has not replied.
    undelivered = [describe_callback(attempt) for attempt in partner.inbox.attempts if not attempt.was_delivered]
    return _join_lines(
        title,
        _list_section(f"on {name}'s phone", [describe_message(view) for view in received]),
        _list_section("sent to this phone, and not on it", await _traces(partner, lost), silent=True),
        [f"sent to other phones: {', '.join(sorted(others))}"] if others and not lost else [],
        _list_section(f"callbacks to {receiver} without a 2xx response", undelivered, silent=True),
        await _likely_causes(partner),
    )


async def explain_missing_callback(partner: PartnerForTest, title: str, message_id: str) -> str:
    """Return why a wait for a callback failed."""
    ids = [message_id] if message_id else await _unfinished_ids(partner)
    section = "the message it is about" if message_id else "messages in progress, or failed"
    traces = _list_section(section, await _traces(partner, ids), silent=True)
    return _join_lines(title, _callbacks(partner), traces, await _likely_causes(partner))


async def explain_unwanted_callback(partner: PartnerForTest, title: str, callback: CallbackAttemptView) -> str:
    """Return what arrived although none was expected."""
    line = f"  {describe_callback(callback)}"
    return _join_lines(title, [line], _callbacks(partner), await _likely_causes(partner))


async def describe_partner(partner: PartnerForTest, chats: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return a short report of a partner's messages and callbacks.

    Args:
        chats: the messages of each phone, by its owner's name.
    """
    unfinished = await _traces(partner, await _unfinished_ids(partner))
    return _join_lines(
        *(
            _list_section(f"on {name}'s phone", [describe_message(view) for view in chat])
            for name, chat in chats.items()
        ),
        _callbacks(partner),
        _list_section("messages in progress, or failed", unfinished, silent=True),
        await _likely_causes(partner),
    )


def _join_lines(*parts: str | list[str]) -> str:
    lines: list[str] = []
    for part in parts:
        lines += [part] if isinstance(part, str) else part
    return "\n".join(lines)


def _list_section(title: str, entries: Sequence[str], *, silent: bool = False) -> list[str]:
    if not entries:
        return [] if silent else [f"{title}: nothing"]
    omitted = len(entries) - _MAX_LISTED
    older = [f"  … and {omitted} older"] if omitted > 0 else []
    return [f"{title}, newest last:", *older, *(f"  {entry}" for entry in entries[-_MAX_LISTED:])]


def _callbacks(partner: PartnerForTest) -> list[str]:
    return _list_section("callbacks", [describe_callback(attempt) for attempt in partner.inbox.attempts])


async def _likely_causes(partner: PartnerForTest) -> list[str]:
    """List frequent causes: templates, faults, the clock."""
    templates = await _lookup_or_default(_unapproved_templates, partner, [])
    faults = await _lookup_or_default(_armed_faults, partner, [])
    return [
        *_list_section("templates that are not approved", templates, silent=True),
        *_list_section("armed faults", faults, silent=True),
        *await _lookup_or_default(_describe_clock, partner, []),
    ]


async def _lookup_or_default(
    lookup: Callable[[PartnerForTest], Awaitable[LookupResult]], partner: PartnerForTest, default: LookupResult
) -> LookupResult:
    """Return the result of a lookup, or the default if an API fails: an explanation then shows less."""
    try:
        return await lookup(partner)
    except (ApiResponseError, ApiUnreachable):
        return default


async def _sent_messages(partner: PartnerForTest) -> list[dict[str, Any]]:
    """Return the newest messages that the partner's app has sent, oldest first."""
    return await _lookup_or_default(_read_sent_messages, partner, [])


async def _read_sent_messages(partner: PartnerForTest) -> list[dict[str, Any]]:
    response = await partner.clients.admin.json("GET", f"/admin/apps/{partner.app_id}/messages")
    newest_first: list[dict[str, Any]] = response["messages"]
    return newest_first[::-1]


async def _unfinished_ids(partner: PartnerForTest) -> list[str]:
    return [view["id"] for view in await _sent_messages(partner) if view["state"] not in _ARRIVED_STATES]


async def _traces(partner: PartnerForTest, ids: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for message_id in list(ids)[-_MAX_TRACES:]:
        try:
            path = f"/admin/messages/{quote(message_id, safe='')}"
            lines.append(describe_trace(await partner.clients.admin.json("GET", path)))
        except (ApiResponseError, ApiUnreachable) as error:
            lines.append(f"message {message_id}: {error}")
    return lines


async def _unapproved_templates(partner: PartnerForTest) -> list[str]:
    path = f"/admin/apps/{partner.app_id}/templates"
    newest_first: list[dict[str, Any]] = (await partner.clients.admin.json("GET", path))["templates"]
    return [
        f"{view['element_name']} ({view['language_code']}) is {view['status']} {view['reason'] or ''}".rstrip()
        for view in reversed(newest_first)
        if view["status"] != "APPROVED"
    ]


async def _armed_faults(partner: PartnerForTest) -> list[str]:
    faults: list[dict[str, Any]] = (await partner.clients.control.json("GET", "/control/faults"))["faults"]
    own = [view for view in faults if view.get("waba_id") in (None, partner.names.waba_id)]
    return [describe_fault(view) for view in own if view.get("is_armed", True)]


async def _describe_clock(partner: PartnerForTest) -> list[str]:
    clock: dict[str, Any] = await partner.clients.control.json("GET", "/control/clock")
    texts: list[str] = []
    if clock["is_frozen"]:
        texts.append("is frozen: nothing becomes due by itself")
    elif clock["factor"] != 1:
        texts.append(f"runs at {clock['factor']:g} times real time")
    days_ahead = round(clock["ahead_ms"] / DAY_MS, 2)
    if days_ahead:
        texts.append(f"is {days_ahead:.2f} days ahead")
    return [f"the clock {', and '.join(texts)}"] if texts else []
