"""Events without an id: what the operator sends once more is one event, and an equal one much later is another."""

import json
from typing import Any, Final

import pytest

from tests.support.builders import ACCOUNT, APP, OPERATOR
from tests.support.manual_clock import ManualClock
from waypost.base.ids import RandomIds
from waypost.domain.event import InboundWebhook
from waypost.operators.cloud.webhook import split
from waypost.store.database import Database
from waypost.store.queue.inbound_webhooks import record_webhooks

AT_MS: Final = 1_760_000_000_000
MINUTE_MS: Final = 60_000
LOCKED: Final = {
    "messaging_product": "whatsapp",
    "metadata": {"display_phone_number": APP.phone_number, "phone_number_id": APP.phone_number_id},
    "errors": [{"code": 131031, "title": "Account locked"}],
}
FLAGGED: Final = {"event": "FLAGGED", "current_limit": "TIER_1K"}


def webhook_at(minutes: float, field: str, *values: Any, **entry: Any) -> InboundWebhook:
    """Return a body with these values, a change each, received some minutes after the first one."""
    changes = [{"field": field, "value": value} for value in values]
    content = {"object": "whatsapp_business_account", "entry": [{"id": ACCOUNT.id, **entry, "changes": changes}]}
    body, at_ms = json.dumps(content).encode(), AT_MS + int(minutes * MINUTE_MS)
    return InboundWebhook(RandomIds(ManualClock(at_ms)).new(), OPERATOR.id, at_ms, body, tuple(split(OPERATOR, body)))


async def new_items(database: Database, *webhooks: InboundWebhook) -> list[int]:
    """Store webhooks one after the other; return how many items of each were new."""
    return [count for webhook in webhooks for count in await database.write(record_webhooks, [webhook])]


async def test_equal_error_without_a_time_is_one_event_within_an_hour_and_another_one_later(database: Database) -> None:
    minutes = (0, 0.1, 59, 61, 62, 120, 122, 122.1)

    counts = await new_items(database, *(webhook_at(minute, "messages", LOCKED) for minute in minutes))

    assert counts == [1, 0, 0, 1, 0, 0, 1, 0]


async def test_two_in_one_body_are_two_and_both_are_repeated_with_it(database: Database) -> None:
    counts = await new_items(database, *(webhook_at(minute, "messages", LOCKED, LOCKED) for minute in (0, 1, 90, 91)))

    assert counts == [2, 0, 2, 0]


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        (FLAGGED, {"time": AT_MS // 1000}),
        (FLAGGED, {"time": str(AT_MS // 1000)}),
        (FLAGGED | {"timestamp": "1760000000"}, {}),
        (FLAGGED | {"calls": [{"start_time": 1760000000}]}, {}),
    ],
    ids=["time of the entry", "as text", "timestamp", "time within"],
)
async def test_event_with_a_time_is_the_same_one_however_late_it_is_repeated(
    database: Database, value: dict[str, Any], entry: dict[str, Any]
) -> None:
    field = "phone_number_quality_update"

    counts = await new_items(database, *(webhook_at(minute, field, value, **entry) for minute in (0, 1, 300, 9000)))

    assert counts == [1, 0, 0, 0]


async def test_equal_change_of_another_second_is_another_event(database: Database) -> None:
    field, at_s = "phone_number_quality_update", AT_MS // 1000

    counts = await new_items(
        database, *(webhook_at(0, field, FLAGGED, time=time_s) for time_s in (at_s, at_s + 1, at_s))
    )

    assert counts == [1, 1, 0]
