"""Templates by the id that the operator knows them by."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, select

from waypost.domain.template import TemplateStatus
from waypost.store.tables import templates


@dataclass(frozen=True, slots=True)
class TemplateLink:
    """Which template is which at the operator."""

    operator_template_id: str
    business_account_id: str
    id: str


def template_links(
    connection: Connection, partner_id: int, operator_template_ids: Collection[str]
) -> list[TemplateLink]:
    """The partner's templates that the operator knows by these ids; deleted ones are left out."""
    if not operator_template_ids:
        return []
    column = templates.c
    found = select(column.operator_template_id, column.business_account_id, column.id).where(
        column.partner_id == partner_id,
        column.operator_template_id.in_(operator_template_ids),
        column.status != TemplateStatus.DELETED.value,
    )
    return [TemplateLink(*row) for row in connection.execute(found)]
