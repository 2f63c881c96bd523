"""The request log in the store: pages by filter, its limits by number and by days, and erasure of a person."""

from dataclasses import replace
from typing import Any, Final

import pytest

from tests.support.builders import ANN, AT_MS
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS
from waypost.base.encryption import SecretBox
from waypost.base.ids import uuid7_text
from waypost.operations.retention_loop import RetentionLoop
from waypost.store.database import Database
from waypost.store.requests import request_log
from waypost.store.requests.request_log import (
    RequestLogEntry,
    RequestLogFilter,
    add_request_entries,
    delete_partner_requests,
    read_request_entry,
    read_request_page,
    trim_request_log,
)
from waypost.store.retention.columns import RetentionPeriods
from waypost.store.retention.erasure import ERASURE_PARTS, ErasurePosition, erase_recipient
from waypost.store.retention.export import ExportPosition, export_recipient


def make_entry(number: int, **changes: Any) -> RequestLogEntry:
    at_ms = AT_MS + number
    entry = RequestLogEntry(
        id=uuid7_text(at_ms, bytes(10)), at_ms=at_ms, partner_id=7, app_id="app-1", route="POST /partner/app/{app_id}/msg",
        credential="app token", status=400, error="field broken", message="", explanation="", field="", accepted="",
        request="", response="", recipient="", size_bytes=0, took_us=900, request_id=f"r-{number}",
    )  # fmt: skip
    return replace(entry, **changes)


FIRST: Final = make_entry(1, status=200, error="")
SECOND: Final = make_entry(2, app_id="app-2", route="GET /partner/app/{app_id}/100%_templates")
THIRD: Final = make_entry(3, partner_id=8, status=503)
FOURTH: Final = make_entry(4, partner_id=None, status=401)
ALL: Final = (FOURTH, THIRD, SECOND, FIRST)

# fmt: off
FILTERS: Final = (
    # filter                                      expected entries
    (RequestLogFilter(),                          ALL),
    (RequestLogFilter(partner_id=7),              (SECOND, FIRST)),
    (RequestLogFilter(partner_id=9),              ()),
    (RequestLogFilter(statuses=(200, 299)),            (FIRST,)),
    (RequestLogFilter(statuses=(400, 499)),            (FOURTH, SECOND)),
    (RequestLogFilter(statuses=(500, 599)),            (THIRD,)),
    (RequestLogFilter(statuses=(401, 401)),       (FOURTH,)),
    (RequestLogFilter(app_id="app-2"),            (SECOND,)),
    (RequestLogFilter(route="100%_"),             (SECOND,)),
    (RequestLogFilter(route="P%T"),               ()),
    (RequestLogFilter(request_id="r-3"),          (THIRD,)),
    (RequestLogFilter(request_id="r-3", partner_id=7), ()),
    (RequestLogFilter(before_id=THIRD.id),        (SECOND, FIRST)),
)
# fmt: on


@pytest.mark.parametrize(("query", "expected"), FILTERS)
async def test_a_filter_gives_its_entries_newest_first(
    database: Database, query: RequestLogFilter, expected: tuple[RequestLogEntry, ...]
) -> None:
    await database.write(add_request_entries, ALL)

    page = await database.read(read_request_page, query, 10)

    assert (tuple(page.entries), page.following) == (expected, None)


async def test_pages_follow_each_other_and_a_rare_match_is_searched_step_by_step(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "MAX_SEARCHED_ENTRIES", 3)
    entries = [make_entry(number, status=500 if number == 1 else 400) for number in range(1, 9)]
    await database.write(add_request_entries, entries)

    first = await database.read(read_request_page, RequestLogFilter(partner_id=7), 2)
    steps, following = list[int](), None
    for _ in range(4):
        page = await database.read(read_request_page, RequestLogFilter(statuses=(500, 599), before_id=following), 2)
        steps.append(len(page.entries))
        following = page.following
        if following is None:
            break

    assert [entry.request_id for entry in first.entries] == ["r-8", "r-7"]
    assert first.following == first.entries[-1].id
    assert (steps, following) == ([0, 0, 1], None)


async def test_an_entry_is_read_by_its_own_partner_only(database: Database) -> None:
    await database.write(add_request_entries, ALL)

    assert await database.read(read_request_entry, FIRST.id, 7) == FIRST
    assert await database.read(read_request_entry, FIRST.id, 8) is None
    assert await database.read(read_request_entry, FOURTH.id, 7) is None
    assert await database.read(read_request_entry, FOURTH.id, None) == FOURTH


@pytest.mark.parametrize("partner_id", [7, None])
async def test_only_the_newest_entries_of_a_partner_are_retained(
    database: Database, monkeypatch: pytest.MonkeyPatch, partner_id: int | None
) -> None:
    monkeypatch.setattr(request_log, "MAX_TRIMMED_ENTRIES", 2)
    await database.write(add_request_entries, [make_entry(number, partner_id=partner_id) for number in range(1, 9)])
    await database.write(add_request_entries, [make_entry(20, partner_id=9)])

    is_more = [await database.write(trim_request_log, partner_id, 5) for _ in range(2)]

    page = await database.read(read_request_page, RequestLogFilter(), 20)
    assert is_more == [True, False]
    assert [entry.request_id for entry in page.entries] == ["r-20", "r-8", "r-7", "r-6", "r-5", "r-4"]


async def test_entries_are_deleted_after_their_retention(database: Database) -> None:
    clock = ManualClock(AT_MS)
    await database.write(add_request_entries, ALL)
    periods = RetentionPeriods(30, 400, 8, 30, request_log_days=7)
    loop = RetentionLoop(database, clock, periods, rest_factor=0)

    clock.advance(ms=7 * DAY_MS + 3)
    await loop.run_turn()

    page = await database.read(read_request_page, RequestLogFilter(), 20)
    assert tuple(page.entries) == (FOURTH, THIRD)


async def test_a_partner_with_a_shorter_period_loses_its_own_entries_only(database: Database) -> None:
    await database.write(add_request_entries, ALL)

    assert not await database.write(delete_partner_requests, 7, AT_MS + 100)

    page = await database.read(read_request_page, RequestLogFilter(), 20)
    assert tuple(page.entries) == (FOURTH, THIRD)


async def test_a_person_is_exported_and_erased_wherever_a_request_names_it(database: Database) -> None:
    own = [
        make_entry(1, recipient=ANN),
        make_entry(2, request=f'{{"body":{{"to":"+{ANN}"}}}}'),
        make_entry(3, explanation=f"destination {ANN} has not opted in."),
        make_entry(4, request_id=f"order-{ANN}"),
    ]
    others = [make_entry(5, recipient=f"{ANN}1"), make_entry(6)]
    await database.write(add_request_entries, [*own, *others])

    exported = await database.read(export_recipient, ANN, ExportPosition("request"))
    position: ErasurePosition | None = ErasurePosition(ERASURE_PARTS[0])
    erased = 0
    while position is not None:
        page = await database.write(erase_recipient, ANN, position, SecretBox("k" * 64))
        erased += page.erased.get("request_log", 0)
        position = page.following

    assert [record["id"] for record in exported.records] == [entry.id for entry in own]
    left = await database.read(read_request_page, RequestLogFilter(), 20)
    assert (erased, left.entries) == (4, others[::-1])
