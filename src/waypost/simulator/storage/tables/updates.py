"""Tables of updates on their way to webhooks: the outbox, and the updates changed by faults.

The time stamp of a status is its due time, so a row whose due time changes needs no new content.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from waypost.simulator.storage.store import Statement, Values
from waypost.simulator.storage.tables.table import Table, column_value

MESSAGE_UPDATE: Final = "message"
FIELD_PREFIX: Final = "field:"
BARE_PREFIX: Final = "bare:"
"""The kinds of update: a message; `field:` and the name of a webhook field whose whole value is stored; the same with
`bare:` is sent without the envelope; every other kind is the name of a message's status."""

MESSAGES_FIELD: Final = "messages"
HISTORY_FIELD: Final = "history"
# fmt: off
WEBHOOK_FIELDS: Final = (  # Source: facts 7.2; the operator's page "Webhooks overview"
    MESSAGES_FIELD, "message_template_status_update", "message_template_quality_update",
    "message_template_components_update", "template_category_update", "account_update", "account_alerts",
    "account_review_update", "account_settings_update", "business_capability_update", "business_status_update", "calls",
    "flows", "group_lifecycle_update", "group_participants_update", "group_settings_update", "group_status_update",
    "history", "partner_solutions", "payment_configuration_update", "phone_number_name_update",
    "phone_number_quality_update", "security", "smb_app_state_sync", "smb_message_echoes",
    "template_correct_category_detection", "tracking_events", "user_id_update", "user_preferences",
)
# fmt: on
"""The fields that an app can subscribe to."""

SUBSCRIPTION_KIND: Final = "subscription"
RETRY_KIND: Final = "retry"
"""Kinds in the table `state`: an app subscribed to an account (the owner); the retries of an outlet, whose key is
its phone number id and whose owner is account and app, separated by a space."""

SEND_ALONE: Final = 0
SEND_AFTER_NEXT: Final = 1
"""How a faulted update is sent: by itself, or after the outlet's next one; a higher number is the batch size."""

_ADD_UPDATE: Final = (  # one row for each app subscribed to the account
    "INSERT INTO outbox (waba_id, due_ms, kind, phone_number_id, subject, content, id, app_id) "
    f"SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, key FROM state WHERE state.kind='{SUBSCRIPTION_KIND}' AND owner=?1"
)
COUNT_WAITING_UPDATES: Final = """
SELECT waba_id, count(*) FROM (SELECT waba_id FROM outbox UNION ALL SELECT waba_id FROM judged_updates) GROUP BY waba_id
"""
_DELETE_SCHEDULED: Final = (
    "DELETE FROM outbox WHERE waba_id=:waba_id AND subject=:wamid AND due_ms>:after_ms AND (:kind='' OR kind=:kind)"
)


class Update(msgspec.Struct, frozen=True):
    """One update: a status, a message from a phone, or something about an account."""

    waba_id: str
    due_ms: int
    kind: str  # `sent`, `delivered`, `read`, `failed`, …; `message`; or `field:…`
    phone_number_id: str  # the business number it is about; empty for what is about the account
    subject: str  # the message's or the template's id, or empty
    # what the webhook has about it: the value of a field; `contacts` and `messages`; or `status`, without the members
    # that are above, and optionally the `contact` that it names
    content: dict[str, Any]
    id: int = 0  # 0 until it is sent
    app_id: str = ""  # the subscribed app; empty until it is in the outbox, once for each app

    @property
    def field(self) -> str:
        """The webhook field of an update with its own entry; empty for messages and statuses."""
        return self.kind.partition(":")[2]

    @property
    def is_bare(self) -> bool:
        """True if the body of its POST is its value alone."""
        return self.kind.startswith(BARE_PREFIX)

    @property
    def is_alone(self) -> bool:
        """True if nothing else is in its POST: one part of a history may have the maximum size."""
        return self.is_bare or self.field == HISTORY_FIELD


class PendingUpdate(Update, frozen=True):
    """An update to be sent."""

    until_ms: int = 0  # when it is sent at the latest
    together: int = SEND_ALONE  # `SEND_ALONE`, `SEND_AFTER_NEXT`, or the size of its batch
    position: int = 0  # among the faulted updates; 0 if no fault applied and it is still in the outbox


@dataclass(frozen=True)
class Outlet:
    """The updates of an account that go to one callback URL: in order, and not delayed by other outlets."""

    waba_id: str  # the account
    app_id: str  # the subscribed app
    phone_number_id: str = ""  # the number with a callback URL of its own; empty: all other updates
    apart: tuple[str, ...] = field(default=(), compare=False)  # the numbers that the empty `phone_number_id` excludes

    @property
    def condition(self) -> str:
        """The SQL condition for the outlet's updates, with `values`."""
        app_condition = "waba_id=:waba_id AND app_id=:app_id"
        if self.phone_number_id:
            return f"{app_condition} AND phone_number_id=:phone_number_id"
        return (
            f"{app_condition} AND phone_number_id NOT IN (SELECT value FROM json_each(:apart))"
            if self.apart
            else app_condition
        )

    @property
    def values(self) -> Values:
        """The values for `condition`."""
        apart = msgspec.json.encode(self.apart).decode()
        return {
            "waba_id": self.waba_id, "app_id": self.app_id, "phone_number_id": self.phone_number_id, "apart": apart,
        }  # fmt: skip


class NextDue(NamedTuple):
    """Due time of an account's next update for an app."""

    waba_id: str
    app_id: str
    due_ms: int


OUTBOX: Final = Table("outbox", Update, key=("waba_id", "app_id", "due_ms", "id"), order="due_ms, id")
FAULTED_UPDATES: Final = Table(
    "judged_updates", PendingUpdate, key=("position",), order="position", is_numbered=True,
    indexes=("INDEX IF NOT EXISTS judged_updates_of_account ON judged_updates (waba_id, app_id, position)",),
)  # fmt: skip


def build_pending_update(update: Update, *, until_ms: int = 0, together: int = SEND_ALONE) -> PendingUpdate:
    """Return an update as one to be sent."""
    return PendingUpdate(*msgspec.structs.astuple(update)[:8], until_ms=until_ms, together=together)


def add_update(update: Update, update_id: int) -> Statement:
    """Return the statement that adds an update to the outbox for each app subscribed to the account."""
    members = msgspec.structs.astuple(update)[:5]
    return _ADD_UPDATE, (*members, column_value(update.content), update_id)


def delete_scheduled(wamid: str, waba_id: str, after_ms: int, kind: str = "") -> Statement:
    """Return the statement that deletes a message's statuses planned for later, of a kind; an empty kind means all."""
    return _DELETE_SCHEDULED, {"waba_id": waba_id, "wamid": wamid, "after_ms": after_ms, "kind": kind}
