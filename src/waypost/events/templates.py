"""What the operator says of templates: reviews, quality, categories."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES, QUALITIES
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_category_change, apply_quality_change, apply_status_change
from waypost.store.templates.templates import edit_is_ours_only, template_known_to_operator

AppOf = Callable[[str], App | None]
"""Gives an app by its id, where it is the operator account's that speaks."""

_ENDS: Final = {TemplateStatus.DELETED, TemplateStatus.DISABLED}
"""What holds whatever the template's text is."""

_log = log("events")


def template_has_news(
    connection: Connection,
    recorder: StateChangeRecorder,
    app_of: AppOf,
    event: ReviewEvent | QualityEvent | CategoryEvent,
    at_ms: int,
) -> bool:
    """Change a template by what the operator says, and call back; what does not apply is kept only.

    Returns:
        False where the template is not ours, or the operator's word is not known here.
    """
    template = template_known_to_operator(
        connection, event.business_account_id, event.operator_template_id, event.element_name, event.language_code
    )
    app = template and app_of(template.app_id)
    if template is None or app is None:
        return False
    match event:
        case QualityEvent(quality=word):
            if word not in QUALITIES:
                return False
            moved = apply_quality_change(connection, recorder, app, template, event, at_ms)
        case CategoryEvent(next_category=word):
            if word not in Category.__members__:
                return False
            moved = apply_category_change(connection, recorder, app, template, event, at_ms)
        case ReviewEvent(status=word):
            status = OPERATOR_STATUSES.get(word)
            if status is None:
                return False
            moved = (
                not _is_out_of_date(template, event)
                and not _is_of_the_old_text(connection, template, status)
                and apply_status_change(connection, recorder, app, template, status, event, at_ms)
            )
    if not moved:
        _log.info("news of a template that changes nothing is kept", news=type(event).__name__)
    return True


def _is_out_of_date(template: Template, event: ReviewEvent) -> bool:
    """Whether the operator has decided otherwise since: its webhooks come in any order, days late at times.

    A refused edit is such a decision, and what was said in the same second is taken to be of the text
    before it (`dispatch/template_outcomes.py`). News that does not say when it was decided always counts.
    """
    return 0 < event.at_s < template.decided_on_s


def _is_of_the_old_text(connection: Connection, template: Template, status: TemplateStatus) -> bool:
    """Whether the operator has decided on what an edit, still here, is about to take the place of.

    While the edit is being handed over, nobody can tell: the review of the new text may come before
    the answer does. Then the news counts, and a refusal of the edit overrules it.
    """
    return status not in _ENDS and edit_is_ours_only(connection, template)
