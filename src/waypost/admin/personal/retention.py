"""The admin API's operations on the retention periods of a partner: show, change."""

from typing import Annotated

import msgspec
from msgspec import Meta

from waypost.admin.operation import AdminOperations
from waypost.admin.provisioning import AdminContext, partner_of
from waypost.domain.errors import invalid_field
from waypost.store.retention.columns import RetentionPeriods
from waypost.store.retention.partner_rules import apply_own_periods, change_own_periods, read_own_periods

operation = AdminOperations()


class NewPeriods(msgspec.Struct, forbid_unknown_fields=True):
    """Periods to set, in days; one that is left out stays, and null removes the partner's own."""

    keep_bodies_days: Annotated[int | msgspec.UnsetType | None, Meta(description="For content.")] = msgspec.UNSET
    keep_messages_days: Annotated[
        int | msgspec.UnsetType | None, Meta(description="For messages and their states.")
    ] = msgspec.UNSET

    def sent_values(self) -> dict[str, int | None]:
        """Return the periods that were sent, by name."""
        both = {"keep_bodies_days": self.keep_bodies_days, "keep_messages_days": self.keep_messages_days}
        return {name: value for name, value in both.items() if not isinstance(value, msgspec.UnsetType)}


class RetentionPeriod(msgspec.Struct):
    """A period in days: the one that applies, the partner's own, and the service's."""

    days: int
    own_days: int | None
    service_days: int


class PartnerRetention(msgspec.Struct):
    """The retention periods of a partner."""

    keep_bodies_days: RetentionPeriod
    keep_messages_days: RetentionPeriod


@operation("GET", "/admin/partners/{partner_id}/retention")
async def show_periods(context: AdminContext, partner_id: int) -> PartnerRetention:
    """Return the retention periods of a partner: those that apply, its own, and the service's.

    Raises:
        ApiError: there is no such partner.
    """
    await partner_of(context, partner_id)
    own = await context.database.read(read_own_periods, partner_id)
    effective, service = _service_days(apply_own_periods(context.retention, own)), _service_days(context.retention)
    return PartnerRetention(*(RetentionPeriod(effective[name], getattr(own, name), service[name]) for name in service))


@operation("PUT", "/admin/partners/{partner_id}/retention")
async def change_periods(context: AdminContext, new_periods: NewPeriods, partner_id: int) -> PartnerRetention:
    """Set retention periods of a partner; the next run of retention applies them.

    Raises:
        ApiError: there is no such partner, or a period is longer than the service's.
    """
    await partner_of(context, partner_id)
    values = new_periods.sent_values()
    check_periods(context.retention, values)
    await context.database.write(change_own_periods, partner_id, values)
    return await show_periods(context, partner_id)


def check_periods(keep: RetentionPeriods, values: dict[str, int | None]) -> None:
    """Check that periods of a partner are not longer than the service's.

    PostgreSQL drops callbacks and webhooks by the week, of all partners at once, so nobody can keep them longer.

    Raises:
        ApiError: one is.
    """
    service = _service_days(keep)
    for name, value in values.items():
        if value is not None and not 1 <= value <= service[name]:
            accepted = f"1 to {service[name]}, the setting {name} of the service, or null for that setting"
            raise invalid_field(name, accepted)


def _service_days(keep: RetentionPeriods) -> dict[str, int]:
    return {"keep_bodies_days": keep.bodies_days, "keep_messages_days": keep.messages_days}
