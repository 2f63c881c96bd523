"""A first attempt that delivers its callback is part of the callback's row, and is shown like any other."""

from typing import Any, Final

import pytest

from tests.support.builders import APP, AT_MS, PARTNER
from waypost.domain.callbacks import AttemptKind, CallbackAttempt
from waypost.store.callbacks.callbacks import (
    AttemptRecord,
    CallbackRow,
    callback_with_attempts,
    enqueue_callbacks,
    record_attempts,
)
from waypost.store.database import Database

ID: Final = "01990000-0000-7000-8000-000000000001"
SENT: Final = {
    "Content-Type": "application/json; charset=utf-8",
    "User-Agent": "Waypost/1.2.3",
    "Waypost-Callback-Id": ID,
    "Waypost-Sequence": "7",
    "webhook-id": ID,
    "webhook-timestamp": "1800000000",
    "webhook-signature": "v1,abc",
}


async def record(database: Database, headers: dict[str, str], kind: AttemptKind) -> dict[str, Any]:
    """Record a delivered attempt; return the one attempt of its callback, as it is shown."""
    row = CallbackRow(ID, PARTNER.id, APP.id, 1, "9", 7, None, "sent", b"{}", AT_MS)
    await database.write(enqueue_callbacks, [row], [AT_MS])
    attempt = CallbackAttempt(AT_MS, 12, 202, b"ok", None, headers, {"server": "a"})
    await database.write(record_attempts, [AttemptRecord(ID, 1, attempt, True, kind)])
    callback = await database.read(callback_with_attempts, ID)
    assert callback is not None
    assert callback["delivered"] is True
    assert callback["ended_on_ms"] == AT_MS + 12
    [shown] = callback["attempts"]
    return shown


@pytest.mark.parametrize("own", [{}, {"X-Shop": "(not kept)"}], ids=["ours", "a partner's too"])
@pytest.mark.parametrize("kind", [AttemptKind.INITIAL, AttemptKind.RETRY])
async def test_attempt_is_shown_with_the_headers_that_were_sent(
    database: Database, own: dict[str, str], kind: AttemptKind
) -> None:
    shown = await record(database, own | SENT, kind)

    assert shown["request_headers"] == own | SENT
    assert shown["response_headers"] == {"server": "a"}
    assert (shown["at_ms"], shown["duration_ms"], shown["status"]) == (AT_MS, 12, 202)
    assert (shown["response_body"], shown["kind"], shown["error"]) == ("ok", kind.value, None)


@pytest.mark.parametrize("kind", [AttemptKind.RETRY, AttemptKind.REPLAY])
async def test_callback_that_was_delivered_is_not_given_up_by_an_attempt_that_is_recorded_late(
    database: Database, kind: AttemptKind
) -> None:
    """As a process does that has lost its lease, and learns it only when another one has delivered the callback."""
    await record(database, dict(SENT), AttemptKind.RETRY)
    late = CallbackAttempt(AT_MS + 5000, 12, 500, b"", None, {}, {})

    await database.write(record_attempts, [AttemptRecord(ID, 1, late, False, kind)])

    callback = await database.read(callback_with_attempts, ID)
    assert callback is not None
    assert (callback["delivered"], callback["ended_on_ms"]) == (True, AT_MS + 12)
    assert [attempt["status"] for attempt in callback["attempts"]] == [202, 500]
