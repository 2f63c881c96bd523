"""Backlogs of partners: messages that wait for the operator, callbacks that wait for receivers; and their quotas."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, TextClause, bindparam, select, text, update

from waypost.domain.quotas import PartnerQuotas
from waypost.store.queue.names import QueueName
from waypost.store.tables import partners

MAX_SHOWN: Final = 10_000_000
"""How many of one source or receiver are counted to be shown."""


@dataclass(frozen=True, slots=True)
class PartnerBacklog:
    """The backlog of one partner, dead letters included; replays of callbacks do not count.

    Attributes:
        messages: that wait for the operator, those in flight included.
        callbacks: likewise for its receivers, also for those that are paused.
        quotas: that apply to the partner: its own, or those of the settings.
    """

    messages: int
    callbacks: int
    quotas: PartnerQuotas


@dataclass(frozen=True, slots=True)
class OwnQuotas:
    """The quotas that a partner has of its own; None: the setting's applies."""

    messages: int | None
    callbacks: int | None


def read_own_quotas(connection: Connection, partner_id: int) -> OwnQuotas:
    """Return the quotas that a partner has of its own."""
    row = connection.execute(_OWN_QUOTAS, {"partner": partner_id}).one_or_none()
    return OwnQuotas(None, None) if row is None else OwnQuotas(row.message_quota, row.callback_quota)


def change_own_quotas(connection: Connection, partner_id: int, values: dict[str, int | None]) -> None:
    """Set the columns `message_quota` and `callback_quota` of a partner, those of them that are present."""
    if values:
        connection.execute(update(partners).where(partners.c.id == partner_id).values(values))


def count_backlog(
    connection: Connection, partner_id: int, default: PartnerQuotas, *, up_to_quotas: bool = False
) -> PartnerBacklog:
    """Count what a partner has waiting.

    Args:
        connection: any.
        partner_id: the partner.
        default: quotas of a partner without its own.
        up_to_quotas: True to count no more of each source or receiver than the quota, and nothing that has
            none: its number is then 0.
    """
    own = read_own_quotas(connection, partner_id)
    quotas = PartnerQuotas(
        default.messages if own.messages is None else own.messages,
        default.callbacks if own.callbacks is None else own.callbacks,
    )
    messages, callbacks = (
        _count(connection, statement, partner_id, at_most=quota if up_to_quotas else MAX_SHOWN)
        for statement, quota in ((_COUNT_MESSAGES, quotas.messages), (_COUNT_CALLBACKS, quotas.callbacks))
    )
    return PartnerBacklog(messages, callbacks, quotas)


def _count(connection: Connection, statement: TextClause, partner_id: int, *, at_most: int) -> int:
    if not at_most:
        return 0
    return int(connection.execute(statement, {"partner": partner_id, "at_most": at_most}).scalar_one())


_OWN_QUOTAS: Final = select(partners.c.message_quota, partners.c.callback_quota).where(
    partners.c.id == bindparam("partner")
)
# Correlated, so that each source and subscription is one range of an index, whatever a planner knows of the tables.
_COUNT_MESSAGES: Final = text(
    "SELECT coalesce(sum(waiting), 0) FROM (SELECT (SELECT count(*) FROM (SELECT 1 FROM queue_jobs "  # noqa: S608
    f"WHERE queue = {int(QueueName.OUTBOUND)} AND concurrency_group = apps.phone_number LIMIT :at_most) AS jobs) "
    "AS waiting FROM apps WHERE partner_id = :partner) AS counts"
)
_COUNT_CALLBACKS: Final = text(
    "SELECT coalesce(sum(waiting), 0) FROM (SELECT (SELECT count(*) FROM (SELECT 1 FROM callbacks "
    "WHERE ended_on_ms IS NULL AND subscription_id = subscriptions.id LIMIT :at_most) AS jobs) AS waiting "
    "FROM apps JOIN subscriptions ON subscriptions.app_id = apps.id WHERE apps.partner_id = :partner) AS counts"
)
