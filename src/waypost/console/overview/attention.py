"""What needs somebody: each with what happened, what to do, and where it is done."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.console.messages.failure_explanations import FAILURES, failure_of
from waypost.console.overview.queries import Scene
from waypost.store.queue.jobs import QueueName

SOON_MS: Final = 14 * DAY_MS
"""A client secret that expires within that is told of; one that has expired, for as long."""
MOST: Final = 12


@dataclass(frozen=True, slots=True)
class Need:
    """One line.

    Attributes:
        id: of its element.
        kind: bad, warn or info.
        what: happened.
        remedy: what to do.
        path: where.
        label: of the link there.
        at_ms: since when; None where that is not known.
        position: of an entry that can be tried again from here.
    """

    id: str
    kind: str
    what: str
    remedy: str
    path: str = ""
    label: str = ""
    at_ms: int | None = None
    position: int | None = None


def needs_of(scene: Scene) -> list[Need]:
    """The worst first, and never more than a person reads."""
    found = [need for look in _LOOKS for need in look(scene)]
    order = {"bad": 0, "warn": 1, "info": 2}
    return sorted(found, key=lambda need: order[need.kind])[:MOST]


def _checks(scene: Scene) -> Iterator[Need]:
    for name, why in scene.not_ready.items():
        said = f"The service is not ready: {why}"
        yield Need(f"need-check-{name}", "bad", said, "Tell whoever runs the service.")


def _number(scene: Scene) -> Iterator[Need]:
    if not scene.app.phone_number:
        yield Need(
            "need-number", "warn", "The app has no number yet",
            "The administrator connects it to one; until then nothing can be sent.",
            f"/apps/{scene.app.id}/settings", "Settings of the app",
        )  # fmt: skip


def _receivers(scene: Scene) -> Iterator[Need]:
    path = f"/apps/{scene.app.id}/callbacks"
    for one in scene.standing.receivers:
        if one["paused_on_ms"] is not None:
            yield Need(
                f"need-receiver-{one['id']}", "bad",
                f"The receiver {one['tag']} was paused: {one['pause_reason'] or 'it took nothing'}",
                "Its callbacks are kept. Mend the address, then resume it.",
                path, "Callbacks", one["paused_on_ms"],
            )  # fmt: skip
        elif one["failing_since_ms"] is not None and one["active"]:
            yield Need(
                f"need-receiver-{one['id']}", "bad", f"The receiver {one['tag']} takes nothing",
                "It is tried again and again, and nothing is lost. See what its address answers.",
                path, "Callbacks", one["failing_since_ms"],
            )  # fmt: skip


def _failed(scene: Scene) -> Iterator[Need]:
    from_ms = (scene.now_ms // MINUTE_MS - 59) * MINUTE_MS
    counted = scene.tally.between(from_ms, scene.now_ms + HOUR_MS)
    by_code: Counter[int | None] = Counter()
    for (state, code), count in counted.items():
        if state == "failed":
            by_code[code] += count
    for code, count in by_code.most_common(5):
        row = failure_of(code)
        words = row.what if code in FAILURES else scene.tally.reasons.get(code) or row.what
        named = f" (code {code})" if code is not None else ""
        query = urlencode({"state": "failed", **({} if code is None else {"code": code}), "time": "hour"})
        yield Need(
            f"need-code-{code}", "bad" if code == 500 else "warn",
            f"{count} failed in the last hour: {words}{named}", row.remedy,
            f"/apps/{scene.app.id}/messages?{query}", "See them",
        )  # fmt: skip


def _late(scene: Scene) -> Iterator[Need]:
    for one in scene.standing.waiting:
        if one.queue is not QueueName.OUTBOUND or not one.tries or not one.note:
            continue
        yield Need(
            "need-put-off", "warn", f"What is to be sent was put off {_times(one.tries)}: {one.note}",
            "It is tried again by itself, and nothing is lost.",
            f"/apps/{scene.app.id}/messages?state=accepted", "Messages that wait",
        )  # fmt: skip


def _set_aside(scene: Scene) -> Iterator[Need]:
    for row in scene.standing.aside[:5]:
        yield Need(
            f"need-entry-{row.position}", "bad",
            f"A piece of work was set aside after a defect of ours: {row.note or 'no reason kept'}",
            "Try it again once the service has been mended; it is about " + row.ref + ".",
            position=row.position,
        )  # fmt: skip


_TEMPLATES: Final = {  # kind, what it says, what to do
    "REJECTED": ("warn", "was rejected", "Correct what the reviewer names, and submit it again."),
    "FAILED": ("warn", "could not be submitted", "Correct what the operator names, and submit it again."),
    "PAUSED": ("bad", "is paused", "It comes back by itself after some hours; improve its text before it is disabled."),
    "DISABLED": ("bad", "is disabled", "It was paused too often. Create a new one."),
    "FLAGGED": ("warn", "is flagged", "Its quality is low; it will be paused if that stays so."),
    "LOCKED": ("warn", "is locked", "Look at it in the operator's console."),
    "APPROVED": ("warn", "has low quality", "Send it to fewer people, or improve its text, before it is paused."),
}  # fmt: skip


def _templates(scene: Scene) -> Iterator[Need]:
    for row in scene.standing.hurt[:6]:
        kind, says, remedy = _TEMPLATES[row.status]
        reason = f": {row.reason}" if row.reason and row.status in ("REJECTED", "FAILED") else ""
        yield Need(
            f"need-template-{row.id}", kind,
            f"The template {row.element_name} ({row.language_code}) {says}{reason}", remedy,
            f"/apps/{scene.app.id}/templates/{row.id}", "The template", row.modified_on_ms,
        )  # fmt: skip


def _secrets(scene: Scene) -> Iterator[Need]:
    for one in scene.standing.secrets:
        left_ms = None if one.expires_on_ms is None else one.expires_on_ms - scene.now_ms
        if left_ms is None or not -SOON_MS < left_ms < SOON_MS:
            continue
        has_expired = left_ms <= 0
        yield Need(
            f"need-secret-{one.id}", "bad" if has_expired else "warn",
            f"The client secret {one.id[:8]} {'has expired' if has_expired else 'expires soon'}",
            "Revoke it where nobody uses it; else make a new one, and give it to whoever logs in with this one.",
            "/settings/secrets", "Client secrets", one.expires_on_ms,
        )  # fmt: skip


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_LOOKS: Final[tuple[Callable[[Scene], Iterator[Need]], ...]] = (
    _checks, _number, _receivers, _set_aside, _templates, _failed, _late, _secrets,
)  # fmt: skip
