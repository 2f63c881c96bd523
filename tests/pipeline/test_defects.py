"""An error on our side makes no message uncertain: it waits, and is sent when the error is fixed."""

import asyncio
import json
from dataclasses import replace

import pytest
from sqlalchemy import Connection, delete, select

from tests.support.builders import ANN, APP, OPERATOR
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.admin import provisioning
from waypost.simulator.webhooks.webhooks import sign_body
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.tables import operator_accounts, queue_jobs, templates


async def test_message_without_an_operator_account_waits_and_is_not_uncertain(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    account = await pipeline.waypost.directory.operator_account(OPERATOR.id)
    assert account is not None
    await pipeline.waypost.database.write(delete_operator_accounts)
    pipeline.waypost.directory.invalidate()

    message_id = await pipeline.send_text("Soon")

    await poll_until(lambda: pipeline.waypost.database.read(read_defects_and_states), lambda rows: rows == [(1, 0)])
    assert (await pipeline.trace(message_id))["state"] == "accepted"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, account)
    assert (await pipeline.wait_for_state(message_id, "delivered"))["events"]
    assert len(await pipeline.deliveries(message_id)) == 1


async def test_message_is_not_sent_again_when_its_outcome_cannot_be_stored(proxied_pipeline: PipelineHarness) -> None:
    between = proxied_pipeline.operator_proxy
    assert between is not None
    await proxied_pipeline.open_window()
    between.let_webhooks_pass = False
    may_respond = asyncio.Event()

    async def wait_for_release(_wamid: str) -> None:
        await may_respond.wait()

    between.hold_response = wait_for_release
    message_id = await proxied_pipeline.send_text()
    await poll_until(lambda: count_sends(between), lambda sends: sends == 1)

    async with proxied_pipeline.unavailable_store():
        may_respond.set()
        await asyncio.sleep(0.5)

    await proxied_pipeline.wait_for_state(message_id, "enqueued")  # written as soon as it can be
    assert between.sends == len(await proxied_pipeline.deliveries(message_id)) == 1


@pytest.mark.holds("error-internal", "error-shape")
async def test_request_that_cannot_be_stored_gets_a_try_again_later_error(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    addresses = {"source": APP.phone_number, "destination": ANN}
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
        f"/partner/app/{APP.id}/template/msg": addresses
        | {"template": json.dumps({"id": template_id, "params": ["Ann"]})},
    }
    token = {"Authorization": pipeline.app_token}

    async with pipeline.unavailable_store():
        responses = [await pipeline.send_request("POST", path, form, token) for path, form in requests.items()]

    for response in responses:
        assert response.status == 500
        assert response.body["status"] == "error"
        assert "try again later" in response.body["message"]
        assert "contact developer support" in response.body["message"]


async def test_review_before_the_response_to_the_creation_is_not_undone_by_it(
    proxied_pipeline: PipelineHarness,
) -> None:
    assert proxied_pipeline.operator_proxy is not None

    async def wait_for_review() -> None:
        """Return once the review has come, which waits as a fetch of the template behind its submission."""
        read = proxied_pipeline.waypost.database.read
        await poll_until(lambda: read(count_template_fetches), lambda count: count == 1)

    proxied_pipeline.operator_proxy.hold_review = wait_for_review

    template = await proxied_pipeline.create_template()

    await poll_until(proxied_pipeline.queue_depths, lambda queues: not any(queues.values()))
    assert await proxied_pipeline.waypost.database.read(read_template_statuses) == ["APPROVED"]
    callbacks = [callback["payload"] for callback in proxied_pipeline.callbacks]
    assert [payload["status"] for payload in callbacks if payload.get("id") == template["id"]] == ["approved"]


async def test_webhook_of_one_operator_account_changes_no_message_of_another(pipeline: PipelineHarness) -> None:
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
    ) as response:
        assert response.status == 200

    await poll_until(pipeline.queue_depths, lambda queues: not any(queues.values()))
    assert (await pipeline.trace(message_id))["state"] == "delivered"


async def test_headers_of_meta_are_sent_whatever_json_type_they_have(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="number", meta='{"headers":{"X-Shop":7}}', modes="MESSAGE")
    await pipeline.subscribe(tag="nothing", meta='{"headers":null}', modes="MESSAGE")

    await pipeline.reply(ANN, "Hello?")

    await poll_until(lambda: count_attempts(pipeline), lambda count: count == 3)
    assert [attempt.headers.get("X-Shop") for attempt in pipeline.sink.requests].count("7") == 1


async def count_sends(between: OperatorProxy) -> int:
    return between.sends


async def count_attempts(pipeline: PipelineHarness) -> int:
    return len(pipeline.sink.requests)


def read_template_statuses(connection: Connection) -> list[str]:
    return list(connection.execute(select(templates.c.status)).scalars())


def count_template_fetches(connection: Connection) -> int:
    refs = connection.execute(select(queue_jobs.c.ref)).scalars()
    return sum(ref.startswith(SubjectKind.TEMPLATE_REFRESH.prefix) for ref in refs)


def delete_operator_accounts(connection: Connection) -> None:
    connection.execute(delete(operator_accounts))


def read_defects_and_states(connection: Connection) -> list[tuple[int, int]]:
    rows = connection.execute(select(queue_jobs.c.defects, queue_jobs.c.state)).all()
    return [(row.defects, row.state) for row in rows]
