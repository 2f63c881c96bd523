"""Our templates brought into line with the operator's list of them, by id, or by name and language."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection

from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.template import Template, TemplateStatus
from waypost.journal.telling import Telling
from waypost.journal.template_news import template_is_filed, template_is_rated, template_moves
from waypost.store.partners import app_by_id
from waypost.store.templates import change_template, template_known_to_operator

LISTED_FIELDS: Final = "name,language,status,category,rejected_reason,quality_score"
"""What has to be asked for. Source: operator's facts 2.1."""
GOING: Final = {"DELETED", "PENDING_DELETION"}
KEPT: Final = {TemplateStatus.FLAGGED, TemplateStatus.LOCKED}
"""The operator lists these as approved."""


def align_templates(
    connection: Connection,
    telling: Telling,
    business_account_id: str,
    nodes: Sequence[dict[str, Any]],
    *,
    waiting: set[str],
    now_ms: int,
) -> set[str]:
    """Bring status, quality, category and reason into line; what differs is called back.

    Args:
        connection: the writer's.
        telling: of this transaction.
        business_account_id: whose templates.
        nodes: the operator's whole list, with id, name, language and status as texts.
        waiting: ids of ours of which the operator has yet to hear something: they are left alone.
        now_ms: by our clock.

    Returns:
        The operator's ids of those that it has, and is not deleting.
    """
    there: set[str] = set()
    for node in nodes:
        operator_id, status = text_of(node.get("id")), text_of(node.get("status"))
        name, language = text_of(node.get("name")), text_of(node.get("language"))
        if status not in GOING:
            there.add(operator_id)
        template = template_known_to_operator(
            connection, business_account_id, operator_id, name, language.replace("-", "_")
        )
        if template is not None and template.id not in waiting:
            _align(connection, telling, template, node, now_ms)
    return there


def _align(connection: Connection, telling: Telling, template: Template, node: dict[str, Any], now_ms: int) -> None:
    """Bring one template into line with the operator's node of it. Source: operator's facts 2.1, 3.1."""
    app = app_by_id(connection, template.app_id)
    operator_id = text_of(node.get("id"))
    if template.operator_template_id is None:
        change_template(connection, template.id, operator_template_id=operator_id)
    status = OPERATOR_STATUSES.get(text_of(node.get("status")))
    reason = text_of(node.get("rejected_reason"))
    if status is not None and template.status not in KEPT:
        event = review_of(template, status.value, reason if reason not in ("", "NONE") else None)
        template_moves(connection, telling, app, template, status, event, now_ms)
    quality = ""
    match node.get("quality_score"):
        case {"score": str(quality)}:
            pass
        case _:
            pass
    names = (template.business_account_id, operator_id, *names_of(template))
    template_is_rated(connection, telling, app, template, QualityEvent(*names, quality), now_ms)
    category = text_of(node.get("category"))
    event = CategoryEvent(*names, template.category.value, category, is_done=True)
    template_is_filed(connection, telling, app, template, event, now_ms)


def review_of(template: Template, status: str, reason: str | None) -> ReviewEvent:
    """The news that a template has this status at the operator."""
    operator_id = template.operator_template_id or ""
    return ReviewEvent(template.business_account_id, operator_id, *names_of(template), status, reason)


def names_of(template: Template) -> tuple[str, str]:
    """A template's name and language."""
    return template.draft.element_name or "", template.draft.language_code


def text_of(value: Any) -> str:
    """The text, or an empty one."""
    return value if isinstance(value, str) else ""
