"""Changes of a template besides its review: a table of actions, the levels of quality pauses, and other changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import HOUR_MS
from waypost.simulator.templates.template import (
    SimulatedTemplate,
    TemplateDecision,
    apply_decision,
    category_update,
    quality_update,
    status_update,
)

TemplateEvents = Sequence[tuple[str, dict[str, Any]]]
"""Webhook fields and their values."""

TemplateChange = Callable[[SimulatedTemplate, int], tuple[SimulatedTemplate, TemplateEvents]]
"""Returns, for a template and the time, the changed template and its events."""

STATUS_FIELD: Final = "message_template_status_update"
_QUALITY_FIELD: Final = "message_template_quality_update"
_CATEGORY_FIELD: Final = "template_category_update"


@dataclass(frozen=True)
class TemplateAction:
    """One row.

    Args:
        status: the template's new status; empty: unchanged.
        event: of the webhook.
        reason: of the webhook; None is null.
        info: title and description of the webhook's `other_info`.
    """

    status: str
    event: str
    reason: str | None = "NONE"
    info: tuple[str, str] | None = None


@dataclass(frozen=True)
class PauseLevel:
    """One level of quality pauses; the last level applies to all further pauses."""

    status: str
    title: str
    description: str
    resume_after_ms: int | None


TEMPLATE_ACTIONS: Final = {  # Source: facts 3.1 to 3.3
    # status, event, reason, info
    "appeal": TemplateAction("IN_APPEAL", "IN_APPEAL"),
    "disable": TemplateAction("DISABLED", "DISABLED", "NONE", ("DISABLED", "The template was disabled.")),
    "flag": TemplateAction("", "FLAGGED"),
    "reinstate": TemplateAction("APPROVED", "REINSTATED"),
    "unpause": TemplateAction("APPROVED", "APPROVED", "NONE", ("UNPAUSE", "The pause is over.")),
    "lock": TemplateAction("", "LOCKED", "NONE", ("RATE_LIMITING_PAUSE", "The template can't be edited now.")),
    "archive": TemplateAction("ARCHIVED", "ARCHIVED"),
    "unarchive": TemplateAction("APPROVED", "UNARCHIVED"),
    "limit": TemplateAction("LIMIT_EXCEEDED", "LIMIT_EXCEEDED"),
    "pending-deletion": TemplateAction("PENDING_DELETION", "PENDING_DELETION", None),
    "pend": TemplateAction("PENDING", "PENDING"),
}
PAUSE_LEVELS: Final = (  # Source: facts 3.2: 3 hours, 6 hours, then disabled
    # status, title, description, resume after
    PauseLevel("PAUSED", "FIRST_PAUSE", "Your template is paused for 3 hours because of its quality.", 3 * HOUR_MS),
    PauseLevel("PAUSED", "SECOND_PAUSE", "Your template is paused for 6 hours because of its quality.", 6 * HOUR_MS),
    PauseLevel("DISABLED", "DISABLED", "Your template is disabled because of its quality.", None),
)
PACING_PAUSE: Final = PauseLevel("PAUSED", "RATE_LIMITING_PAUSE", "Your template is paused by pacing.", None)


def decide_action(action: str, template: SimulatedTemplate) -> TemplateDecision:
    """Return the decision that an action makes about a template.

    Args:
        action: a row of `TEMPLATE_ACTIONS`, or `pause` (the next pause level), or `pacing-pause`, which does not end by
            itself.
    """
    if action in ("pause", "pacing-pause"):
        level = PACING_PAUSE if action == "pacing-pause" else PAUSE_LEVELS[min(template.pauses, len(PAUSE_LEVELS) - 1)]
        info = (level.title, level.description)
        return TemplateDecision(level.status, info=info, resume_after_ms=level.resume_after_ms)
    row = TEMPLATE_ACTIONS[action]
    return TemplateDecision(row.status or template.status, row.reason, event=row.event, info=row.info)


ACTION_NAMES: Final = ("pause", "pacing-pause", *TEMPLATE_ACTIONS)
"""Every action that `decide_action` accepts."""


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
            events = [*events, *pause_events]
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
