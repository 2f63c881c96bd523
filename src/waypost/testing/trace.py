"""A message's whole way, as the service has it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from waypost.base.json_values import object_of, objects_in
from waypost.testing.formatting import clock_time, times


@dataclass(frozen=True, slots=True)
class News:
    """One thing that happened to a message.

    Attributes:
        what: `accepted`, `enqueued`, `sent`, `delivered`, `read`, `failed` and so on.
        at_ms: when, by the service's clock.
        moved: false where it came late and changed nothing.
    """

    what: str
    at_ms: int
    moved: bool = True


@dataclass(frozen=True, slots=True)
class Trace:
    """One message's whole way.

    Attributes:
        message_id: ours.
        state: `accepted`, `enqueued`, `sent`, `delivered`, `read` or `failed`.
        code: of a failure, else None.
        reason: of a failure, in the operator's or our words.
        destination: the digits of the recipient.
        news: what happened, oldest first.
        waiting: what it waits for, and why; empty once it has left the service.
        raw: all that the administration door shows of it.
    """

    message_id: str
    state: str
    code: int | None
    reason: str
    destination: str
    news: tuple[News, ...]
    waiting: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        """One line for a failure's text."""
        way = " → ".join(f"{one.what} {clock_time(one.at_ms)}" for one in self.news)
        why = f" {self.code or ''} {self.reason}".rstrip() if self.state == "failed" else ""
        waits = f"; {self.waiting}" if self.waiting else ""
        return f"{self.message_id} to {self.destination}: {self.state}{why} ({way}){waits}"


def trace_of(view: Mapping[str, Any]) -> Trace:
    """A trace from what the administration door shows of a message."""
    news = [News(str(one["news"]), int(one["at_ms"]), bool(one["moved"])) for one in objects_in(view["news"])]
    return Trace(
        message_id=str(view["id"]),
        state=str(view["state"]),
        code=view.get("code"),
        reason=str(view.get("reason") or ""),
        destination=str(view["destination"]),
        news=(News("accepted", int(view["accepted_on_ms"])), *news),
        waiting=_waiting(object_of(view.get("waiting"))),
        raw=view,
    )


def _waiting(entry: Mapping[str, Any]) -> str:
    if not entry:
        return ""
    if not entry["attempt"]:
        return "not tried yet"
    why = f": {entry['note']}" if entry.get("note") else ""
    return f"tried {times(int(entry['attempt']))}, again at {clock_time(int(entry['due_ms']))}{why}"
