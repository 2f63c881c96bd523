"""The audit log in the store: pages by filter, and how long entries are retained."""

from dataclasses import replace

import pytest

from tests.support.builders import AT_MS
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS
from waypost.operations.retention_loop import RetentionLoop
from waypost.store.accounts.audit_log import (
    ADMIN_ACTOR,
    MAX_AUDIT_TEXT_CHARS,
    AuditEntry,
    AuditFilter,
    AuditLog,
    add_audit_entry,
    audit_page,
)
from waypost.store.database import Database
from waypost.store.retention.columns import RetentionPeriods

FIRST = AuditEntry(AT_MS, 7, ADMIN_ACTOR, "192.0.2.1", "POST /admin/partners", "partner_id=7", 200)
SECOND = AuditEntry(AT_MS + 10, 7, "ann@acme.test", "192.0.2.2", "POST /settings/keys", "", 400, "rejected")
THIRD = AuditEntry(AT_MS + 20, None, "nobody", "192.0.2.3", "GET /admin/100%_apps", "", 401, "authentication")

# fmt: off
FILTERS = (
    # filter                                             expected entries
    (AuditFilter(),                                      (THIRD, SECOND, FIRST)),
    (AuditFilter(partner_id=7),                          (SECOND, FIRST)),
    (AuditFilter(partner_id=8),                          ()),
    (AuditFilter(actor="nobody"),                        (THIRD,)),
    (AuditFilter(action="/settings"),                    (SECOND,)),
    (AuditFilter(action="100%_"),                        (THIRD,)),
    (AuditFilter(action="1%a"),                          ()),
    (AuditFilter(rejected=True),                         (THIRD, SECOND)),
    (AuditFilter(rejected=False),                        (FIRST,)),
    (AuditFilter(since_ms=AT_MS + 10),                   (THIRD, SECOND)),
    (AuditFilter(until_ms=AT_MS + 10),                   (FIRST,)),
    (AuditFilter(partner_id=7, rejected=True),           (SECOND,)),
)
# fmt: on


async def add_entries(database: Database) -> None:
    for entry in (FIRST, SECOND, THIRD):
        await database.write(add_audit_entry, entry)


@pytest.mark.parametrize(("audit_filter", "expected"), FILTERS)
async def test_a_filter_gives_its_entries_newest_first(
    database: Database, audit_filter: AuditFilter, expected: tuple[AuditEntry, ...]
) -> None:
    await add_entries(database)

    page = await database.read(audit_page, audit_filter, 10)

    assert tuple(replace(entry, id=0) for entry in page) == expected


async def test_pages_follow_each_other_by_the_id(database: Database) -> None:
    await add_entries(database)

    newest = await database.read(audit_page, AuditFilter(), 2)
    older = await database.read(audit_page, AuditFilter(before_id=newest[-1].id), 2)

    assert [replace(entry, id=0) for entry in (*newest, *older)] == [THIRD, SECOND, FIRST]


async def test_any_text_is_cleaned_and_stored_within_bounds(database: Database) -> None:
    audit = AuditLog(database, ManualClock(at_ms=AT_MS))
    strange = "\0\n\ud800é" + "x" * 1000

    await audit.record(actor=strange, remote_address=strange, action=strange, status=400, subject=strange)

    [entry] = await audit.page(AuditFilter(), 10)
    assert entry.subject.startswith("???é")
    assert len(entry.subject) == MAX_AUDIT_TEXT_CHARS


async def test_entries_are_deleted_after_their_days_and_not_before(database: Database) -> None:
    for number in range(450):  # more than one batch
        await database.write(add_audit_entry, replace(FIRST, at_ms=AT_MS + number))
    clock = ManualClock(at_ms=AT_MS + 400 * DAY_MS)
    periods = RetentionPeriods(bodies_days=30, messages_days=400, dedupe_days=8, attempts_days=30, audit_days=400)
    retention = RetentionLoop(database, clock, periods, rest_factor=0)

    await retention.run_turn()
    at_the_limit = await database.read(audit_page, AuditFilter(), 1000)
    clock.advance(ms=449)
    await retention.run_turn()
    later = await database.read(audit_page, AuditFilter(), 1000)

    assert len(at_the_limit) == 450
    assert [entry.at_ms for entry in later] == [AT_MS + 449]
