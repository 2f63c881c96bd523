"""Changes of a template: its row and its callbacks, in the caller's transaction.

Dispatch, the operator's events and the partner's own calls all change templates; this is the one place
where a change is written and notified.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from waypost.domain.app import App
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import QUALITIES, is_template_transition
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.encoding import encode_template_edit
from waypost.store.templates.events import TemplateEventKind, record_template_event, status_event_kind
from waypost.store.templates.templates import change_template
from waypost.wire.callbacks.kinds import event_name
from waypost.wire.callbacks.template_events import category_body, quality_body, status_body


def apply_status_change(
    connection: Connection,
    recorder: StateChangeRecorder,
    app: App | None,
    template: Template,
    status: TemplateStatus,
    event: ReviewEvent,
    at_ms: int,
) -> bool:
    """Move a template to a status, unless the table of transitions does not allow it; return whether it moved.

    Args:
        app: whose callbacks; None where it has been deleted.
        event: with the reason and the description.
    """
    decided_on_s = max(event.at_s, template.decided_on_s)
    if not is_template_transition(template.status, status):
        if status is template.status and decided_on_s > template.decided_on_s:
            change_template(connection, template.id, decided_on_s=decided_on_s)
        return False
    columns: dict[str, str | int | None] = {"reason": event.reason, "decided_on_s": decided_on_s}
    if event.operator_template_id:
        columns["operator_template_id"] = event.operator_template_id
    change_template(connection, template.id, status=status.value, modified_on_ms=at_ms, **columns)
    change = status_event_kind(template.status, status)
    record_template_event(connection, template, change, at_ms, reason=event.reason or "")
    _emit(
        recorder,
        app,
        template,
        "message_template_status_update",
        lambda app, version: status_body(version, app, at_ms, template, status, event),
    )
    return True


def reject_edit(
    connection: Connection,
    recorder: StateChangeRecorder,
    app: App | None,
    template: Template,
    outcome: OperatorRejected | OperatorUnavailable,
    at_ms: int,
) -> None:
    """Mark the edit of a template as rejected by the operator, or as not submitted; the version before it stays."""
    edit = template.pending_edit
    if edit is None:
        return
    is_rejected = isinstance(outcome, OperatorRejected)
    status = TemplateStatus.REJECTED if is_rejected else TemplateStatus.FAILED
    rejected = encode_template_edit(replace(edit, status=status, reason=outcome.text))
    change_template(connection, template.id, edit=rejected, modified_on_ms=at_ms)
    kind = TemplateEventKind.EDIT_REJECTED if is_rejected else TemplateEventKind.EDIT_FAILED
    record_template_event(connection, template, kind, at_ms, reason=outcome.text)
    reason = f"{outcome.text} This is about the edit; the version before it stays {template.status}."
    event = make_review_event(template, status.value, reason)
    _emit(
        recorder,
        app,
        template,
        "message_template_status_update",
        lambda app, version: status_body(version, app, at_ms, template, status, event),
    )


def apply_quality_change(
    connection: Connection,
    recorder: StateChangeRecorder,
    app: App | None,
    template: Template,
    event: QualityEvent,
    at_ms: int,
) -> bool:
    """Change a template's quality; an unknown quality, or the same one again, changes nothing."""
    quality = QUALITIES.get(event.quality)
    if quality is None or quality == template.quality or _is_deleted(template):
        return False
    change_template(connection, template.id, quality=quality, modified_on_ms=at_ms)
    record_template_event(
        connection, template, TemplateEventKind.QUALITY_CHANGED, at_ms, old=template.quality, new=quality
    )
    _emit(
        recorder,
        app,
        template,
        "message_template_quality_update",
        lambda app, version: quality_body(version, app, at_ms, template, quality, event),
    )
    return True


def apply_category_change(
    connection: Connection,
    recorder: StateChangeRecorder,
    app: App | None,
    template: Template,
    event: CategoryEvent,
    at_ms: int,
) -> bool:
    """Change a template's category, or announce the change; the same event again changes nothing.

    Source: facts 3.4, "category changed": an alert first, then the change; the list shows `oldCategory`.
    """
    category = event.next_category
    is_known = category in Category.__members__
    shown = template.category if event.is_done else template.new_category
    if not is_known or category == shown or _is_deleted(template):
        return False
    if event.is_done:
        columns: dict[str, str | None] = {
            "old_category": template.category.value,
            "category": category,
            "new_category": None,
        }
    else:
        columns = {"new_category": category}
    change_template(connection, template.id, modified_on_ms=at_ms, **columns)
    change = TemplateEventKind.CATEGORY_CHANGED if event.is_done else TemplateEventKind.CATEGORY_CHANGE_ANNOUNCED
    record_template_event(connection, template, change, at_ms, old=template.category.value, new=category)
    _emit(
        recorder,
        app,
        template,
        "template_category_update",
        lambda app, version: category_body(version, app, at_ms, template, event),
    )
    return True


def _emit(
    recorder: StateChangeRecorder,
    app: App | None,
    template: Template,
    field: str,
    render: Callable[[App, int], bytes | None],
) -> None:
    """Emit a callback about a template; none where its app has been deleted."""
    if app is not None:
        subject, name = f"t:{template.id}", event_name(field)
        recorder.emit_callback(app, mode="TEMPLATE", subject=subject, event_name=name, render=partial(render, app))


def _is_deleted(template: Template) -> bool:
    return template.status is TemplateStatus.DELETED


def make_review_event(template: Template, status: str, reason: str | None) -> ReviewEvent:
    """Return the event that a template has this status at the operator."""
    operator_id = template.operator_template_id or ""
    return ReviewEvent(template.business_account_id, operator_id, *name_and_language(template), status, reason)


def name_and_language(template: Template) -> tuple[str, str]:
    """Return a template's name and language."""
    return template.draft.element_name or "", template.draft.language_code
