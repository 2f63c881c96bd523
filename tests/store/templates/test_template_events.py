"""Events of a template are written with its transition, and shown to its own partner only."""

from dataclasses import replace

from sqlalchemy import Connection

from tests.support.builders import ACCOUNT, APP, AT_MS, PARTNER, draft, id_number, template
from tests.support.manual_clock import ManualClock
from waypost.base.ids import RandomIds
from waypost.domain.event import CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.lifecycle import TEMPLATE_TRANSITIONS
from waypost.domain.templates.template import Template, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_category_change, apply_quality_change, apply_status_change
from waypost.store.database import Database
from waypost.store.templates.events import (
    EVENT_BY_STATUS,
    TemplateEvent,
    TemplateEventKind,
    last_approved_draft,
    status_event_kind,
    template_history,
)
from waypost.store.templates.gallery import (
    GalleryFilter,
    account_template_names,
    gallery_page,
    newest_template_id,
    template_of_account,
)
from waypost.store.templates.templates import adopt_template, edit_template, record_template

NAMES = (ACCOUNT.id, "77", "order_ready", "en_US")


async def history(database: Database, template_id: str = id_number(1)) -> list[TemplateEvent]:
    return await database.read(template_history, PARTNER.id, template_id)


def review(status: TemplateStatus, reason: str | None = None) -> ReviewEvent:
    return ReviewEvent(*NAMES, status.value, reason)


def apply_review(connection: Connection, of: Template, status: TemplateStatus, event: ReviewEvent, at_ms: int) -> bool:
    return apply_status_change(
        connection, StateChangeRecorder(connection, RandomIds(ManualClock(AT_MS)), at_ms), APP, of, status, event, at_ms
    )


async def test_last_approved_draft_is_the_one_before_the_edits_until_one_of_them_is_approved(
    database: Database,
) -> None:
    approved = template(1, status=TemplateStatus.APPROVED)
    await database.write(record_template, approved)
    drafts = [await database.read(last_approved_draft, approved)]
    current = approved
    for nth, footer in enumerate(("Acme", "Acme Ltd"), 1):
        status = TemplateStatus.PENDING if nth == 1 else TemplateStatus.REJECTED
        edited = replace(current, status=status, draft=draft(footer=footer), modified_on_ms=AT_MS + nth)
        assert await database.write(edit_template, current, edited)
        drafts.append(await database.read(last_approved_draft, edited))
        current = edited
    drafts.append(await database.read(last_approved_draft, replace(current, status=TemplateStatus.APPROVED)))
    foreign = replace(current, partner_id=PARTNER.id + 1)

    assert [one.footer for one in drafts if one] == [None, None, None, "Acme Ltd"]
    assert await database.read(last_approved_draft, foreign) is None


async def test_history_of_a_template_is_listed_newest_first(database: Database) -> None:
    first = template(1)
    await database.write(record_template, first)
    rejected = review(TemplateStatus.REJECTED, "Too short")
    await database.write(apply_review, first, TemplateStatus.REJECTED, rejected, AT_MS + 1)
    before = replace(first, status=TemplateStatus.REJECTED, reason="Too short", modified_on_ms=AT_MS + 1)
    after = replace(before, status=TemplateStatus.PENDING, draft=draft(footer="Acme"), modified_on_ms=AT_MS + 2)
    assert await database.write(edit_template, before, after)
    await database.write(apply_review, after, TemplateStatus.APPROVED, review(TemplateStatus.APPROVED), AT_MS + 3)

    events = await history(database)

    assert [(event.kind, event.at_ms - AT_MS, event.detail) for event in events] == [
        ("approved", 3, {}),
        ("edited", 2, {"fields": ["footer"]}),
        ("rejected", 1, {"reason": "Too short"}),
        ("submitted", 0, {}),
    ]


async def test_quality_and_category_changes_are_recorded_with_the_previous_value(database: Database) -> None:
    of = template(1, status=TemplateStatus.APPROVED)
    await database.write(adopt_template, of)

    def change_quality_and_category(connection: Connection) -> None:
        recorder = StateChangeRecorder(connection, RandomIds(ManualClock(AT_MS)), AT_MS)
        apply_quality_change(connection, recorder, APP, of, QualityEvent(*NAMES, "RED"), AT_MS)
        for is_done in (False, True):
            event = CategoryEvent(*NAMES, "UTILITY", "MARKETING", is_done=is_done)
            apply_category_change(connection, recorder, APP, of, event, AT_MS)

    await database.write(change_quality_and_category)

    assert [(entry.kind, entry.detail) for entry in await history(database)] == [
        ("category_changed", {"old": "UTILITY", "new": "MARKETING"}),
        ("category_change_announced", {"old": "UTILITY", "new": "MARKETING"}),
        ("quality_changed", {"old": "UNKNOWN", "new": "LOW"}),
        ("adopted", {}),
    ]


async def test_transition_that_is_not_applied_is_not_recorded(database: Database) -> None:
    of = template(1)
    await database.write(record_template, of)
    deleted = replace(of, status=TemplateStatus.DELETED)

    assert not await database.write(
        apply_review, deleted, TemplateStatus.APPROVED, review(TemplateStatus.APPROVED), AT_MS
    )
    assert not await database.write(record_template, template(2))  # its name is in use

    assert [event.kind for event in await history(database)] == ["submitted"]
    assert await history(database, id_number(2)) == []


async def test_another_partner_sees_nothing(database: Database) -> None:
    await database.write(record_template, template(1))
    stranger = PARTNER.id + 1

    assert await database.read(template_history, stranger, id_number(1)) == []
    assert await database.read(template_of_account, stranger, ACCOUNT.id, id_number(1)) is None
    assert await database.read(template_of_account, PARTNER.id, "another", id_number(1)) is None
    assert await database.read(newest_template_id, stranger, ACCOUNT.id) == ""

    def gallery_count(connection: Connection) -> int:
        return gallery_page(connection, stranger, ACCOUNT.id, GalleryFilter(), at_most=9).count

    assert await database.read(gallery_count) == 0
    assert await database.read(account_template_names, stranger, ACCOUNT.id, 9) == []


async def test_names_are_those_of_the_newest_templates_that_are_not_deleted(database: Database) -> None:
    for number, name in enumerate(("one", "two", "three", "four"), start=1):
        await database.write(record_template, template(number, draft(element_name=name)))
    deleted = template(4, draft(element_name="four"))
    await database.write(apply_review, deleted, TemplateStatus.DELETED, review(TemplateStatus.DELETED), AT_MS)

    names = await database.read(account_template_names, PARTNER.id, ACCOUNT.id, 2)

    assert names == [(id_number(3), "three", "en_US"), (id_number(2), "two", "en_US")]


async def test_text_is_found_in_names_texts_buttons_and_cards(database: Database) -> None:
    await database.write(record_template, template(1, draft(element_name="one", footer="Äpfel")))
    await database.write(record_template, template(2, draft(element_name="two_apples")))
    quoted = draft(element_name="three", content='Say "yes" to \\ it\nnow', example="x")
    await database.write(record_template, template(3, quoted))

    def search(connection: Connection, text: str) -> list[str]:
        page = gallery_page(connection, PARTNER.id, ACCOUNT.id, GalleryFilter(text=text), at_most=9)
        return [row.draft.element_name or "" for row in page.templates]

    assert await database.read(search, "äPFEL") == ["one"]
    assert await database.read(search, "TWO_") == ["two_apples"]
    assert await database.read(search, "order is ready") == ["two_apples", "one"]
    assert await database.read(search, "%") == []
    assert await database.read(search, 'say "YES" to \\') == ["three"]


def test_every_transition_of_a_template_has_an_event_kind() -> None:
    assert set(EVENT_BY_STATUS) == set(TemplateStatus)
    for before, afters in TEMPLATE_TRANSITIONS.items():
        for after in afters:
            assert status_event_kind(before, after) in TemplateEventKind


def test_approval_of_a_paused_template_is_a_resumption() -> None:
    assert status_event_kind(TemplateStatus.PAUSED, TemplateStatus.APPROVED) is TemplateEventKind.RESUMED
    assert status_event_kind(TemplateStatus.PENDING, TemplateStatus.APPROVED) is TemplateEventKind.APPROVED
