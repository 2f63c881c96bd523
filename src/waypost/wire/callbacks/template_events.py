"""Bodies of events of a template or a subscription, which begin here and not at the operator."""

from typing import Any, Final

from waypost.domain.app import App
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import QUALITIES
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.wire.callbacks.callback_v2 import envelope
from waypost.wire.callbacks.callback_v3 import TEMPLATE_ID_MEMBER, change_body
from waypost.wire.callbacks.kinds import PAUSED

_STATUS_FIELD: Final = "message_template_status_update"
_CATEGORY_FIELD: Final = "template_category_update"


def status_body(
    version: int, app: App, at_ms: int, template: Template, status: TemplateStatus, event: ReviewEvent
) -> bytes:
    """Return the body for a template whose status has changed.

    Args:
        version: 2 or 3.
        template: before the change.
        status: the new one, by our names; the operator has more statuses than partners know.
        event: with the reason and the description.

    Source: facts 6.5; operator's facts 3.3.
    """
    if version == 3:
        reason = None if status is TemplateStatus.DELETED else event.reason or "NONE"
        value = {"event": status.value, **_operators_names(template), "reason": reason}
        return _v3_body(app, template, event.raw, _STATUS_FIELD, value)
    payload = {"type": "status-update", "id": template.id, "status": status.value.lower()}
    payload |= _template_names(template)
    if event.reason:
        payload["rejectedReason"] = event.reason
    if event.description:
        payload["description"] = event.description
    return envelope(app, at_ms, "template-event", payload)


def quality_body(version: int, app: App, at_ms: int, template: Template, quality: str, event: QualityEvent) -> bytes:
    """Return the body for a template whose quality has changed, by the operator's word, such as GREEN.

    The template's record has another word for it, such as HIGH, which is `quality`.

    Source: ledger row 19; ledger C23.
    """
    if version == 3:
        value = {"new_quality_score": event.quality, **_operators_names(template)}
        return _v3_body(app, template, event.raw, "message_template_quality_update", value)
    payload = {"type": "quality-update", "id": template.id, **_template_names(template)}
    payload["quality"] = event.quality if event.quality in QUALITIES else quality
    return envelope(app, at_ms, "template-event", payload)


def category_body(version: int, app: App, at_ms: int, template: Template, event: CategoryEvent) -> bytes:
    """Return the body for a template's other category, now or soon. Source: facts 6.5; operator's facts 3.3."""
    old, new = event.category, event.next_category
    if version == 3:
        names = ("previous_category", "new_category")
        if not event.is_done:  # then `new_category` is the present one
            names = ("new_category", "correct_category")
        value = {**_operators_names(template), **dict(zip(names, (old, new), strict=True))}
        return _v3_body(app, template, event.raw, _CATEGORY_FIELD, value)
    category = {"old": old, "new": new} if event.is_done else {"current": old, "correct": new}
    payload = {"type": "category-update", "id": template.id, **_template_names(template), "category": category}
    return envelope(app, at_ms, "template-event", payload)


def _template_names(template: Template) -> dict[str, Any]:
    draft = template.draft
    return {"elementName": draft.element_name, "languageCode": draft.language_code}


def _operators_names(template: Template) -> dict[str, Any]:
    """Return the names in the format of the operator's webhooks, whose ids are numbers. Source: operator's facts 3.3.

    Ours have letters and stay texts; more than 18 digits are not exact in every JSON reader.
    """
    draft, name = template.draft, template.operator_template_id or template.id
    return {
        "message_template_id": int(name) if name.isascii() and name.isdecimal() and len(name) < 19 else name,
        "message_template_name": draft.element_name,
        "message_template_language": draft.language_code,
    }


def _v3_body(app: App, template: Template, raw: dict[str, Any], field: str, value: dict[str, Any]) -> bytes:
    """Return the body of version 3: the operator's own change, or ours for an event of our own, and our id.

    Source: facts 7; ledger rows 63, 64.
    """
    received = raw.get("value")
    if isinstance(received, dict) and received:
        value = received  # pyright: ignore[reportUnknownVariableType]
    name = raw.get("field")
    return change_body(
        app, name if isinstance(name, str) else field, {**value, TEMPLATE_ID_MEMBER: template.id}, time=raw.get("time")
    )


def paused_body(
    app: App, at_ms: int, version: int, *, subscription_id: str, tag: str, url: str, since_ms: int, reason: str
) -> bytes | None:
    """Return the body for a subscription that the service paused; None in version 3, which has only operator bodies.

    Source: decision 0042; the names are those of subscription objects.
    """
    if version != 2:
        return None
    payload = {"id": subscription_id, "tag": tag, "url": url, "since": since_ms, "reason": reason}
    return envelope(app, at_ms, PAUSED.type, {"type": PAUSED.inner_type, "payload": payload})
