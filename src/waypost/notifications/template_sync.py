"""Synchronises our templates with the operator's list of them, by id, or by name and language."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from waypost.domain.direct_calls.templates import OperatorTemplate
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.templates.template import Template, TemplateStatus, have_same_contents
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_category_change, apply_quality_change, apply_status_change
from waypost.store.accounts.partners import app_by_id
from waypost.store.templates.templates import change_template, find_operator_template

LISTED_AS_APPROVED: Final = {TemplateStatus.FLAGGED, TemplateStatus.LOCKED}
"""Statuses that the operator lists as approved."""


def is_same_template(template: Template, listed: OperatorTemplate) -> bool:
    """True if one of ours whose id at the operator is not known is this one of the operator: by name and contents."""
    names = (listed.name, listed.language.replace("-", "_"))
    is_named = names == name_and_language(template) and not listed.is_being_deleted
    return is_named and (listed.draft is None or have_same_contents(template.draft, listed.draft))


def align_templates(
    connection: Connection,
    recorder: StateChangeRecorder,
    business_account_id: str,
    listed: Sequence[OperatorTemplate],
    *,
    pending_ids: set[str],
    now_ms: int,
) -> set[str]:
    """Bring status, quality, category and reason into line with the operator's; each difference causes a callback.

    Args:
        connection: the writer's.
        recorder: of this transaction.
        business_account_id: whose templates.
        listed: the operator's whole list, with the result of each review.
        pending_ids: ids of ours of which something has yet to be sent to the operator: they are not changed.
        now_ms: by our clock.

    Returns:
        The operator's ids of those that it has, and is not deleting.
    """
    for operator_template in listed:
        template = find_operator_template(
            connection,
            business_account_id,
            operator_template.id,
            operator_template.name,
            operator_template.language.replace("-", "_"),
        )
        if template is not None and template.id not in pending_ids:
            align_template(connection, recorder, template, operator_template, now_ms)
    return {operator_template.id for operator_template in listed if not operator_template.is_being_deleted}


def align_template(
    connection: Connection, recorder: StateChangeRecorder, template: Template, listed: OperatorTemplate, now_ms: int
) -> None:
    """Bring one template into line with the operator's. Source: operator's facts 2.1, 3.1."""
    app = app_by_id(connection, template.app_id)
    if template.operator_template_id is None:
        change_template(connection, template.id, operator_template_id=listed.id)
    status = OPERATOR_STATUSES.get(listed.status)
    if status is not None and template.status not in LISTED_AS_APPROVED:
        event = make_review_event(template, status.value, listed.rejected_reason)
        apply_status_change(connection, recorder, app, template, status, event, now_ms)
    names = (template.business_account_id, listed.id, *name_and_language(template))
    apply_quality_change(connection, recorder, app, template, QualityEvent(*names, listed.quality), now_ms)
    event = CategoryEvent(*names, template.category.value, listed.category, is_done=True)
    apply_category_change(connection, recorder, app, template, event, now_ms)


def make_review_event(template: Template, status: str, reason: str | None) -> ReviewEvent:
    """Return the event that a template has this status at the operator."""
    operator_id = template.operator_template_id or ""
    return ReviewEvent(template.business_account_id, operator_id, *name_and_language(template), status, reason)


def name_and_language(template: Template) -> tuple[str, str]:
    """Return a template's name and language."""
    return template.draft.element_name or "", template.draft.language_code
