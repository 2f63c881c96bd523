"""Templates, and the submissions that carry them to the operator."""

from typing import Any

from sqlalchemy import Connection, insert, select, update

from waypost.domain.template import Template
from waypost.store.journal import Lane, NewEntry, append_entries
from waypost.store.rows import template_columns, template_of
from waypost.store.tables import templates


def record_template(connection: Connection, template: Template) -> bool:
    """Keep a template and append its submission; False when its name is taken in its language.

    Source: facts 3.3: also while the earlier one is REJECTED or FAILED.
    """
    name = template.draft.element_name
    taken = select(templates.c.id).where(
        templates.c.business_account_id == template.business_account_id,
        templates.c.element_name == name,
        templates.c.language_code == template.draft.language_code,
    )
    if connection.execute(taken).one_or_none() is not None:
        return False
    connection.execute(insert(templates), template_columns(template))
    append_entries(connection, [template_submission(template, due_ms=template.created_on_ms)])
    return True


def template_submission(template: Template, *, due_ms: int) -> NewEntry:
    """The entry that carries a template; all of one name go in order."""
    return NewEntry(
        Lane.SUBMISSIONS,
        group=f"templates {template.business_account_id}",
        order_key=f"{template.business_account_id} {template.draft.element_name}",
        ref=f"template {template.id}",
        due_ms=due_ms,
    )


def template_by_id(connection: Connection, template_id: str) -> Template | None:
    """One template of whichever partner, or None; the caller compares `partner_id`."""
    row = connection.execute(select(templates).where(templates.c.id == template_id)).one_or_none()
    return None if row is None else template_of(row)


def templates_by_ids(connection: Connection, ids: set[str]) -> dict[str, Template]:
    """Templates by id; those that are not there are left out."""
    if not ids:
        return {}
    rows = connection.execute(select(templates).where(templates.c.id.in_(ids)))
    return {row.id: template_of(row) for row in rows}


def templates_of_app(connection: Connection, app_id: str, partner_id: int) -> list[Template]:
    """Every template of one app, newest first."""
    rows = connection.execute(
        select(templates)
        .where(templates.c.app_id == app_id, templates.c.partner_id == partner_id)
        .order_by(templates.c.id.desc())
    )
    return [template_of(row) for row in rows]


def template_known_to_operator(
    connection: Connection,
    business_account_id: str,
    operator_template_id: str,
    element_name: str,
    language_code: str,
) -> Template | None:
    """The template an operator speaks of: by its id, or by name and language before we have the id."""
    row = connection.execute(
        select(templates).where(
            templates.c.business_account_id == business_account_id,
            templates.c.operator_template_id == operator_template_id,
        )
    ).one_or_none()
    if row is None:
        row = connection.execute(
            select(templates).where(
                templates.c.business_account_id == business_account_id,
                templates.c.element_name == element_name,
                templates.c.language_code == language_code,
            )
        ).one_or_none()
    return None if row is None else template_of(row)


def change_template(connection: Connection, template_id: str, **columns: Any) -> None:
    """Set columns of one template."""
    connection.execute(update(templates).where(templates.c.id == template_id).values(**columns))
