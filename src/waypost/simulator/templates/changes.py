"""Changes of a template besides a decision: each change, and its template events."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from waypost.simulator.templates.actions import decide_action
from waypost.simulator.templates.template import (
    SimulatedTemplate,
    TemplateDecision,
    apply_decision,
    category_update,
    quality_update,
    status_update,
)

TemplateEvents = list[tuple[str, dict[str, Any]]]
"""Webhook fields and their values."""

TemplateChange = Callable[[SimulatedTemplate, int], tuple[SimulatedTemplate, TemplateEvents]]
"""Returns, for a template and the time, the changed template and its events."""

STATUS_FIELD: Final = "message_template_status_update"
_QUALITY_FIELD: Final = "message_template_quality_update"
_CATEGORY_FIELD: Final = "template_category_update"


def decision_events(template: SimulatedTemplate, decision: TemplateDecision, now_ms: int) -> TemplateEvents:
    """Return the events of a decision."""
    return [(STATUS_FIELD, status_update(template, decision, now_ms))]


def change_quality(score: str) -> TemplateChange:
    """Return the change to another quality; RED pauses an approved template. Source: facts 3.2, 3.3."""

    def change(template: SimulatedTemplate, now_ms: int) -> tuple[SimulatedTemplate, TemplateEvents]:
        events: TemplateEvents = [(_QUALITY_FIELD, quality_update(template, score))]
        changed = replace(template, quality=score, updated_ms=now_ms)
        if score == "RED" and changed.status == "APPROVED":
            changed, pause_events = apply_action("pause")(changed, now_ms)
            events += pause_events
        return changed, events

    return change


def apply_action(action: str) -> TemplateChange:
    """Return the change that an action makes (see `decide_action`)."""

    def change(template: SimulatedTemplate, now_ms: int) -> tuple[SimulatedTemplate, TemplateEvents]:
        decision = decide_action(action, template)
        changed = apply_decision(template, decision, now_ms)
        return changed, decision_events(changed, decision, now_ms)

    return change


def announce_category(category: str, due_ms: int) -> TemplateChange:
    """Return the announcement of another category, which takes effect by itself. Source: facts 3.2, 3.3."""

    def change(template: SimulatedTemplate, _now_ms: int) -> tuple[SimulatedTemplate, TemplateEvents]:
        events: TemplateEvents = [(_CATEGORY_FIELD, category_update(template, category, due_ms))]
        return replace(template, correct_category=category, category_due_ms=due_ms), events

    return change


def change_category(category: str) -> TemplateChange:
    """Return the change to another category, which removes the lifetime. Source: facts 3.2."""

    def change(template: SimulatedTemplate, now_ms: int) -> tuple[SimulatedTemplate, TemplateEvents]:
        events: TemplateEvents = [(_CATEGORY_FIELD, category_update(template, category, None))]
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


def start_pacing(until_ms: int | None, verdict: str) -> TemplateChange:
    """Return the start of pacing: messages sent from now on are held.

    Args:
        until_ms: until when; None: until a request ends it.
        verdict: `release` or `drop`: what then happens to the held messages.

    Source: facts 3.2, "pacing".
    """

    def change(template: SimulatedTemplate, _now_ms: int) -> tuple[SimulatedTemplate, TemplateEvents]:
        changed = replace(template, is_paced=True, pace_due_ms=until_ms, pace_verdict=verdict)
        return changed, []

    return change


def end_pacing(verdict: str | None = None) -> TemplateChange:
    """Return the end of pacing: held messages are released, or dropped and the template paused; None: as planned.

    Source: facts 3.2, "pacing".
    """

    def change(template: SimulatedTemplate, now_ms: int) -> tuple[SimulatedTemplate, TemplateEvents]:
        if not template.is_paced:
            return template, []
        ended = replace(template, is_paced=False, pace_due_ms=None, pace_verdict=verdict or template.pace_verdict)
        if ended.pace_verdict == "drop" and ended.status == "APPROVED":
            return apply_action("pacing-pause")(ended, now_ms)
        return ended, []

    return change
