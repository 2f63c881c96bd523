"""One template, the decisions about it, and the values of its webhooks."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS, MINUTE_MS
from waypost.base.json_values import object_of, objects_in, text_or_none

_ARCHIVE_RETENTION_MS: Final = 28 * DAY_MS  # Source: facts 2.6
AUTO_GENERATED: Final = "AUTO_GENERATED"
"""The source of templates that Direct Send has generated."""


class SimulatedTemplate(msgspec.Struct, frozen=True, dict=True):
    """One template in one language; its ids are empty while its submission is checked."""

    template_id: str
    waba_id: str
    name: str
    language: str
    category: str
    components: list[dict[str, Any]]  # as they are read back: types in upper case, preset texts filled in
    parameter_format: str = "POSITIONAL"
    status: str = "PENDING"
    created_ms: int = 0
    updated_ms: int = 0
    review_due_ms: int | None = None  # None: no review is planned
    rejected_reason: str = "NONE"
    quality: str = "UNKNOWN"
    previous_category: str | None = None
    message_send_ttl_seconds: int | None = None
    edited_ms: tuple[int, ...] = ()
    correct_category: str | None = None  # announced, from `category_due_ms`; of Direct Send: that of the content
    pauses: int = 0  # for quality
    resume_due_ms: int | None = None  # None: no pause will end by itself
    paused_ms: int | None = None  # when the latest pause of any kind began
    category_due_ms: int | None = None
    is_paced: bool = False  # messages are held until `pace_due_ms` or a request
    pace_due_ms: int | None = None
    pace_verdict: str = "release"  # or `drop`: what then happens to the held messages
    delete_due_ms: int | None = None  # when a pending deletion is completed, or an archived template is deleted
    extras: dict[str, Any] = {}  # further members of the submission that are only read back
    source: str | None = None  # or `AUTO_GENERATED`

    @cached_property
    def components_by_type(self) -> dict[str, dict[str, Any]]:
        """The components by type; each type occurs at most once."""
        return {component["type"]: component for component in self.components}

    @cached_property
    def cards(self) -> "list[SimulatedTemplate]":
        """Each card of a carousel as a template with the card's components."""
        cards = objects_in(self.components_by_type.get("CAROUSEL", {}).get("cards"))
        return [replace(self, components=objects_in(card.get("components"))) for card in cards]

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """The buttons; none if there is no BUTTONS component."""
        return objects_in(self.components_by_type.get("BUTTONS", {}).get("buttons"))

    @property
    def header_format(self) -> str:
        """The format of the header; empty if there is none."""
        return (
            str(self.components_by_type["HEADER"].get("format", "TEXT")) if "HEADER" in self.components_by_type else ""
        )

    def text(self, component: str) -> str:
        """Return the text of a component; empty if there is none."""
        return text_or_none(self.components_by_type.get(component, {}).get("text")) or ""

    def example(self, component: str) -> dict[str, Any]:
        """Return the example of a component; empty if there is none."""
        return object_of(self.components_by_type.get(component, {}).get("example"))


@dataclass(frozen=True)
class TemplateDecision:
    """A decision about a template, by a review or otherwise."""

    status: str  # the template's new status; empty: unchanged
    reason: str | None = "NONE"  # of the webhook; None is null
    explanation: tuple[str, str] | None = None  # reason and recommendation, if the operator gives an explanation
    event: str = ""  # of the webhook; empty: the status
    info: tuple[str, str] | None = None  # title and description, if the operator gives them
    resume_after_ms: int | None = None  # after how long a pause ends by itself


def apply_decision(template: SimulatedTemplate, decision: TemplateDecision, now_ms: int) -> SimulatedTemplate:
    """Return the template after a decision."""
    pause_ms = decision.resume_after_ms
    if decision.status in ("", template.status) and pause_ms is None:  # only a webhook is sent
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
        **template_members(template),
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


def components_update(template: SimulatedTemplate) -> dict[str, Any]:
    """Return the webhook value after an edit. Source: facts 3.3."""
    value = template_members(template)
    for member, kind in (("title", "HEADER"), ("element", "BODY"), ("footer", "FOOTER")):
        if text := template.text(kind):
            value[f"message_template_{member}"] = text
    buttons = [
        {
            f"message_template_button_{member}": button[member]
            for member in ("type", "text", "url", "phone_number")
            if button.get(member)
        }
        for button in template.buttons
    ]
    return value | ({"message_template_buttons": buttons} if buttons else {})


def template_members(template: SimulatedTemplate) -> dict[str, Any]:
    """Return the members that name a template in its webhooks."""
    return {
        "message_template_id": int(template.template_id),
        "message_template_name": template.name,
        "message_template_language": template.language,
    }


def lifetime_ms(template: SimulatedTemplate | None) -> int:
    """Return how long a message may wait for its phone; after that it is dropped without a status.

    Args:
        template: None for a session message.

    Source: facts 2.3, `message_send_ttl_seconds` (-1 stands for 30 days), 7.3.
    """
    own_s = template.message_send_ttl_seconds if template is not None else None
    if own_s is not None and own_s >= 0:
        return own_s * 1000
    has_code = template is not None and template.category == "AUTHENTICATION" and own_s is None
    return 10 * MINUTE_MS if has_code else 30 * DAY_MS


# Source: facts 3.1
REJECTION_REASONS: Final = (
    "ABUSIVE_CONTENT", "CATEGORY_NOT_AVAILABLE", "INCORRECT_CATEGORY", "INVALID_FORMAT", "NONE",
    "PROMOTIONAL", "SCAM", "TAG_CONTENT_MISMATCH",
)  # fmt: skip
