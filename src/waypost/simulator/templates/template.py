"""One template, the decisions about it, and the values of its webhooks."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS, MINUTE_MS

_ARCHIVE_RETENTION_MS: Final = 28 * DAY_MS  # Source: facts 2.6
AUTO_GENERATED: Final = "AUTO_GENERATED"
"""The source of templates that Direct Send has generated."""


class SimulatedTemplate(msgspec.Struct, frozen=True):
    """One template in one language.

    `components` are as they are read back: types in upper case, preset texts filled in. `review_due_ms` is None if no
    review is planned, `resume_due_ms` if no pause will end by itself. `pauses` counts the pauses for quality, and
    `paused_ms` is when the latest pause of any kind began. `correct_category` is the announced category, effective at
    `category_due_ms`. While `is_paced`, messages are held until `pace_due_ms` or a request; then `pace_verdict` is
    `release` or `drop`. `delete_due_ms` is when a pending deletion is completed, or an archived template is deleted.
    `extras` are further members of the submission that are only read back. `source` is `AUTO_GENERATED` for a template
    of Direct Send; of such a template `correct_category` is the category of its content.
    """

    template_id: str
    waba_id: str
    name: str
    language: str
    category: str
    components: list[dict[str, Any]]
    parameter_format: str = "POSITIONAL"
    status: str = "PENDING"
    created_ms: int = 0
    updated_ms: int = 0
    review_due_ms: int | None = None
    rejected_reason: str = "NONE"
    quality: str = "UNKNOWN"
    previous_category: str | None = None
    message_send_ttl_seconds: int | None = None
    edited_ms: tuple[int, ...] = ()
    correct_category: str | None = None
    pauses: int = 0
    resume_due_ms: int | None = None
    paused_ms: int | None = None
    category_due_ms: int | None = None
    is_paced: bool = False
    pace_due_ms: int | None = None
    pace_verdict: str = "release"
    delete_due_ms: int | None = None
    extras: dict[str, Any] = {}
    source: str | None = None


@dataclass(frozen=True)
class TemplateDecision:
    """A decision about a template, by a review or otherwise.

    Args:
        status: the template's new status.
        reason: of the webhook; None is null.
        explanation: reason and recommendation, if the operator gives an explanation.
        event: of the webhook; empty: the status.
        info: title and description, if the operator gives them.
        resume_after_ms: after how long a pause ends by itself.
    """

    status: str
    reason: str | None = "NONE"
    explanation: tuple[str, str] | None = None
    event: str = ""
    info: tuple[str, str] | None = None
    resume_after_ms: int | None = None


def apply_decision(template: SimulatedTemplate, decision: TemplateDecision, now_ms: int) -> SimulatedTemplate:
    """Return the template after a decision."""
    pause_ms = decision.resume_after_ms
    if decision.status == template.status and pause_ms is None:  # only a webhook is sent
        return replace(template, updated_ms=now_ms)
    is_sendable = decision.status == "APPROVED"
    return replace(
        template,
        is_paced=template.is_paced and is_sendable,
        pace_verdict=template.pace_verdict if is_sendable or not template.is_paced else "drop",
        delete_due_ms=now_ms + _ARCHIVE_RETENTION_MS if decision.status == "ARCHIVED" else None,
        paused_ms=now_ms if decision.status == "PAUSED" else template.paused_ms,
        status=decision.status,
        rejected_reason=decision.reason or "NONE",
        review_due_ms=None,
        updated_ms=now_ms,
        pauses=template.pauses + (pause_ms is not None),
        resume_due_ms=None if pause_ms is None else now_ms + pause_ms,
    )


def status_update(template: SimulatedTemplate, decision: TemplateDecision, at_ms: int) -> dict[str, Any]:
    """Return the webhook value of a decision. Source: facts 3.3; the id is a number here, facts 0."""
    event = decision.event or decision.status
    value: dict[str, Any] = {
        "event": event,
        **_template_members(template),
        "reason": decision.reason,
        "message_template_category": template.category,
    }
    if decision.explanation is not None:
        reason, recommendation = decision.explanation
        value["rejection_info"] = {"reason": reason, "recommendation": recommendation}
    if event == "DISABLED":
        value["disable_info"] = {"disable_date": str(at_ms // 1000)}
    if decision.info is not None:
        title, description = decision.info
        value["other_info"] = {"title": title, "description": description}
    return value


def quality_update(template: SimulatedTemplate, score: str) -> dict[str, Any]:
    """Return the webhook value of a new quality. Source: facts 3.3."""
    return {"previous_quality_score": template.quality, "new_quality_score": score, **_template_members(template)}


def category_update(template: SimulatedTemplate, category: str, due_ms: int | None) -> dict[str, Any]:
    """Return the webhook value of another category.

    Args:
        category: the new category.
        due_ms: when an announced change takes effect; None: it has taken effect.

    Source: facts 3.3: in the announcement `new_category` is the current one.
    """
    value = _template_members(template)
    if due_ms is None:
        return value | {"previous_category": template.category, "new_category": category}
    return value | {
        "new_category": template.category,
        "correct_category": category,
        "category_update_timestamp": due_ms // 1000,
    }


def components_update(template: SimulatedTemplate) -> dict[str, Any]:
    """Return the webhook value after an edit. Source: facts 3.3."""
    by_type = {component["type"]: component for component in template.components}
    value = _template_members(template)
    for member, kind in (("title", "HEADER"), ("element", "BODY"), ("footer", "FOOTER")):
        text = by_type.get(kind, {}).get("text")
        if text:
            value[f"message_template_{member}"] = text
    buttons = [
        {
            f"message_template_button_{member}": button[member]
            for member in ("type", "text", "url", "phone_number")
            if button.get(member)
        }
        for button in by_type.get("BUTTONS", {}).get("buttons", [])
    ]
    return value | ({"message_template_buttons": buttons} if buttons else {})


def _template_members(template: SimulatedTemplate) -> dict[str, Any]:
    return {
        "message_template_id": int(template.template_id),
        "message_template_name": template.name,
        "message_template_language": template.language,
    }


# fmt: off
LIFETIMES_MS: Final = {  # Source: facts 2.3, `message_send_ttl_seconds`; a template's own lifetime takes precedence
    "":               30 * DAY_MS,    # a session message
    "AUTHENTICATION": 10 * MINUTE_MS,
    "UTILITY":        30 * DAY_MS,
    "MARKETING":      30 * DAY_MS,
}
# fmt: on


def lifetime_ms(template: SimulatedTemplate | None) -> int:
    """Return how long a message may wait for its phone; after that it is dropped without a status.

    Source: facts 2.3 (-1 stands for 30 days), 7.3.
    """
    if template is None:
        return LIFETIMES_MS[""]
    own_s = template.message_send_ttl_seconds
    if own_s is None:
        return LIFETIMES_MS.get(template.category, LIFETIMES_MS[""])
    return LIFETIMES_MS[""] if own_s < 0 else own_s * 1000
