"""Analytics of templates: counts of their messages by state, and button taps."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from waypost.base.clock import DAY_MS
from waypost.store.tables import apps, inbound_messages, messages, operator_accounts, webhook_items

_BATCH_IDS: Final = 500


@dataclass(frozen=True, slots=True)
class StateCount:
    """Number of a template's messages that were accepted on one day and are now in one state.

    Attributes:
        day: since the epoch, in UTC.
    """

    template_id: str
    day: int
    state: str
    messages: int


def state_counts(
    connection: Connection, partner_id: int, template_ids: Collection[str], from_ms: int, until_ms: int
) -> list[StateCount]:
    """Return the number of messages of these templates, by day and state.

    Args:
        connection: any.
        partner_id: owner of the templates.
        template_ids: of one business account.
        from_ms: accepted then or later.
        until_ms: accepted before.
    """
    day = (messages.c.accepted_on_ms // DAY_MS).label("day")
    # By the partner's apps, the first column of the only index that fits: another index, by template,
    # would add a fifth to the time of accepting a template message.
    of_partner = select(apps.c.id).where(apps.c.partner_id == partner_id)
    rows = connection.execute(
        select(messages.c.template_id, day, messages.c.state, func.count().label("count"))
        .where(
            messages.c.app_id.in_(of_partner),
            messages.c.template_id.in_(template_ids),
            messages.c.accepted_on_ms >= from_ms,
            messages.c.accepted_on_ms < until_ms,
            messages.c.partner_id == partner_id,
        )
        .group_by(messages.c.template_id, day, messages.c.state)
    )
    return [StateCount(*row) for row in rows]


def list_template_taps(
    connection: Connection, app_id: str, from_ms: int, until_ms: int
) -> list[tuple[int, str, bytes]]:
    """Return the time of each tap on a template's button, the kind of its operator, and its webhook item as stored."""
    rows = connection.execute(
        select(inbound_messages.c.received_on_ms, operator_accounts.c.kind, webhook_items.c.item)
        .join(webhook_items, webhook_items.c.id == inbound_messages.c.item_id)
        .join(operator_accounts, operator_accounts.c.id == webhook_items.c.operator_account_id)
        .where(
            inbound_messages.c.app_id == app_id,
            inbound_messages.c.kind == "button",
            inbound_messages.c.received_on_ms >= from_ms,
            inbound_messages.c.received_on_ms < until_ms,
        )
    )
    return [(received_on_ms, kind, item) for received_on_ms, kind, item in rows]


def templates_of_messages(
    connection: Connection, partner_id: int, operator_message_ids: Collection[str]
) -> dict[str, str]:
    """Return the template of each message by the operator's message id; other messages are left out."""
    ids = sorted(operator_message_ids)
    template_ids: dict[str, str] = {}
    for first in range(0, len(ids), _BATCH_IDS):
        rows = connection.execute(
            select(messages.c.operator_message_id, messages.c.template_id).where(
                messages.c.operator_message_id.in_(ids[first : first + _BATCH_IDS]),
                messages.c.partner_id == partner_id,
                messages.c.template_id.is_not(None),
            )
        )
        template_ids.update((operator_id, template_id) for operator_id, template_id in rows)
    return template_ids
