"""What is wrong on our side is nobody's doubt: the message waits, and goes when it is mended."""

import asyncio
import json
from dataclasses import replace

import pytest
from sqlalchemy import Connection, delete, select

from tests.support.builders import ANN, APP, OPERATOR
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import patiently
from waypost.admin import provisioning
from waypost.simulator.webhooks.webhooks import sign_body
from waypost.store.tables import operator_accounts, queue_jobs, templates


async def test_message_without_a_way_to_the_operator_waits_and_is_not_uncertain(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    way = await pipeline.waypost.directory.operator_account(OPERATOR.id)
    assert way is not None
    await pipeline.waypost.database.write(forget_operator_accounts)
    pipeline.waypost.directory.invalidate()

    message_id = await pipeline.send_text("Soon")

    await patiently(lambda: pipeline.waypost.database.read(defects_and_states), lambda found: found == [(1, 0)])
    assert (await pipeline.trace(message_id))["state"] == "accepted"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, way)
    assert (await pipeline.wait_for_state(message_id, "delivered"))["news"]
    assert len(await pipeline.deliveries(message_id)) == 1


async def test_message_whose_outcome_cannot_be_written_is_not_sent_again(cut_pipeline: PipelineHarness) -> None:
    between = cut_pipeline.between
    assert between is not None
    await cut_pipeline.open_window()
    between.let_webhooks_pass = False
    go_on = asyncio.Event()

    async def until_told(_wamid: str) -> None:
        await go_on.wait()

    between.hold_answer = until_told
    message_id = await cut_pipeline.send_text()
    await patiently(lambda: sends_of(between), lambda sends: sends == 1)

    async with cut_pipeline.store_away():
        go_on.set()
        await asyncio.sleep(0.5)

    await cut_pipeline.wait_for_state(message_id, "enqueued")  # written as soon as it can be
    assert between.sends == len(await cut_pipeline.deliveries(message_id)) == 1


@pytest.mark.holds("error-internal", "error-shape")
async def test_request_that_cannot_be_kept_is_told_to_come_again_later(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    parts = {"source": APP.phone_number, "destination": ANN}
    creation = {
        "elementName": "later",
        "category": "UTILITY",
        "templateType": "TEXT",
        "vertical": "Orders",
        "content": "We are open again.",
        "example": "We are open again.",
    }
    requests = {
        f"/partner/app/{APP.id}/templates": creation,
        f"/partner/app/{APP.id}/template/msg": parts | {"template": json.dumps({"id": template_id, "params": ["Ann"]})},
    }
    token = {"Authorization": pipeline.app_token}

    async with pipeline.store_away():
        answers = [await pipeline.ask("POST", path, form, token) for path, form in requests.items()]

    for answer in answers:
        assert answer.status == 500
        assert answer.body["status"] == "error"
        assert "try again later" in answer.body["message"]
        assert "contact developer support" in answer.body["message"]


async def test_review_that_overtakes_the_answer_is_not_undone_by_it(cut_pipeline: PipelineHarness) -> None:
    assert cut_pipeline.between is not None

    async def until_approved() -> None:
        read = cut_pipeline.waypost.database.read
        await patiently(lambda: read(statuses), lambda found: found == ["APPROVED"])

    cut_pipeline.between.hold_review = until_approved

    await cut_pipeline.create_template()

    await patiently(cut_pipeline.queue_depths, lambda queues: not any(queues.values()))
    assert await cut_pipeline.waypost.database.read(statuses) == ["APPROVED"]


async def test_one_operator_account_says_nothing_of_the_messages_of_another(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "delivered")
    other = replace(OPERATOR.replace_fields(app_secret="the other's secret"), id="other")
    await provisioning.put_operator_account(pipeline.waypost.admin_context, other)
    body = (
        b'{"entry":[{"id":"1","changes":[{"field":"messages","value":{"statuses":[{"id":"wamid.x",'
        b'"status":"read","timestamp":"1","biz_opaque_callback_data":"%s"}]}}]}]}' % message_id.encode()
    )

    async with pipeline.http.post(
        f"{pipeline.service_url}/operator/webhook/other",
        data=body,
        headers={"X-Hub-Signature-256": sign_body(other["app_secret"], body)},
    ) as answer:
        assert answer.status == 200

    await patiently(pipeline.queue_depths, lambda queues: not any(queues.values()))
    assert (await pipeline.trace(message_id))["state"] == "delivered"


async def test_headers_of_meta_are_sent_whatever_json_they_were(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="number", meta='{"headers":{"X-Shop":7}}', modes="MESSAGE")
    await pipeline.subscribe(tag="nothing", meta='{"headers":null}', modes="MESSAGE")

    await pipeline.reply(ANN, "Hello?")

    await patiently(lambda: tries_of(pipeline), lambda count: count == 3)
    assert [one.headers.get("X-Shop") for one in pipeline.sink.tries].count("7") == 1


async def sends_of(between: Between) -> int:
    return between.sends


async def tries_of(pipeline: PipelineHarness) -> int:
    return len(pipeline.sink.tries)


def statuses(connection: Connection) -> list[str]:
    return list(connection.execute(select(templates.c.status)).scalars())


def forget_operator_accounts(connection: Connection) -> None:
    connection.execute(delete(operator_accounts))


def defects_and_states(connection: Connection) -> list[tuple[int, int]]:
    rows = connection.execute(select(queue_jobs.c.defects, queue_jobs.c.state)).all()
    return [(row.defects, row.state) for row in rows]
