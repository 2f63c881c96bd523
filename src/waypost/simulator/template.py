"""One template, what a review may decide of it, and what a webhook says of that."""

from dataclasses import dataclass
from typing import Any

import msgspec


class Template(msgspec.Struct, frozen=True):
    """One template in one language.

    `components` are as they are read back: types in upper case, preset texts filled in.
    `review_due_ms` is None when no review is planned.
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


@dataclass(frozen=True)
class Decision:
    """What a review ended with; `explanation` only where the operator explains itself."""

    status: str
    reason: str = "NONE"
    explanation: tuple[str, str] | None = None


def status_update(template: Template, decision: Decision) -> dict[str, Any]:
    """What a webhook says of a decision. Source: facts 3.3; the id is a number here, facts 0."""
    value: dict[str, Any] = {
        "event": decision.status,
        "message_template_id": int(template.template_id),
        "message_template_name": template.name,
        "message_template_language": template.language,
        "reason": None if decision.status == "DELETED" else decision.reason,
        "message_template_category": template.category,
    }
    if decision.explanation is not None:
        reason, recommendation = decision.explanation
        value["rejection_info"] = {"reason": reason, "recommendation": recommendation}
    return value
