"""Actions on a template besides its review: a table of actions, and the levels of quality pauses."""

from dataclasses import dataclass
from typing import Final

from waypost.base.clock import HOUR_MS
from waypost.simulator.templates.template import Decision, Template


@dataclass(frozen=True)
class Act:
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
class Rung:
    """One level of quality pauses; the last level applies to all further pauses."""

    status: str
    title: str
    description: str
    resume_after_ms: int | None


# fmt: off
ACTS: Final = {  # Source: facts 3.1 to 3.3
    #                        status              event               reason  info
    "appeal":           Act("IN_APPEAL",        "IN_APPEAL"),
    "disable":          Act("DISABLED",         "DISABLED",          "NONE", ("DISABLED", "The template was disabled.")),
    "flag":             Act("",                 "FLAGGED"),
    "reinstate":        Act("APPROVED",         "REINSTATED"),
    "unpause":          Act("APPROVED",         "APPROVED",          "NONE", ("UNPAUSE", "The pause is over.")),
    "lock":             Act("",                 "LOCKED",            "NONE", ("RATE_LIMITING_PAUSE", "The template can't be edited now.")),
    "archive":          Act("ARCHIVED",         "ARCHIVED"),
    "unarchive":        Act("APPROVED",         "UNARCHIVED"),
    "limit":            Act("LIMIT_EXCEEDED",   "LIMIT_EXCEEDED"),
    "pending-deletion": Act("PENDING_DELETION", "PENDING_DELETION",  None),
    "pend":             Act("PENDING",          "PENDING"),
}
LADDER: Final = (  # Source: facts 3.2: 3 hours, 6 hours, then disabled
    #    status      title           description                                     resume after
    Rung("PAUSED",   "FIRST_PAUSE",  "Your template is paused for 3 hours because of its quality.", 3 * HOUR_MS),
    Rung("PAUSED",   "SECOND_PAUSE", "Your template is paused for 6 hours because of its quality.", 6 * HOUR_MS),
    Rung("DISABLED", "DISABLED",     "Your template is disabled because of its quality.",           None),
)
PACING: Final = Rung("PAUSED", "RATE_LIMITING_PAUSE", "Your template is paused by pacing.", None)
# fmt: on


def decision_of(act: str, template: Template) -> Decision:
    """Return the decision that an action makes about a template.

    Args:
        act: a row of `TEMPLATE_ACTIONS`, or `pause` (the next pause level), or `pacing-pause`, which does not end
            by itself.
        template: in its current state.
    """
    if act in ("pause", "pacing-pause"):
        level = PACING if act == "pacing-pause" else LADDER[min(template.pauses, len(LADDER) - 1)]
        info = (level.title, level.description)
        return Decision(level.status, info=info, resume_after_ms=level.resume_after_ms)
    row = ACTS[act]
    return Decision(row.status or template.status, row.reason, event=row.event, info=row.info)


ACT_NAMES: Final = ("pause", "pacing-pause", *ACTS)
"""Every action that `decide_action` accepts."""
