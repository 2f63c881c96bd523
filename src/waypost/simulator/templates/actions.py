"""What can be done to a template besides its review: a table of acts, and the ladder of pauses."""

from dataclasses import dataclass
from typing import Final

from waypost.base.clock import HOUR_MS
from waypost.simulator.templates.template import Decision, Template


@dataclass(frozen=True)
class Act:
    """One row.

    Args:
        status: what the template is afterwards; empty: as it was.
        event: what the webhook calls it.
        reason: what the webhook gives as the reason; None is null.
        info: title and description of the webhook's `other_info`.
    """

    status: str
    event: str
    reason: str | None = "NONE"
    info: tuple[str, str] | None = None


@dataclass(frozen=True)
class Rung:
    """What a pause for quality does; the last rung stays for all that follow."""

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
    """What an act decides of a template.

    Args:
        act: a row of `ACTS`, or `pause` (the next rung of the ladder), or `pacing-pause`, which
            no time ends.
        template: as it is now.
    """
    if act in ("pause", "pacing-pause"):
        rung = PACING if act == "pacing-pause" else LADDER[min(template.pauses, len(LADDER) - 1)]
        info = (rung.title, rung.description)
        return Decision(rung.status, info=info, resume_after_ms=rung.resume_after_ms)
    row = ACTS[act]
    return Decision(row.status or template.status, row.reason, event=row.event, info=row.info)


ACT_NAMES: Final = ("pause", "pacing-pause", *ACTS)
"""Every act that `decision_of` knows."""
