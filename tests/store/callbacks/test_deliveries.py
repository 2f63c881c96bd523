"""Pages of an app's callbacks: newest first, complete, its own only, and never scanning more than the limit."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from tests.support.builders import ANN, APP, AT_MS, BEN, PARTNER, id_number
from waypost.store.callbacks.callbacks import CallbackRow, enqueue_callbacks
from waypost.store.callbacks.deliveries import (
    DeliveryCursor,
    DeliveryFilter,
    DeliveryPage,
    attempts_by_callback_ids,
    find_delivery,
    find_delivery_jobs,
    list_deliveries,
    subject_names,
)
from waypost.store.callbacks.receivers import count_attempts, count_deliveries, last_delivery_ms, newest_attempts
from waypost.store.database import Database
from waypost.store.tables import attempts, callbacks, recipients, subscriptions

OTHER_APP = "01990000-0000-7000-8000-00000000000b"
OTHER_PARTNER = 8


def _subscription(id: int, app_id: str = APP.id, partner_id: int = PARTNER.id) -> dict[str, Any]:
    return {
        "id": id, "partner_id": partner_id, "app_id": app_id, "tag": f"tag {id}",
        "url": "http://127.0.0.1:9/", "version": 2, "modes": "SENT", "active": True,
        "show_on_ui": False, "created_on_ms": AT_MS, "modified_on_ms": AT_MS,
    }  # fmt: skip


def _callback(number: int, subscription_id: int) -> CallbackRow:
    """Three of each millisecond, to Ann and to Ben in turn."""
    return CallbackRow(
        id=id_number(number),
        partner_id=PARTNER.id,
        app_id=APP.id,
        subscription_id=subscription_id,
        subject="1" if number % 2 else BEN,
        sequence=number,
        message_id=id_number(9000 + number // 4),
        event=("enqueued", "sent", "delivered", "read")[number % 4],
        body=b'{"n":%d}' % number,
        created_on_ms=AT_MS + number // 3,
    )


def _seed(connection: Connection, count: int) -> None:
    connection.execute(
        insert(subscriptions), [_subscription(1), _subscription(2), _subscription(3, OTHER_APP, OTHER_PARTNER)]
    )
    connection.execute(
        insert(recipients), [{"id": 1, "partner_id": PARTNER.id, "app_id": APP.id, "phone_number": ANN, "name": ""}]
    )
    rows = [_callback(number, 1 + number % 2) for number in range(1, count + 1)]
    foreign = _callback(5000, 3)._replace(partner_id=OTHER_PARTNER, app_id=OTHER_APP)
    enqueue_callbacks(connection, [*rows, foreign], [AT_MS] * (count + 1))
    ended = [row.id for row in rows if row.sequence % 5]
    given_up = [row.id for row in rows if row.sequence % 50 == 1]
    connection.execute(callbacks.update().where(callbacks.c.id.in_(ended)).values(ended_on_ms=AT_MS, delivered=True))
    connection.execute(callbacks.update().where(callbacks.c.id.in_(given_up)).values(delivered=False))


def _add_attempts(connection: Connection, rows: list[dict[str, Any]]) -> None:
    connection.execute(insert(attempts), rows)


def _page(
    connection: Connection,
    delivery_filter: DeliveryFilter,
    before: DeliveryCursor | None,
    at_most: int,
    scan_limit: int,
) -> DeliveryPage:
    return list_deliveries(
        connection, PARTNER.id, APP.id, delivery_filter, before=before, at_most=at_most, scan_limit=scan_limit
    )


async def all_pages(
    database: Database, delivery_filter: DeliveryFilter, *, at_most: int = 7, scan_limit: int = 10_000
) -> tuple[list[int], list[int]]:
    """Return the sequence numbers of all pages, and how far back each bounded search went."""
    numbers: list[int] = []
    searched: list[int] = []
    before: DeliveryCursor | None = None
    while True:
        page = await database.read(_page, delivery_filter, before, at_most, scan_limit)
        assert len(page.rows) <= at_most
        numbers += [row["sequence"] for row in page.rows]
        if page.searched_to_ms is not None:
            searched.append(page.searched_to_ms)
        if page.next is None:
            return numbers, searched
        assert before is None or page.next < before
        before = page.next


# fmt: off
FILTERS: tuple[tuple[DeliveryFilter, Callable[[int], object]], ...] = (  # filter, and which numbers match it
    (DeliveryFilter(),                                        lambda n: True),
    (DeliveryFilter(subscription_id=2),                       lambda n: n % 2 == 1),
    (DeliveryFilter(subscription_id=3),                       lambda n: False),
    (DeliveryFilter(state="waiting"),                         lambda n: n % 5 == 0),
    (DeliveryFilter(state="delivered"),                       lambda n: n % 5 and n % 50 != 1),
    (DeliveryFilter(state="given up"),                        lambda n: n % 50 == 1),
    (DeliveryFilter(recipient=ANN),                           lambda n: n % 2 == 1),
    (DeliveryFilter(recipient=BEN),                           lambda n: n % 2 == 0),
    (DeliveryFilter(recipient="15550009999"),                 lambda n: False),
    (DeliveryFilter(event="read"),                             lambda n: n % 4 == 3),
    (DeliveryFilter(message_id=id_number(9010)),              lambda n: n // 4 == 10),
    (DeliveryFilter(from_ms=AT_MS + 10, to_ms=AT_MS + 20),    lambda n: 10 <= n // 3 < 20),
    (DeliveryFilter(2, "delivered", ANN, "sent", None, AT_MS, AT_MS + 40), lambda n: n % 4 == 1 and n % 5 and n % 50 != 1 and n // 3 < 40),
)
# fmt: on


@pytest.mark.parametrize(("delivery_filter", "matches"), FILTERS)
@pytest.mark.parametrize("scan_limit", [10_000, 20])
async def test_pages_hold_every_match_once_newest_first(
    database: Database, delivery_filter: DeliveryFilter, matches: Any, scan_limit: int
) -> None:
    await database.write(_seed, 200)

    numbers, _ = await all_pages(database, delivery_filter, scan_limit=scan_limit)

    assert sorted(numbers) == [n for n in range(1, 201) if matches(n)]
    assert [n // 3 for n in numbers] == sorted((n // 3 for n in numbers), reverse=True)


async def test_rare_filter_scans_up_to_the_limit_and_reports_how_far_back(database: Database) -> None:
    await database.write(_seed, 200)
    delivery_filter = DeliveryFilter(event="enqueued", recipient=ANN)  # no match: even numbers are Ben's

    page = await database.read(_page, delivery_filter, None, 7, 40)

    assert page.rows == []
    assert page.searched_to_ms == AT_MS + 54  # twenty of each subscription: number 162 and 161
    assert page.next is not None
    numbers, searched = await all_pages(database, delivery_filter, scan_limit=40)
    assert numbers == []
    assert len(searched) == 5


async def test_callback_of_another_app_or_partner_is_not_found(database: Database) -> None:
    await database.write(_seed, 3)

    def read_foreign(connection: Connection) -> list[Any]:
        return [
            find_delivery(connection, PARTNER.id, APP.id, id_number(5000)),
            find_delivery(connection, PARTNER.id, OTHER_APP, id_number(5000)),
            find_delivery(connection, OTHER_PARTNER, APP.id, id_number(1)),
            list_deliveries(connection, OTHER_PARTNER, APP.id, DeliveryFilter()).rows,
            list_deliveries(connection, OTHER_PARTNER, APP.id, DeliveryFilter(message_id=id_number(9000))).rows,
            subject_names(connection, OTHER_PARTNER, APP.id, ["1"]),
        ]  # fmt: skip

    assert await database.read(read_foreign) == [None, None, None, [], [], {}]
    own = await database.read(find_delivery, PARTNER.id, APP.id, id_number(2))
    assert own is not None
    assert own["body"] == '{"n":2}'


async def test_job_that_delivers_a_callback_is_found(database: Database) -> None:
    await database.write(_seed, 10)

    [job] = await database.read(find_delivery_jobs, 2, id_number(5))

    assert (job.due_ms, job.attempt, job.note) == (AT_MS, 0, None)
    assert await database.read(find_delivery_jobs, 2, id_number(3)) == []


async def test_attempts_are_counted_by_time_and_outcome(database: Database) -> None:
    await database.write(_seed, 10)
    rows = [
        {
            "callback_id": id_number(1), "subscription_id": 1, "at_ms": AT_MS + at, "duration_ms": ms,
            "status": status, "response_body": b"", "error": None,
        }
        for at, ms, status in ((0, 30, 200), (10, 20, 204), (20, 20, 204), (30, 9, 500), (30, 10_000, None))
    ]  # fmt: skip
    await database.write(_add_attempts, rows)

    def read_statistics(connection: Connection) -> tuple[Any, ...]:
        return (
            count_attempts(connection, 1, AT_MS, AT_MS + 40, slots=4),
            count_attempts(connection, 1, AT_MS, AT_MS + 40, at_most=2),
            count_deliveries(connection, 1, AT_MS + 5),
            last_delivery_ms(connection, 1, None),
            last_delivery_ms(connection, 1, AT_MS + 15),
            last_delivery_ms(connection, 2, None),
            [attempt.at_ms - AT_MS for attempt in newest_attempts(connection, 1, 3)],
            [attempt.status for attempt in attempts_by_callback_ids(connection, [id_number(1)])[id_number(1)]],
        )

    counted, newest, delivered, last, before, none, times, statuses = await database.read(read_statistics)

    assert sorted((attempt.slot, attempt.status or 0, attempt.duration_ms, attempt.tries) for attempt in counted) == [
        (0, 200, 30, 1), (1, 204, 20, 1), (2, 204, 20, 1), (3, 0, 10_000, 1), (3, 500, 9, 1),
    ]  # fmt: skip
    assert sorted(attempt.duration_ms for attempt in newest) == [9, 10_000]
    assert delivered == (4, 2)
    assert (last, before, none) == (AT_MS + 40, AT_MS + 30, None)
    assert times == [30, 30, 20]
    assert statuses == [200, 204, 204, 500, None]
