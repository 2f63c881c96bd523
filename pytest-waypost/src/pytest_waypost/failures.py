"""Waits with a timeout, and the texts of those that fail: what was received instead, and likely causes."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from pytest_waypost.callback import Callback
from pytest_waypost.client import ApiResponseError, ApiUnreachable
from pytest_waypost.formatting import count_in_words, shorten
from pytest_waypost.message import Message, Trace, parse_trace
from pytest_waypost.partner_setup import Tenancy

LookupResult = TypeVar("LookupResult")
WaitResult = TypeVar("WaitResult")
_POLL_INTERVAL_S: Final = 0.01
_DAY_MS: Final = 24 * 60 * 60 * 1000
_MAX_LISTED: Final = 12
_MAX_TRACES: Final = 5
_ARRIVED_STATES: Final = ("delivered", "read")


class Deadline:
    """The end of a wait, by the machine's steady clock: virtual time does not shorten a wait."""

    def __init__(self, within_s: float) -> None:
        self._until_s = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        """Seconds to go; never negative."""
        return max(0.0, self._until_s - time.monotonic())

    @property
    def is_over(self) -> bool:
        """True if it has passed."""
        return time.monotonic() >= self._until_s


def poll(lookup: Callable[[], WaitResult | None], within_s: float) -> WaitResult | None:
    """Return the first result that is not None, or None after the timeout; looks at least once."""
    deadline = Deadline(within_s)
    while (result := lookup()) is None and not deadline.is_over:
        time.sleep(_POLL_INTERVAL_S)
    return result


class NotSeen(AssertionError):
    """Raised when what a test waited for did not arrive in time; the text shows what did."""


def missing_message(
    tenancy: Tenancy, *, name: str, digits: str, expected: str, within_s: float, seen: Sequence[Message]
) -> NotSeen:
    """Return the failure of a wait for a message on a phone."""
    arrived = {message.message_id for message in seen}
    sent = _sent_messages(tenancy)
    lost = [view["id"] for view in sent if view["destination"] == digits and view["id"] not in arrived]
    others = {view["destination"] for view in sent} - {digits}
    return NotSeen(
        _join_lines(
            f"no message {expected}came to {name} ({digits}) within {within_s:g} s",
            _list_section(f"on {name}'s phone", seen),
            _list_section("sent to this phone, and not on it", _traces(tenancy, lost), silent=True),
            [f"sent to other phones: {', '.join(sorted(others))}"] if others and not lost else [],
            _undelivered_callbacks(tenancy),
            _likely_causes(tenancy),
        )
    )


def missing_callback(tenancy: Tenancy, *, expected: str, within_s: float, message_id: str) -> NotSeen:
    """Return the failure of a wait for a callback."""
    ids = [message_id] if message_id else _unfinished_ids(tenancy)
    title = "the message it is about" if message_id else "messages in progress, or failed"
    return NotSeen(
        _join_lines(
            f"no callback {expected}came within {within_s:g} s",
            _list_section("callbacks", tenancy.inbox.attempts),
            _list_section(title, _traces(tenancy, ids), silent=True),
            _likely_causes(tenancy),
        )
    )


def unmet_condition(text: str, tenancy: Tenancy, chats: Mapping[str, Sequence[Message]]) -> NotSeen:
    """Return the failure of a wait for a condition of an application or a template."""
    return NotSeen(_join_lines(text, describe_activity(tenancy, chats)))


def describe_activity(tenancy: Tenancy, chats: Mapping[str, Sequence[Message]]) -> str:
    """Return a short report of a partner's messages and callbacks, for any failure of its test.

    Args:
        tenancy: the partner.
        chats: the messages of each phone, by its owner's name.
    """
    return _join_lines(
        *(_list_section(f"on {name}'s phone", chat) for name, chat in chats.items()),
        _list_section("callbacks", tenancy.inbox.attempts),
        _list_section("messages in progress, or failed", _traces(tenancy, _unfinished_ids(tenancy)), silent=True),
        _likely_causes(tenancy),
    )


def _join_lines(*parts: str | list[str]) -> str:
    lines: list[str] = []
    for part in parts:
        lines += [part] if isinstance(part, str) else part
    return "\n".join(lines)


def _list_section(
    title: str, entries: Sequence[Message | Callback | Trace | str], *, silent: bool = False
) -> list[str]:
    if not entries:
        return [] if silent else [f"{title}: nothing"]
    omitted = len(entries) - _MAX_LISTED
    older = [f"  … and {omitted} older"] if omitted > 0 else []
    return [f"{title}, newest last:", *older, *(f"  {entry}" for entry in entries[-_MAX_LISTED:])]


def _undelivered_callbacks(tenancy: Tenancy) -> list[str]:
    """List callbacks without a 2xx response: they may be why the application has not replied."""
    undelivered = [callback for callback in tenancy.inbox.attempts if not callback.was_delivered]
    receiver = tenancy.inbox.forward_url or "the test's own receiver"
    return _list_section(f"callbacks to {receiver} without a 2xx response", undelivered, silent=True)


def _likely_causes(tenancy: Tenancy) -> list[str]:
    """List frequent causes: templates, faults, the clock."""
    return [
        *_list_section(
            "templates that are not approved", _lookup_or_default(_unapproved_templates, tenancy, []), silent=True
        ),
        *_list_section("armed faults", _lookup_or_default(_armed_faults, tenancy, []), silent=True),
        *_lookup_or_default(_describe_clock, tenancy, []),
    ]


def _lookup_or_default(
    lookup: Callable[[Tenancy], LookupResult], tenancy: Tenancy, default: LookupResult
) -> LookupResult:
    """Return the result of a lookup, or the default if an API does not respond: a failure then shows less."""
    try:
        return lookup(tenancy)
    except (ApiResponseError, ApiUnreachable):
        return default


def _sent_messages(tenancy: Tenancy) -> list[dict[str, Any]]:
    """Return all messages that the partner's app has sent, oldest first."""
    return _lookup_or_default(_read_sent_messages, tenancy, [])


def _read_sent_messages(tenancy: Tenancy) -> list[dict[str, Any]]:
    response = tenancy.service.admin.json("GET", f"/apps/{tenancy.app_id}/messages")
    newest_first: list[dict[str, Any]] = response["messages"]
    return newest_first[::-1]


def _unfinished_ids(tenancy: Tenancy) -> list[str]:
    return [view["id"] for view in _sent_messages(tenancy) if view["state"] not in _ARRIVED_STATES]


def _traces(tenancy: Tenancy, ids: Iterable[str]) -> list[Trace | str]:
    traces: list[Trace | str] = []
    for message_id in list(ids)[-_MAX_TRACES:]:
        try:
            traces.append(parse_trace(tenancy.service.admin.json("GET", f"/messages/{message_id}")))
        except (ApiResponseError, ApiUnreachable) as error:
            traces.append(f"message {message_id}: {error}")
    return traces


def _unapproved_templates(tenancy: Tenancy) -> list[str]:
    path = f"/apps/{tenancy.app_id}/templates"
    newest_first: list[dict[str, Any]] = tenancy.service.admin.json("GET", path)["templates"]
    return [
        f"{view['element_name']} ({view['language_code']}) is {view['status']} {view['reason'] or ''}".rstrip()
        for view in reversed(newest_first)
        if view["status"] != "APPROVED"
    ]


def _armed_faults(tenancy: Tenancy) -> list[str]:
    faults: list[dict[str, Any]] = tenancy.service.control.json("GET", "/faults")["faults"]
    own = [view for view in faults if view.get("waba_id") in (None, tenancy.names.waba_id)]
    return [_describe_fault(view) for view in own if view.get("is_armed", True)]


def _describe_fault(view: Mapping[str, Any]) -> str:
    effect = ", ".join(_describe_member(name, value) for name, value in view.get("what", {}).items())
    condition = ", ".join(_describe_member(name, value) for name, value in view.get("when", {}).items())
    name = view.get(str(view.get("on")), "*")
    return f"{view.get('on')} {name}: {effect}; {condition}; applied {count_in_words(int(view.get('hits', 0)))}"


def _describe_member(name: str, value: object) -> str:
    return name if value is True else f"{name} {shorten(json.dumps(value))}"


def _describe_clock(tenancy: Tenancy) -> list[str]:
    clock: dict[str, Any] = tenancy.service.control.json("GET", "/clock")
    parts: list[str] = []
    if clock["is_frozen"]:
        parts.append("is frozen: nothing becomes due by itself")
    elif clock["factor"] != 1:
        parts.append(f"runs at {clock['factor']:g} times real time")
    days_ahead = round(clock["ahead_ms"] / _DAY_MS, 2)
    if days_ahead:
        parts.append(f"is {days_ahead:.2f} days ahead")
    return [f"the clock {', and '.join(parts)}"] if parts else []
