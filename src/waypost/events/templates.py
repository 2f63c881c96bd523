"""Applies the operator's events of templates: reviews, quality, categories."""

from collections.abc import Callable

from sqlalchemy import Connection

from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES, QUALITIES, is_template_transition
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_category_change, apply_quality_change, apply_status_change
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import enqueue_jobs
from waypost.store.templates.templates import find_operator_template, template_job

FindApp = Callable[[str], App | None]
"""Returns an app by its id, if it belongs to the operator account that sent the event."""

_log = log("events")


def apply_template_event(
    connection: Connection,
    recorder: StateChangeRecorder,
    find_app: FindApp,
    event: ReviewEvent | QualityEvent | CategoryEvent,
    at_ms: int,
) -> bool:
    """Change a template by the operator's event, and emit a callback; an event that does not apply is only stored.

    Returns:
        False where the template is not ours, or the operator's value is unknown here.
    """
    template = find_operator_template(
        connection, event.business_account_id, event.operator_template_id, event.element_name, event.language_code
    )
    app = template and find_app(template.app_id)
    if template is None or app is None:
        return False
    if template.operator_template_id is None and event.operator_template_id:
        # Its submission is on its way, and another tool may have made one of its name: its contents will show.
        enqueue_refresh(connection, template, at_ms)
        return True
    match event:
        case QualityEvent(quality=value):
            if value not in QUALITIES:
                return False
            moved = apply_quality_change(connection, recorder, app, template, event, at_ms)
        case CategoryEvent(next_category=value):
            if value not in Category.__members__:
                return False
            moved = apply_category_change(connection, recorder, app, template, event, at_ms)
        case ReviewEvent(status=value):
            status = OPERATOR_STATUSES.get(value)
            if status is None:
                return False
            if _may_be_about_old_text(template, event):
                enqueue_refresh(connection, template, at_ms)
                return True
            if template.pending_edit is not None:  # the event may be about the edit, whose response is still to come
                enqueue_refresh(connection, template, at_ms)
            moved = not _is_out_of_date(template, event) and apply_status_change(
                connection, recorder, app, template, status, event, at_ms
            )
    if not moved:
        _log.info("a template event that changes nothing was stored", kind=type(event).__name__)
    return True


def check_repeated_event(connection: Connection, event: ReviewEvent | QualityEvent | CategoryEvent, at_ms: int) -> None:
    """Fetch a template whose event came before, and would change the template if it were another event.

    The operator's times have whole seconds. So the second approval within a second has the bytes of the first one,
    and only the operator can say whether it is that, or the first one once more (decision 0021).
    """
    template = find_operator_template(
        connection, event.business_account_id, event.operator_template_id, event.element_name, event.language_code
    )
    if template is None:
        return
    if template.pending_edit is not None or _would_change(template, event):
        enqueue_refresh(connection, template, at_ms)


def enqueue_refresh(connection: Connection, template: Template, at_ms: int) -> None:
    """Fetch a template from the operator, behind what waits to be sent for its name, and bring ours into line."""
    enqueue_jobs(connection, [template_job(template, SubjectKind.TEMPLATE_REFRESH, due_ms=at_ms)])


def _may_be_about_old_text(template: Template, event: ReviewEvent) -> bool:
    """True if an edit is in review, and an event is not certainly later than the edit: it may be about the text before.

    The operator's times have whole seconds, and its clock is not ours: one second is allowed for.
    """
    is_in_review = template.edited and template.status is TemplateStatus.PENDING and template.operator_template_id
    return bool(is_in_review) and 0 < event.at_s <= template.modified_on_ms // 1000 + 1


def _would_change(template: Template, event: ReviewEvent | QualityEvent | CategoryEvent) -> bool:
    match event:
        case QualityEvent(quality=value):
            return QUALITIES.get(value, template.quality) != template.quality
        case CategoryEvent(next_category=value, is_done=is_done):
            return value != (template.category if is_done else template.new_category)
        case ReviewEvent(status=value):
            status = OPERATOR_STATUSES.get(value)
            return status is not None and is_template_transition(template.status, status)


def _is_out_of_date(template: Template, event: ReviewEvent) -> bool:
    """True if the operator has decided otherwise since: its webhooks come in any order, sometimes days late.

    An event without a time always counts.
    """
    return 0 < event.at_s < template.decided_on_s
