"""An app is switched from one operator to another while it is used: nothing is lost or duplicated."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import ACCOUNT, ANN, APP, BEN, OPERATOR, PARTNER, is_event
from tests.support.media_samples import sample
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.second_operator import (
    CLOUD,
    NAMESPACE,
    NUMBER_ID,
    WABA_ID,
    SecondOperator,
    send_admin_request,
    switch_operator,
)
from waypost.store.apps.operator_history import may_have_sent_through
from waypost.store.directory import DIRECTORY_CACHE_MS

OpenOperator = Callable[..., Awaitable[SecondOperator]]


@pytest.fixture
async def open_second_operator() -> AsyncIterator[OpenOperator]:
    """Open a second operator beside a pipeline; close it at the end."""
    async with AsyncExitStack() as stack:

        async def open_operator(pipeline: PipelineHarness, **ids: str) -> SecondOperator:
            operator = SecondOperator(pipeline, **ids)
            await operator.open()
            stack.push_async_callback(operator.close)
            return operator

        yield open_operator


@pytest.fixture
async def cloud(pipeline: PipelineHarness, open_second_operator: OpenOperator) -> SecondOperator:
    """Open a second operator beside the simulator of the pipeline."""
    return await open_second_operator(pipeline)


async def test_every_message_is_sent_once_while_its_app_is_switched(
    make_pipeline: MakePipeline, open_second_operator: OpenOperator
) -> None:
    """Sending never stops; each message is sent by one of the two operators, and called back."""
    pipeline = await make_pipeline(changes={"per_second": 1000}, simulator_changes={"limits": False})
    cloud = await open_second_operator(pipeline)
    template_id = await pipeline.approved_template()
    await cloud.seed_greeting()
    sent: list[str] = []
    done = asyncio.Event()

    async def keep_sending() -> None:
        while not done.is_set():
            sent.append(await pipeline.send(template_id, to=f"1555200{len(sent):04d}"))

    async with asyncio.TaskGroup() as group:
        group.create_task(keep_sending())
        await poll_until(lambda: _count(sent), lambda length: length >= 20)
        there = await cloud.switch()
        at_switch = len(sent)
        await poll_until(lambda: _count(sent), lambda length: length >= at_switch + 20)
        await poll_until(lambda: cloud.control("GET", "deliveries"), lambda listed: listed["deliveries"])
        back = await cloud.switch_back()
        at_return = len(sent)
        await poll_until(lambda: _count(sent), lambda length: length >= at_return + 20)
        done.set()
    for message_id in sent:
        await pipeline.events_of(message_id, until="delivered")

    deliveries = {
        message_id: [await pipeline.deliveries(message_id), await cloud.deliveries(message_id)] for message_id in sent
    }
    assert (there.status, back.status) == (200, 200)
    assert [message_id for message_id in sent if sum(map(len, deliveries[message_id])) != 1] == []
    assert any(deliveries[message_id][1] for message_id in sent)
    assert not deliveries[sent[-1]][1]


async def test_late_statuses_of_the_previous_operator_are_applied(
    make_pipeline: MakePipeline, open_second_operator: OpenOperator
) -> None:
    between = OperatorProxy()
    pipeline = await make_pipeline(operator_proxy=between)
    cloud = await open_second_operator(pipeline)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="enqueued")

    await cloud.switch()
    between.let_webhooks_pass = True
    await pipeline.control("POST", f"accounts/{ACCOUNT.id}/retry", {})

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(await pipeline.deliveries(message_id)) == 1
    assert await cloud.deliveries(message_id) == []


async def test_app_connected_to_another_operators_business_account_gets_statuses_of_earlier_messages(
    make_pipeline: MakePipeline, open_second_operator: OpenOperator
) -> None:
    """The new business account has templates of its own."""
    between = OperatorProxy()
    pipeline = await make_pipeline(operator_proxy=between)
    cloud = await open_second_operator(pipeline)
    account = {"id": WABA_ID, "partner_id": PARTNER.id, "operator_account_id": CLOUD.id}
    await send_admin_request(pipeline, "POST", "/admin/business-accounts", account)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="enqueued")

    connection = {"phone_number": APP.phone_number, "phone_number_id": cloud.number_id, "business_account_id": WABA_ID}
    response = await send_admin_request(pipeline, "POST", f"/admin/apps/{APP.id}/connect", connection)
    between.let_webhooks_pass = True
    await pipeline.control("POST", f"accounts/{ACCOUNT.id}/retry", {})

    events = await pipeline.events_of(message_id, until="delivered")
    assert response.status == 200
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def test_reply_to_an_earlier_message_is_received_through_the_previous_operator(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """Its image is fetched from there too, although another operator has the app now."""
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    [delivery] = await pipeline.deliveries(message_id)
    await cloud.switch()

    inbound = await pipeline.control(
        "POST",
        f"phones/{ANN}/messages",
        {"to": APP.phone_number, "type": "image", "context_id": delivery["wamid"], "media": _png()},
    )

    callback = await pipeline.wait_for_callback(is_event("message", id=inbound["wamid"]))
    url = callback["payload"]["payload"]["url"]
    async with pipeline.http.get(url) as response:
        content = await response.read()
    assert callback["payload"]["context"]["gsId"] == message_id
    assert content == sample("png")


async def test_previous_operator_cannot_have_sent_messages_accepted_after_the_switch(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    await cloud.switch()
    left_ms = pipeline.clock.now_ms() + DIRECTORY_CACHE_MS

    read = pipeline.waypost.database.read
    before = await read(may_have_sent_through, APP.id, OPERATOR.id, left_ms - DIRECTORY_CACHE_MS)
    after = await read(may_have_sent_through, APP.id, OPERATOR.id, left_ms + 1)
    never = await read(may_have_sent_through, APP.id, "another", 0)

    assert (before, after, never) == (True, False, False)


async def test_switch_uses_the_ids_of_the_new_operator_and_keeps_those_of_the_previous_one(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """The number is found by its digits; to switch back no id is needed."""
    there = await cloud.switch()
    back = await cloud.switch_back()
    again = await switch_operator(pipeline, CLOUD.id)

    assert there.body["business_account_id"] == WABA_ID
    assert there.body["namespace"] == NAMESPACE
    assert there.body["left"] == OPERATOR.id
    assert [app["phone_number_id"] for app in there.body["apps"]] == [NUMBER_ID]
    assert there.body["callback_url"] == f"{pipeline.service_url}/operator/webhook/{CLOUD.id}"
    assert back.body["business_account_id"] == ACCOUNT.id
    assert [app["phone_number_id"] for app in back.body["apps"]] == [APP.phone_number_id]
    assert again.body["business_account_id"] == WABA_ID


async def test_medium_is_uploaded_to_each_operator_even_if_both_have_the_same_number_id(
    pipeline: PipelineHarness, open_second_operator: OpenOperator
) -> None:
    cloud = await open_second_operator(pipeline, waba_id=ACCOUNT.id, number_id=APP.phone_number_id)
    await pipeline.open_window()
    await cloud.open_window()
    media_id = await pipeline.upload(sample("png"), "image/png")
    message = {"type": "image", "id": media_id}
    first = await pipeline.send_session(message)
    await pipeline.events_of(first, until="delivered")

    await cloud.switch()
    second = await pipeline.send_session(message)
    events = await pipeline.events_of(second, until="delivered")

    listed = await cloud.control("GET", "media")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(listed["media"]) == 1


async def test_template_that_both_operators_have_is_sent_through_either(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """It keeps our id; the other operator's id is found by name and language."""
    template_id = await pipeline.approved_template()
    await cloud.seed_greeting()

    there = await cloud.switch()
    sent_there = await pipeline.send(template_id)
    await pipeline.events_of(sent_there, until="delivered")
    back = await cloud.switch_back()
    sent_here = await pipeline.send(template_id, to=BEN)
    await pipeline.events_of(sent_here, until="delivered")

    assert there.body["templates_missing"] == back.body["templates_missing"] == []
    assert len(await cloud.deliveries(sent_there)) == 1
    assert len(await pipeline.deliveries(sent_here)) == 1


async def test_template_that_the_new_operator_lacks_is_reported_and_submitted_on_request(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    template_id = await pipeline.approved_template()

    switched = await cloud.switch()
    missing = await cloud.control("GET", "templates")
    submitted = await switch_operator(pipeline, CLOUD.id, submit_templates=True)
    await poll_until(lambda: cloud.control("GET", "templates"), lambda listed: len(listed["templates"]) == 1)
    await pipeline.sink.wait_until(
        lambda: (
            [_status(callback) for callback in pipeline.callbacks if _is_template_event(callback, template_id)]
            == ["approved", "pending", "approved"]
        )
    )

    assert [template["id"] for template in switched.body["templates_missing"]] == [template_id]
    assert missing["templates"] == []
    assert submitted.body["templates_submitted"] == 1
    assert submitted.body["templates_missing"] == []


async def test_template_deleted_before_a_switch_is_not_deleted_at_the_new_operator(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """Its deletion was waiting for an operator that was down."""
    await pipeline.approved_template()
    await cloud.seed_greeting()
    await pipeline.close_operator()
    deleted = await pipeline.send_request(
        "DELETE", f"/partner/app/{APP.id}/template/greeting", headers={"Authorization": pipeline.app_token}
    )

    await cloud.switch()

    await poll_until(pipeline.queue_depths, lambda queues: not any(queues["outbound"].values()))
    listed = await cloud.control("GET", "templates")
    assert deleted.status == 200
    assert [template["name"] for template in listed["templates"]] == ["greeting"]


async def test_switch_error_lists_the_numbers_of_the_operator_when_a_number_is_missing(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    response = await cloud.switch(phone_number_id="999")

    assert response.status == 400
    assert f"{NUMBER_ID} (+{APP.phone_number})" in response.body["message"]
    assert await read_operator_of_app(pipeline) == OPERATOR.id


async def test_switch_that_would_give_two_apps_one_number_gets_an_error_and_changes_nothing(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    second = {"name": "Second", "phone_number": "15550009999", "phone_number_id": "777"}
    owner = {"partner_id": PARTNER.id, "business_account_id": ACCOUNT.id}
    await send_admin_request(pipeline, "POST", "/admin/apps", second | owner)
    there = {"waba_id": cloud.waba_id, "phone_number": "15550009999", "name": "Second"}
    await cloud.control("PUT", "numbers/6000000000000012", there)

    response = await cloud.switch(phone_number_id="6000000000000012")

    assert response.status == 409
    assert "another app of the same business account" in response.body["message"]
    assert await read_operator_of_app(pipeline) == OPERATOR.id


async def test_switch_to_an_unreachable_operator_changes_nothing(pipeline: PipelineHarness) -> None:
    cloud = SecondOperator(pipeline)
    await cloud.open()
    await cloud.close()

    response = await cloud.switch()

    assert response.status == 503
    assert await read_operator_of_app(pipeline) == OPERATOR.id


async def test_dry_run_reports_what_a_switch_would_do_and_changes_nothing(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    await pipeline.approved_template()
    before = await send_admin_request(pipeline, "GET", "/admin/operator-accounts")

    preview = await cloud.switch(dry_run=True)
    with_submission = await cloud.switch(dry_run=True, submit_templates=True)
    after = await send_admin_request(pipeline, "GET", "/admin/operator-accounts")
    checks = await send_admin_request(pipeline, "GET", f"/admin/doctor?operator_account_id={CLOUD.id}")
    switched = await cloud.switch()

    assert preview.status == 200, preview.body
    assert preview.body == switched.body
    assert [template["element_name"] for template in preview.body["templates_missing"]] == ["greeting"]
    assert (with_submission.body["templates_missing"], with_submission.body["templates_submitted"]) == ([], 1)
    assert after.body == before.body
    assert {result["subject"].partition(":")[0] for result in checks.body["results"]} == {CLOUD.id}
    unknown = await send_admin_request(pipeline, "GET", "/admin/doctor?operator_account_id=nobody")
    assert unknown.status == 404


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"operator_account_id": "nobody"}, 404, "There is no operator account nobody."),
        ({"operator_account_id": 7}, 400, "The body"),
        ({"operator_account_id": OPERATOR.id, "phone_number_id": "2000000000000002"}, 409, "operator account main"),
    ],
)
async def test_invalid_switch_gets_an_error_with_the_reason(
    pipeline: PipelineHarness, change: dict[str, object], status: int, error: str
) -> None:
    response = await send_admin_request(pipeline, "PUT", f"/admin/apps/{APP.id}/operator", change)

    assert response.status == status
    assert error in response.body["message"]


async def read_operator_of_app(pipeline: PipelineHarness) -> str:
    """Return the id of the operator account that the app is sent through."""
    listed = await send_admin_request(pipeline, "GET", "/admin/operator-accounts")
    [account_id] = [
        account["id"]
        for account in listed.body["operator_accounts"]
        for owner in account["business_accounts"]
        for app in owner["apps"]
        if app["id"] == APP.id
    ]
    return account_id


async def _count(sent: list[str]) -> int:
    return len(sent)


def _png() -> dict[str, str]:
    content = base64.b64encode(sample("png")).decode()
    return {"content": content, "mime_type": "image/png"}


def _is_template_event(callback: dict[str, Any], template_id: str) -> bool:
    return callback["type"] == "template-event" and callback["payload"]["id"] == template_id


def _status(callback: dict[str, Any]) -> str:
    return callback["payload"].get("status", "")
