"""What a partner is told of a template: status, quality and category, in either version of the body.

Each function takes the version first. Version 3 passes the operator's own change on; where the news
is our own, such as a deletion, it says it as the operator would.
"""

from typing import Any, Final

from waypost.domain.app import App
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.wire.callbacks.callback_v2 import envelope
from waypost.wire.callbacks.callback_v3 import TEMPLATE_ID, change_body

_STATUS_FIELD: Final = "message_template_status_update"
_CATEGORY_FIELD: Final = "template_category_update"


def status_body(
    version: int, app: App, at_ms: int, template: Template, status: TemplateStatus, event: ReviewEvent
) -> bytes:
    """A template's status has changed.

    Args:
        version: 2 or 3.
        app: whose template it is.
        at_ms: now.
        template: as it was before.
        status: what it is now, in our words; the operator has more of them than partners know.
        event: with the reason and the description.

    Source: facts 6.5; operator's facts 3.3.
    """
    if version == 3:
        return _passed_on(app, template, event.raw, _STATUS_FIELD, _status_value(template, status, event))
    payload = {"type": "status-update", "id": template.id, "status": status.value.lower()}
    payload |= _named(template)
    if event.reason:
        payload["rejectedReason"] = event.reason
    if event.description:
        payload["description"] = event.description
    return envelope(app, at_ms, "template-event", payload)


def quality_body(version: int, app: App, at_ms: int, template: Template, quality: str, event: QualityEvent) -> bytes:
    """A template's quality has changed, and is now HIGH, MEDIUM, LOW or UNKNOWN. Source: facts 6.5."""
    if version == 3:
        usual = {"new_quality_score": event.quality, **_operators_names(template)}
        return _passed_on(app, template, event.raw, "message_template_quality_update", usual)
    payload = {"type": "quality-update", "id": template.id, **_named(template), "quality": quality}
    return envelope(app, at_ms, "template-event", payload)


def category_body(version: int, app: App, at_ms: int, template: Template, event: CategoryEvent) -> bytes:
    """A template has, or will have, another category. Source: facts 6.5; operator's facts 3.3."""
    old, new = event.category, event.next_category
    if version == 3:
        names = ("previous_category", "new_category")
        if not event.is_done:  # there `new_category` is the present one
            names = ("new_category", "correct_category")
        usual = {**_operators_names(template), **dict(zip(names, (old, new), strict=True))}
        return _passed_on(app, template, event.raw, _CATEGORY_FIELD, usual)
    told = {"old": old, "new": new} if event.is_done else {"current": old, "correct": new}
    payload = {"type": "category-update", "id": template.id, **_named(template), "category": told}
    return envelope(app, at_ms, "template-event", payload)


def _named(template: Template) -> dict[str, Any]:
    draft = template.draft
    return {"elementName": draft.element_name, "languageCode": draft.language_code}


def _operators_names(template: Template) -> dict[str, Any]:
    draft = template.draft
    return {
        "message_template_id": _number_or_text(template.operator_template_id or template.id),
        "message_template_name": draft.element_name,
        "message_template_language": draft.language_code,
    }


def _number_or_text(id: str) -> int | str:
    """An id as the operator's own webhooks write it: a number. Ours have letters, and stay a text.

    Source: operator's facts 3.3. More than 18 digits are not exact in every reader of JSON.
    """
    return int(id) if id.isascii() and id.isdecimal() and len(id) < 19 else id


def _status_value(template: Template, status: TemplateStatus, event: ReviewEvent) -> dict[str, Any]:
    reason = None if status is TemplateStatus.DELETED else event.reason or "NONE"
    return {"event": status.value, **_operators_names(template), "reason": reason}


def _passed_on(app: App, template: Template, raw: dict[str, Any], field: str, value: dict[str, Any]) -> bytes:
    """The body of version 3: the operator's own change, or ours where it is our own news, and our id.

    Source: facts 7; ledger rows 63, 64.
    """
    given = raw.get("value")
    if isinstance(given, dict) and given:
        value = given  # pyright: ignore[reportUnknownVariableType]
    name = raw.get("field")
    return change_body(
        app, name if isinstance(name, str) else field, {**value, TEMPLATE_ID: template.id}, time=raw.get("time")
    )
