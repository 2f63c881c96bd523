"""Actions on a template besides its review: a table of actions, and the levels of quality pauses."""

from dataclasses import dataclass
from typing import Final

from waypost.base.clock import HOUR_MS
from waypost.simulator.templates.template import SimulatedTemplate, TemplateDecision


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
        action: a row of `TEMPLATE_ACTIONS`, or `pause` (the next pause level), or `pacing-pause`, which does not end
            by itself.
        template: in its current state.
    """
    if action in ("pause", "pacing-pause"):
        level = PACING_PAUSE if action == "pacing-pause" else PAUSE_LEVELS[min(template.pauses, len(PAUSE_LEVELS) - 1)]
        info = (level.title, level.description)
        return TemplateDecision(level.status, info=info, resume_after_ms=level.resume_after_ms)
    row = TEMPLATE_ACTIONS[action]
    return TemplateDecision(row.status or template.status, row.reason, event=row.event, info=row.info)


ACTION_NAMES: Final = ("pause", "pacing-pause", *TEMPLATE_ACTIONS)
"""Every action that `decide_action` accepts."""
