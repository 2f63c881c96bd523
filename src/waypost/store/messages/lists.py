"""Lists of an app's messages, newest first, a page at a time: for whoever looks rather than reads.

A page begins where the last one ended, so that the thousandth costs what the first does; and it is
read from an index in its order, so that it costs the same whatever else is stored.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select, tuple_

from waypost.store.sql import one_of
from waypost.store.tables import messages, recipients, templates

MOST: Final = 200
"""On one page."""

SHOWN: Final = (  # without the words of the message, which a list does not show
    messages.c.id, messages.c.source, messages.c.destination, messages.c.kind, messages.c.template_id,
    messages.c.state, messages.c.code, messages.c.reason, messages.c.operator_message_id,
    messages.c.sandbox, messages.c.unconfirmed, messages.c.accepted_on_ms, messages.c.changed_on_ms,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: its last message."""

    accepted_on_ms: int
    id: str


def messages_of_app(
    connection: Connection,
    partner_id: int,
    app_id: str,
    *,
    destination: str | None = None,
    before: Place | None = None,
    at_most: int = 50,
) -> list[dict[str, Any]]:
    """One page of what an app has sent, newest first.

    Args:
        connection: any.
        partner_id: whose app it must be; another's has nothing.
        app_id: which.
        destination: only what was sent to this number, digits as they are stored, or to this
            business-scoped id. A message is among it from the moment that something has become of
            it: an index on what is merely accepted would be written at a random place for each
            message, which halves the rate at five million stored (decision 0049).
        before: the page after the one that ended there.
        at_most: how many; never more than `MOST`.
    """
    found = select(*SHOWN).where(messages.c.app_id == app_id, messages.c.partner_id == partner_id)
    if destination is not None:
        name = recipients.c.phone_number if destination.isdecimal() else recipients.c.user_id
        of_name = select(recipients.c.id).where(recipients.c.app_id == app_id, name == destination)
        found = found.where(messages.c.recipient_id == of_name.scalar_subquery())
    if before is not None:
        place = tuple_(messages.c.accepted_on_ms, messages.c.id)
        found = found.where(place < (before.accepted_on_ms, before.id))
    newest = found.order_by(messages.c.accepted_on_ms.desc(), messages.c.id.desc())
    return [dict(row) for row in connection.execute(newest.limit(min(at_most, MOST))).mappings()]


def template_names(connection: Connection, partner_id: int, app_id: str, at_most: int = 1000) -> dict[str, str]:
    """What an app's templates are called, by id, newest first; deleted ones too, for messages outlive them."""
    found = (
        select(templates.c.id, templates.c.element_name, templates.c.language_code)
        .where(templates.c.app_id == app_id, templates.c.partner_id == partner_id)
        .order_by(templates.c.id.desc())
        .limit(at_most)
    )
    return _named(connection.execute(found))


def names_of_templates(connection: Connection, partner_id: int, ids: Iterable[str | None]) -> dict[str, str]:
    """What some of a partner's templates are called, by id; whoever's app made them, deleted or not.

    Args:
        connection: any.
        partner_id: whose they must be; another's are left out.
        ids: as messages have them: None, and the same ones again, cost nothing.
    """
    wanted = {one for one in ids if one}
    if not wanted:
        return {}
    return _named(connection.execute(_NAMES, {"ids": sorted(wanted), "partner_id": partner_id}))


def _named(rows: Iterable[Any]) -> dict[str, str]:
    return {row.id: f"{row.element_name} ({row.language_code})" for row in rows}


_NAMES: Final = select(templates.c.id, templates.c.element_name, templates.c.language_code).where(
    one_of(templates.c.id, "ids"), templates.c.partner_id == bindparam("partner_id")
)
