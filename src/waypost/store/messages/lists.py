"""Lists of an app's messages, newest first, a page at a time: for people to browse.

A page begins where the last one ended, so that the thousandth costs what the first does; and it is
read from an index in its order, so that its cost does not depend on what else is stored.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, func, select, tuple_

from waypost.store.sql import equals_any
from waypost.store.tables import messages, recipients, templates

MAX_PAGE_ROWS: Final = 200
"""Maximum number of rows on a page."""

LIST_COLUMNS: Final = (  # without the content of the message, which a list does not show
    messages.c.id, messages.c.source, messages.c.destination, messages.c.kind, messages.c.template_id,
    messages.c.state, messages.c.code, messages.c.reason, messages.c.operator_message_id,
    messages.c.sandbox, messages.c.unconfirmed, messages.c.accepted_on_ms, messages.c.changed_on_ms,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageCursor:
    """The end of a page: its last message."""

    accepted_on_ms: int
    id: str


def messages_of_app(
    connection: Connection,
    partner_id: int,
    app_id: str,
    *,
    destination: str | None = None,
    before: MessageCursor | None = None,
    at_most: int = 50,
) -> list[dict[str, Any]]:
    """Return one page of the messages that an app has sent, newest first, with their content.

    Args:
        connection: any.
        partner_id: owner of the app; for another partner the list is empty.
        app_id: the app.
        destination: only messages to this number, digits as stored, or to this business-scoped id. A
            message is included once its state has changed for the first time: an index on messages
            that are merely accepted would be written at a random place for each message, which halves
            the rate at five million stored (decision 0049).
        before: return the page after the one that ended there.
        at_most: how many; never more than `MAX_PAGE_ROWS`.
    """
    query = select(*LIST_COLUMNS, messages.c.content).where(
        messages.c.app_id == app_id, messages.c.partner_id == partner_id
    )
    if destination is not None:
        name = recipients.c.phone_number if destination.isdecimal() else recipients.c.user_id
        person = func.coalesce(recipients.c.same_as, recipients.c.id)  # a former or a parent id leads to it too
        recipient_id = select(person).where(recipients.c.app_id == app_id, name == destination)
        query = query.where(messages.c.recipient_id == recipient_id.scalar_subquery())
    if before is not None:
        position = tuple_(messages.c.accepted_on_ms, messages.c.id)
        query = query.where(position < (before.accepted_on_ms, before.id))
    newest = query.order_by(messages.c.accepted_on_ms.desc(), messages.c.id.desc())
    return [dict(row) for row in connection.execute(newest.limit(min(at_most, MAX_PAGE_ROWS))).mappings()]


def template_names(connection: Connection, partner_id: int, app_id: str, at_most: int = 1000) -> dict[str, str]:
    """Return the names of an app's templates by id, newest first; deleted ones too, as messages outlive them."""
    query = (
        select(templates.c.id, templates.c.element_name, templates.c.language_code)
        .where(templates.c.app_id == app_id, templates.c.partner_id == partner_id)
        .order_by(templates.c.id.desc())
        .limit(at_most)
    )
    return _format_names(connection.execute(query))


def template_names_by_ids(connection: Connection, partner_id: int, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of a partner's templates by id, of any of its apps, deleted or not.

    Args:
        connection: any.
        partner_id: owner of the templates; those of others are left out.
        ids: as messages have them; None and repeated ids cost nothing.
    """
    template_ids = {template_id for template_id in ids if template_id}
    if not template_ids:
        return {}
    return _format_names(connection.execute(_TEMPLATE_NAMES, {"ids": sorted(template_ids), "partner_id": partner_id}))


def _format_names(rows: Iterable[Any]) -> dict[str, str]:
    return {row.id: f"{row.element_name} ({row.language_code})" for row in rows}


_TEMPLATE_NAMES: Final = select(templates.c.id, templates.c.element_name, templates.c.language_code).where(
    equals_any(templates.c.id, "ids"), templates.c.partner_id == bindparam("partner_id")
)
