"""What a failed wait says: what was waited for, what came instead, and what stood in its way."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from waypost.base.clock import DAY_MS
from waypost.client.responses import ApiResponseError, NotReached
from waypost.testing.callback import Callback
from waypost.testing.formatting import shortened, times
from waypost.testing.message import Message
from waypost.testing.partner_setup import Tenancy
from waypost.testing.trace import Trace, trace_of

Part = TypeVar("Part")
_NEWEST: Final = 12
_TRACES: Final = 5
_ARRIVED: Final = ("delivered", "read")


class NotSeen(AssertionError):
    """What a test waited for has not come; the text shows what has."""


def not_on_phone(
    tenancy: Tenancy, *, name: str, digits: str, wanted: str, within_s: float, seen: Sequence[Message]
) -> NotSeen:
    """No such message came to a phone in time."""
    arrived = {one.message_id for one in seen}
    sent = _sent(tenancy)
    lost = [one["id"] for one in sent if one["destination"] == digits and one["id"] not in arrived]
    others = {one["destination"] for one in sent} - {digits}
    return NotSeen(
        _text(
            f"no message {wanted}came to {name} ({digits}) within {within_s:g} s",
            _listed(f"on {name}'s phone", seen),
            _listed("sent to this phone, and not on it", _traces(tenancy, lost), silent=True),
            [f"sent to other phones: {', '.join(sorted(others))}"] if others and not lost else [],
            _refused_callbacks(tenancy),
            _surroundings(tenancy),
        )
    )


def no_callback(tenancy: Tenancy, *, wanted: str, within_s: float, message_id: str) -> NotSeen:
    """No such callback came in time."""
    ids = [message_id] if message_id else _unfinished(tenancy)
    about = "the message it is about" if message_id else "messages under way, or failed"
    return NotSeen(
        _text(
            f"no callback {wanted}came within {within_s:g} s",
            _listed("callbacks", tenancy.box.tries),
            _listed(about, _traces(tenancy, ids), silent=True),
            _surroundings(tenancy),
        )
    )


def not_so(what: str, tenancy: Tenancy, chats: Mapping[str, Sequence[Message]]) -> NotSeen:
    """A claim about an application or a template did not come true in time."""
    return NotSeen(_text(what, happened(tenancy, chats)))


def happened(tenancy: Tenancy, chats: Mapping[str, Sequence[Message]]) -> str:
    """All that happened to a partner, in a few lines: for any failure of its test.

    Args:
        tenancy: the partner.
        chats: what each phone shows, by its owner's name.
    """
    return _text(
        *(_listed(f"on {name}'s phone", chat) for name, chat in chats.items()),
        _listed("callbacks", tenancy.box.tries),
        _listed("messages under way, or failed", _traces(tenancy, _unfinished(tenancy)), silent=True),
        _surroundings(tenancy),
    )


def _text(*parts: str | list[str]) -> str:
    lines: list[str] = []
    for part in parts:
        lines += [part] if isinstance(part, str) else part
    return "\n".join(lines)


def _listed(what: str, seen: Sequence[Message | Callback | Trace | str], *, silent: bool = False) -> list[str]:
    if not seen:
        return [] if silent else [f"{what}: nothing"]
    left_out = len(seen) - _NEWEST
    older = [f"  … and {left_out} older"] if left_out > 0 else []
    return [f"{what}, newest last:", *older, *(f"  {one}" for one in seen[-_NEWEST:])]


def _refused_callbacks(tenancy: Tenancy) -> list[str]:
    """Callbacks that the application did not answer with 2xx: it may never have come to its reply."""
    refused = [one for one in tenancy.box.tries if not one.was_taken]
    where = tenancy.box.goes_to or "the test's own receiver"
    return _listed(f"callbacks that {where} did not answer with 2xx", refused, silent=True)


def _surroundings(tenancy: Tenancy) -> list[str]:
    """What is often the reason: templates, faults, the clock."""
    return [
        *_listed("templates that are not approved", _looked_at(_templates, tenancy, []), silent=True),
        *_listed("armed faults", _looked_at(_faults, tenancy, []), silent=True),
        *_looked_at(_clock, tenancy, []),
    ]


def _looked_at(look: Callable[[Tenancy], Part], tenancy: Tenancy, otherwise: Part) -> Part:
    """A failure is told also when a door does not answer: with less in it."""
    try:
        return look(tenancy)
    except (ApiResponseError, NotReached):
        return otherwise


def _sent(tenancy: Tenancy) -> list[dict[str, Any]]:
    """What the partner's app has sent, oldest first, whoever did."""
    return _looked_at(_sent_by_the_app, tenancy, [])


def _sent_by_the_app(tenancy: Tenancy) -> list[dict[str, Any]]:
    listed = tenancy.service.admin.json("GET", f"/apps/{tenancy.app_id}/messages")
    newest_first: list[dict[str, Any]] = listed["messages"]
    return newest_first[::-1]


def _unfinished(tenancy: Tenancy) -> list[str]:
    return [one["id"] for one in _sent(tenancy) if one["state"] not in _ARRIVED]


def _traces(tenancy: Tenancy, ids: Iterable[str]) -> list[Trace | str]:
    traces: list[Trace | str] = []
    for message_id in list(ids)[-_TRACES:]:
        try:
            traces.append(trace_of(tenancy.service.admin.json("GET", f"/messages/{message_id}")))
        except (ApiResponseError, NotReached) as error:
            traces.append(f"message {message_id}: {error}")
    return traces


def _templates(tenancy: Tenancy) -> list[str]:
    path = f"/apps/{tenancy.app_id}/templates"
    newest_first: list[dict[str, Any]] = tenancy.service.admin.json("GET", path)["templates"]
    return [
        f"{one['element_name']} ({one['language_code']}) is {one['status']} {one['reason'] or ''}".rstrip()
        for one in reversed(newest_first)
        if one["status"] != "APPROVED"
    ]


def _faults(tenancy: Tenancy) -> list[str]:
    faults: list[dict[str, Any]] = tenancy.service.control.json("GET", "/faults")["faults"]
    mine = [one for one in faults if one.get("waba_id") in (None, tenancy.names.waba_id)]
    return [_fault(one) for one in mine if one.get("is_armed", True)]


def _fault(view: Mapping[str, Any]) -> str:
    what = ", ".join(_member(name, value) for name, value in view.get("what", {}).items())
    when = ", ".join(_member(name, value) for name, value in view.get("when", {}).items())
    name = view.get(str(view.get("on")), "*")
    return f"{view.get('on')} {name}: {what}; {when}; has struck {times(int(view.get('hits', 0)))}"


def _member(name: str, value: object) -> str:
    return name if value is True else f"{name} {shortened(json.dumps(value))}"


def _clock(tenancy: Tenancy) -> list[str]:
    clock: dict[str, Any] = tenancy.service.control.json("GET", "/clock")
    parts: list[str] = []
    if clock["is_frozen"]:
        parts.append("is frozen: nothing becomes due by itself")
    elif clock["factor"] != 1:
        parts.append(f"runs at {clock['factor']:g} times the speed")
    days_ahead = round(clock["ahead_ms"] / DAY_MS, 2)
    if days_ahead:
        parts.append(f"is {days_ahead:.2f} days ahead")
    return [f"the clock {', and '.join(parts)}"] if parts else []
