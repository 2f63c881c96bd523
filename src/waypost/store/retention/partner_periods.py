"""Retention periods of single partners: shorter than those of the service, or the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, select, update

from waypost.store.retention.rules import RetentionPeriods
from waypost.store.tables import partners


@dataclass(frozen=True, slots=True)
class OwnPeriods:
    """The retention periods that a partner has of its own, in days, by the names of the settings.

    Attributes:
        keep_bodies_days: None: the service's.
        keep_messages_days: None: the service's.
    """

    keep_bodies_days: int | None = None
    keep_messages_days: int | None = None


def apply_own_periods(keep: RetentionPeriods, own: OwnPeriods) -> RetentionPeriods:
    """Return the periods that apply to a partner: the shorter of its own and the service's."""
    bodies_days = keep.bodies_days if own.keep_bodies_days is None else own.keep_bodies_days
    messages_days = keep.messages_days if own.keep_messages_days is None else own.keep_messages_days
    return replace(
        keep, bodies_days=min(keep.bodies_days, bodies_days), messages_days=min(keep.messages_days, messages_days)
    )


def read_own_periods(connection: Connection, partner_id: int) -> OwnPeriods:
    """Return the periods that a partner has of its own; without any if there is no such partner."""
    row = connection.execute(_OWN_PERIODS.where(partners.c.id == partner_id)).one_or_none()
    return OwnPeriods() if row is None else OwnPeriods(row.keep_bodies_days, row.keep_messages_days)


def list_own_periods(connection: Connection) -> dict[int, OwnPeriods]:
    """Return the partners that have periods of their own, by id."""
    has_own = partners.c.keep_bodies_days.is_not(None) | partners.c.keep_messages_days.is_not(None)
    rows = connection.execute(_OWN_PERIODS.where(has_own).order_by(partners.c.id))
    return {row.id: OwnPeriods(row.keep_bodies_days, row.keep_messages_days) for row in rows}


def change_own_periods(connection: Connection, partner_id: int, values: Mapping[str, int | None]) -> None:
    """Set the periods of a partner that are given, by name."""
    if values:
        connection.execute(update(partners).where(partners.c.id == partner_id).values(**values))


_OWN_PERIODS: Final[Any] = select(partners.c.id, partners.c.keep_bodies_days, partners.c.keep_messages_days)
