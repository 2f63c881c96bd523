"""Templates, and the jobs that submit, edit and delete them at the operator."""

from collections.abc import Collection
from dataclasses import replace
from operator import eq, ge, le
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.sql.operators import in_op

from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import Template, TemplateFilter, TemplateStatus
from waypost.store.encoding import decode_template, template_columns
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs, read_subject
from waypost.store.sql import filter_conditions, read_all, read_one, select_for_update, select_row
from waypost.store.tables import queue_jobs, templates
from waypost.store.templates.events import ONCE_APPROVED, TemplateEventKind, edited_fields, record_template_event

_NOT_DELETED: Final = templates.c.status != TemplateStatus.DELETED.value
_BY_ID: Final = select(templates).where(templates.c.id == bindparam("template_id"))


class TemplateLink(NamedTuple):
    """The ids of one template: the operator's and ours."""

    operator_template_id: str
    business_account_id: str
    id: str


def template_links(
    connection: Connection, partner_id: int, operator_template_ids: Collection[str]
) -> list[TemplateLink]:
    """Return the partner's templates with these operator ids; deleted ones are left out."""
    query = select_row(templates, TemplateLink).where(
        templates.c.partner_id == partner_id, templates.c.operator_template_id.in_(operator_template_ids), _NOT_DELETED
    )
    return read_all(connection, query, TemplateLink._make) if operator_template_ids else []


_IS_TEMPLATE_JOB: Final = (queue_jobs.c.concurrency_group > "templates ") & (
    queue_jobs.c.concurrency_group < "templates!"
)
"""Jobs about templates of any business account: one whose id has changed since keeps its old group."""


def record_template(connection: Connection, template: Template) -> bool:
    """Store a template and enqueue its submission; return False if its name exists in its language.

    Source: facts 3.3: also while the earlier one is REJECTED or FAILED.
    """
    if not _insert_template(connection, template):
        return False
    enqueue_jobs(connection, [template_job(template, SubjectKind.TEMPLATE_SUBMISSION, due_ms=template.created_on_ms)])
    record_template_event(connection, template, TemplateEventKind.SUBMITTED, template.created_on_ms)
    return True


def adopt_template(
    connection: Connection, template: Template, event: TemplateEventKind = TemplateEventKind.ADOPTED
) -> bool:
    """Store a template that the operator has already; return False if its name exists in its language.

    Args:
        event: why it is stored: it was adopted from the operator's library, or found there.
    """
    if not _insert_template(connection, template):
        return False
    record_template_event(connection, template, event, template.created_on_ms)
    return True


def change_contents(connection: Connection, template: Template, draft: TemplateDraft, at_ms: int) -> Template:
    """Put the operator's contents in the place of ours, and return the result; the samples and the topic stay."""
    kept = ("vertical", "enable_sample", "allow_template_category_change", "is_call_permission_request")
    if template.draft.template_type == draft.template_type:
        kept += ("example_media", "media_id", "media_url")
    names = (name for name in ("message_validity_s", "parameter_format") if getattr(draft, name) is None)
    merged = replace(draft, **{name: getattr(template.draft, name) for name in (*kept, *names)})
    changed = replace(template, draft=merged, modified_on_ms=at_ms)
    change_template(connection, template.id, **template_columns(changed))
    fields = edited_fields(template.draft, merged)
    record_template_event(connection, template, TemplateEventKind.CHANGED_AT_OPERATOR, at_ms, fields=fields)
    return changed


def _insert_template(connection: Connection, template: Template) -> bool:
    duplicate = select(templates.c.id).where(
        templates.c.business_account_id == template.business_account_id,
        templates.c.element_name == template.draft.element_name,
        templates.c.language_code == template.draft.language_code,
        _NOT_DELETED,
    )
    if connection.execute(duplicate.limit(1)).one_or_none() is not None:
        return False
    connection.execute(insert(templates), template_columns(template))
    return True


def template_job(template: Template, kind: SubjectKind, *, due_ms: int) -> NewJob:
    """Return the job for a template; those of one name are worked in order."""
    return NewJob(
        QueueName.OUTBOUND,
        concurrency_group=f"templates {template.business_account_id}",
        ordering_key=f"{template.business_account_id} {template.draft.element_name}",
        subject=JobSubject(kind, template.id),
        due_ms=due_ms,
    )


def template_by_id(connection: Connection, template_id: str) -> Template | None:
    """Return one template of any partner, even a deleted one, or None; the caller compares `partner_id`."""
    return read_one(connection, select_for_update(connection, _BY_ID), decode_template, template_id=template_id)


def templates_by_ids(connection: Connection, ids: set[str]) -> dict[str, Template]:
    """Return templates by id, even deleted ones; ids without a row are left out."""
    if not ids:
        return {}
    rows = connection.execute(select(templates).where(templates.c.id.in_(ids)))
    return {row.id: decode_template(row) for row in rows}


def find_templates(
    connection: Connection, partner_id: int, business_account_id: str, query: TemplateFilter
) -> list[Template]:
    """Return the matching templates of a business account, newest first, without deleted ones.

    Source: decision 0020: ids of version 7 are in the order of creation, and no two are alike, so
    pages do not shift while nothing is created.
    """
    column = templates.c
    conditions = filter_conditions(
        (eq, column.id, query.template_id),
        (eq, column.element_name, query.element_name),
        (eq, column.language_code, query.language_code),
        (in_op, column.template_type, query.template_types),
        (in_op, column.status, query.statuses),
        (in_op, column.stage, query.stages),
        (in_op, column.category, query.categories),
        (in_op, column.quality, query.qualities),
        (ge, column.created_on_ms, query.from_ms),
        (le, column.created_on_ms, query.until_ms),
    )
    is_visible = (column.business_account_id == business_account_id, column.partner_id == partner_id, _NOT_DELETED)
    newest = select(templates).where(*is_visible, *conditions).order_by(column.id.desc())
    return read_all(connection, newest.limit(query.at_most).offset(query.skipped or None), decode_template)


def templates_by_name(
    connection: Connection, partner_id: int, business_account_id: str, element_name: str
) -> list[Template]:
    """Return the templates of a name in every language; deleted ones are left out."""
    query = TemplateFilter(element_name=element_name)
    return find_templates(connection, partner_id, business_account_id, query)


def find_operator_template(
    connection: Connection, business_account_id: str, operator_template_id: str, element_name: str, language_code: str
) -> Template | None:
    """Return the template that an operator means: by its id, or by name and language before we have the id.

    A template with another id at the operator is a different one: an event of a deleted template must not
    reach the new one of its name.
    """
    in_account = select(templates).where(templates.c.business_account_id == business_account_id)
    by_id = in_account.where(templates.c.operator_template_id == operator_template_id)
    newest = by_id.order_by(templates.c.id.desc()).limit(1)
    by_name = in_account.where(
        templates.c.element_name == element_name,
        templates.c.language_code == language_code,
        templates.c.operator_template_id.is_(None),
        _NOT_DELETED,
    )
    # Again by id: between the two queries another process may have stored it, and then neither finds it.
    for query in (newest, by_name, newest):
        found = read_one(connection, select_for_update(connection, query), decode_template)
        if found is not None:
            return found
    return None


def change_template(connection: Connection, template_id: str, **columns: Any) -> None:
    """Set columns of one template."""
    connection.execute(update(templates).where(templates.c.id == template_id).values(**columns))


def edit_template(connection: Connection, before: Template, after: Template) -> bool:
    """Store an edit, beside the operator's version or in place of ours, and enqueue its job.

    Returns:
        False if the template has changed meanwhile.
    """
    updated = connection.execute(
        update(templates)
        .where(
            templates.c.id == before.id,
            templates.c.status == before.status.value,
            templates.c.modified_on_ms == before.modified_on_ms,
        )
        .values(**template_columns(after))
    )
    if updated.rowcount != 1:
        return False
    enqueue_jobs(connection, [template_job(after, SubjectKind.TEMPLATE_EDIT, due_ms=after.modified_on_ms)])
    changed_fields = edited_fields(before.draft, after.edited_version.draft)
    approved = msgspec.json.encode(before.draft).decode() if before.status in ONCE_APPROVED else ""
    record_template_event(
        connection, after, TemplateEventKind.EDITED, after.modified_on_ms, fields=changed_fields, approved=approved
    )
    return True


def is_id_of_deleted_template(connection: Connection, template: Template, operator_template_id: str) -> bool:
    """Return True if a deleted template of the same account has this id at the operator."""
    query = select(templates.c.id).where(
        templates.c.business_account_id == template.business_account_id,
        templates.c.operator_template_id == operator_template_id,
        templates.c.id != template.id,
        templates.c.status == TemplateStatus.DELETED.value,
    )
    return connection.execute(query.limit(1)).one_or_none() is not None


def accept_edit(connection: Connection, template: Template, at_ms: int) -> Template:
    """Replace the version of a template by an edit that the operator has accepted, and reviews now; return it."""
    accepted = replace(
        template.edited_version, edit=None, status=TemplateStatus.PENDING, reason=None, modified_on_ms=at_ms
    )
    change_template(connection, template.id, **template_columns(accepted))
    return accepted


def queued_template_ids(connection: Connection, business_account_id: str) -> set[str]:
    """Return the ids of templates with jobs that wait to be sent to the operator."""
    query = select(queue_jobs.c.ref).where(queue_jobs.c.queue == int(QueueName.OUTBOUND), _IS_TEMPLATE_JOB)
    ids = {read_subject(QueueName.OUTBOUND, ref).id for ref in connection.execute(query).scalars()}
    in_account = select(templates.c.id).where(
        templates.c.business_account_id == business_account_id, templates.c.id.in_(ids)
    )
    return set(connection.execute(in_account).scalars())
