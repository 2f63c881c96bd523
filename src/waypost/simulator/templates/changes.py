"""Changes of a template besides a decision: each change, and its template events."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from waypost.simulator.templates.actions import decision_of
from waypost.simulator.templates.template import (
    Decision,
    Template,
    category_update,
    decided,
    quality_update,
    status_update,
)

News = list[tuple[str, dict[str, Any]]]
"""Webhook fields and their values."""

Change = Callable[[Template, int], tuple[Template, News]]
"""Returns, for a template and the time, the changed template and its events."""

STATUS: Final = "message_template_status_update"
_QUALITY: Final = "message_template_quality_update"
_CATEGORY: Final = "template_category_update"


def news_of(template: Template, decision: Decision, now_ms: int) -> News:
    """Return the events of a decision."""
    return [(STATUS, status_update(template, decision, now_ms))]


def rated(score: str) -> Change:
    """Return the change to another quality; RED pauses an approved template. Source: facts 3.2, 3.3."""

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        events: News = [(_QUALITY, quality_update(template, score))]
        changed = replace(template, quality=score, updated_ms=now_ms)
        if score == "RED" and changed.status == "APPROVED":
            changed, pause_events = done("pause")(changed, now_ms)
            events += pause_events
        return changed, events

    return change


def done(act: str) -> Change:
    """Return the change that an action makes (see `decide_action`)."""

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        decision = decision_of(act, template)
        changed = decided(template, decision, now_ms)
        return changed, news_of(changed, decision, now_ms)

    return change


def announced(category: str, due_ms: int) -> Change:
    """Return the announcement of another category, which takes effect by itself. Source: facts 3.2, 3.3."""

    def change(template: Template, _now_ms: int) -> tuple[Template, News]:
        events: News = [(_CATEGORY, category_update(template, category, due_ms))]
        return replace(template, correct_category=category, category_due_ms=due_ms), events

    return change


def recategorised(category: str) -> Change:
    """Return the change to another category, which removes the lifetime. Source: facts 3.2."""

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        events: News = [(_CATEGORY, category_update(template, category, None))]
        changed = replace(
            template,
            category=category,
            previous_category=template.category,
            correct_category=None,
            category_due_ms=None,
            message_send_ttl_seconds=None,
            updated_ms=now_ms,
        )
        return changed, events

    return change


def paced(until_ms: int | None, verdict: str) -> Change:
    """Return the start of pacing: messages sent from now on are held.

    Args:
        until_ms: until when; None: until a request ends it.
        verdict: `release` or `drop`: what then happens to the held messages.

    Source: facts 3.2, "pacing".
    """

    def change(template: Template, _now_ms: int) -> tuple[Template, News]:
        changed = replace(template, is_paced=True, pace_due_ms=until_ms, pace_verdict=verdict)
        return changed, []

    return change


def pacing_ended(verdict: str | None = None) -> Change:
    """Return the end of pacing: held messages are released, or dropped and the template paused; None: as planned.

    Source: facts 3.2, "pacing".
    """

    def change(template: Template, now_ms: int) -> tuple[Template, News]:
        if not template.is_paced:
            return template, []
        ended = replace(template, is_paced=False, pace_due_ms=None, pace_verdict=verdict or template.pace_verdict)
        if ended.pace_verdict == "drop" and ended.status == "APPROVED":
            return done("pacing-pause")(ended, now_ms)
        return ended, []

    return change
