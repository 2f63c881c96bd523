"""Templates in the store: names that are free again, filters, and concurrent edits."""

from dataclasses import replace

from sqlalchemy import Connection, select

from tests.support.builders import ACCOUNT, AT_MS, PARTNER, draft, id_number, template
from tests.support.query_plans import plan_of, sorts
from waypost.domain.templates.template import TemplateFilter, TemplateStatus
from waypost.store.database import Database
from waypost.store.queue.job_subjects import QueueName
from waypost.store.tables import queue_jobs
from waypost.store.templates.templates import (
    change_template,
    edit_template,
    find_operator_template,
    find_templates,
    is_id_of_deleted_template,
    queued_template_ids,
    record_template,
    template_by_id,
    templates_by_name,
)

LIST = (
    "SELECT * FROM templates WHERE business_account_id='1' AND partner_id=7"
    " AND status!='DELETED' AND template_type IN ('TEXT') ORDER BY id DESC LIMIT 20"
)


async def test_name_of_a_deleted_template_can_be_used_again_any_number_of_times(database: Database) -> None:
    for number in (1, 2, 3):
        assert await database.write(record_template, template(number))
        assert not await database.write(record_template, template(9))
        await database.write(delete, id_number(number))

    assert await database.read(templates_by_name, PARTNER.id, ACCOUNT.id, "order_ready") == []
    stored = await database.read(template_by_id, id_number(1))
    assert stored is not None
    assert stored.status is TemplateStatus.DELETED


async def test_event_of_a_deleted_template_does_not_reach_the_new_one_of_its_name(database: Database) -> None:
    await database.write(record_template, template(1, operator_template_id="77"))
    await database.write(delete, id_number(1))
    await database.write(record_template, template(2, operator_template_id="78"))

    old = await database.read(find_operator_template, ACCOUNT.id, "77", "order_ready", "en_US")
    unknown = await database.read(find_operator_template, ACCOUNT.id, "79", "order_ready", "en_US")

    assert old is not None
    assert old.id == id_number(1)
    assert unknown is None
    new = template(2)
    assert await database.read(is_id_of_deleted_template, new, "77")
    assert not await database.read(is_id_of_deleted_template, new, "78")


async def test_edit_of_a_template_that_has_changed_meanwhile_changes_nothing(database: Database) -> None:
    before = template(1, status=TemplateStatus.APPROVED)
    await database.write(record_template, before)
    after = replace(before, status=TemplateStatus.PENDING, draft=draft(footer="Acme"), modified_on_ms=AT_MS + 1)

    first = await database.write(edit_template, before, after)
    second = await database.write(edit_template, before, after)

    assert (first, second) == (True, False)
    stored = await database.read(template_by_id, before.id)
    assert stored == after
    refs = await database.read(refs_of_submissions)
    assert refs == [f"template {before.id}", f"template-edit {before.id}"]
    assert await database.read(queued_template_ids, ACCOUNT.id) == {before.id}


async def test_pages_follow_each_other_without_a_gap(database: Database) -> None:
    for number in range(1, 8):
        await database.write(record_template, template(number, draft(element_name=f"t{number}")))

    pages = [
        await database.read(find_templates, PARTNER.id, ACCOUNT.id, TemplateFilter(at_most=3, skipped=skipped))
        for skipped in (0, 3, 6, 9)
    ]

    ids = [[row.id for row in page] for page in pages]
    assert ids == [[id_number(n) for n in numbers] for numbers in ((7, 6, 5), (4, 3, 2), (1,), ())]


async def test_list_of_a_business_account_is_found_by_an_index(database: Database) -> None:
    plan = await database.read(plan_of, LIST)

    assert any("templates_by_account" in step for step in plan)
    assert sorts(plan) == []


def delete(connection: Connection, template_id: str) -> None:
    change_template(connection, template_id, status="DELETED")


def refs_of_submissions(connection: Connection) -> list[str]:
    queue_name = select(queue_jobs.c.ref).where(queue_jobs.c.queue == int(QueueName.OUTBOUND))
    return list(connection.execute(queue_name.order_by(queue_jobs.c.position)).scalars())
