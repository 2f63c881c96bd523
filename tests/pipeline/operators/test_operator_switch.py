"""An app is switched from one operator to another while it is used: nothing is lost, nothing doubled."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import ACCOUNT, ANN, APP, BEN, OPERATOR, PARTNER, is_event
from tests.support.media_samples import sample
from tests.support.operator_proxy import Between
from tests.support.pipeline import PipelineHarness
from tests.support.second_operator import CLOUD, NAMESPACE, NUMBER_ID, WABA_ID, SecondOperator, administer, switch
from tests.support.waiting import patiently
from waypost.store.apps.operator_history import may_have_sent_through
from waypost.store.directory import DIRECTORY_CACHE_MS

StandUp = Callable[..., Awaitable[SecondOperator]]


@pytest.fixture
async def stand_up() -> AsyncIterator[StandUp]:
    """Opens a second operator beside a pipeline; it is closed at the end."""
    async with AsyncExitStack() as at_end:

        async def stand_up(pipeline: PipelineHarness, **ids: str) -> SecondOperator:
            operator = SecondOperator(pipeline, **ids)
            await operator.open()
            at_end.push_async_callback(operator.close)
            return operator

        yield stand_up


@pytest.fixture
async def cloud(pipeline: PipelineHarness, stand_up: StandUp) -> SecondOperator:
    """A second operator beside the street's own."""
    return await stand_up(pipeline)


async def test_every_message_goes_out_once_while_its_app_is_switched(
    make_pipeline: MakePipeline, stand_up: StandUp
) -> None:
    """Sending never stops; what is on its way ends here or there, and each is called back."""
    pipeline = await make_pipeline(changes={"per_second": 1000}, simulator_changes={"limits": False})
    cloud = await stand_up(pipeline)
    template_id = await pipeline.approved_template()
    await cloud.seed_greeting()
    sent: list[str] = []
    done = asyncio.Event()

    async def keep_sending() -> None:
        while not done.is_set():
            sent.append(await pipeline.send(template_id, to=f"1555200{len(sent):04d}"))

    async with asyncio.TaskGroup() as group:
        group.create_task(keep_sending())
        await patiently(lambda: _lengthening(sent), lambda length: length >= 20)
        there = await cloud.switch()
        at_switch = len(sent)
        await patiently(lambda: _lengthening(sent), lambda length: length >= at_switch + 20)
        await patiently(lambda: cloud.control("GET", "deliveries"), lambda told: told["deliveries"])
        back = await cloud.switch_back()
        at_return = len(sent)
        await patiently(lambda: _lengthening(sent), lambda length: length >= at_return + 20)
        done.set()
    for message_id in sent:
        await pipeline.events_of(message_id, until="delivered")

    taken = {one: [await pipeline.deliveries(one), await cloud.deliveries(one)] for one in sent}
    assert (there.status, back.status) == (200, 200)
    assert [one for one in sent if sum(map(len, taken[one])) != 1] == []
    assert any(taken[one][1] for one in sent)
    assert not taken[sent[-1]][1]


async def test_late_statuses_of_the_operator_that_was_left_still_count(
    make_pipeline: MakePipeline, stand_up: StandUp
) -> None:
    between = Between()
    pipeline = await make_pipeline(between=between)
    cloud = await stand_up(pipeline)
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


async def test_app_that_is_connected_to_another_operators_business_account_still_hears_of_before(
    make_pipeline: MakePipeline, stand_up: StandUp
) -> None:
    """The longer way: another business account, with templates of its own."""
    between = Between()
    pipeline = await make_pipeline(between=between)
    cloud = await stand_up(pipeline)
    made = {"id": WABA_ID, "partner_id": PARTNER.id, "operator_account_id": CLOUD.id}
    await administer(pipeline, "POST", "/admin/business-accounts", made)
    await pipeline.open_window()
    between.let_webhooks_pass = False
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="enqueued")

    connection = {"phone_number": APP.phone_number, "phone_number_id": cloud.number_id, "business_account_id": WABA_ID}
    answer = await administer(pipeline, "POST", f"/admin/apps/{APP.id}/connect", connection)
    between.let_webhooks_pass = True
    await pipeline.control("POST", f"accounts/{ACCOUNT.id}/retry", {})

    events = await pipeline.events_of(message_id, until="delivered")
    assert answer.status == 200
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def test_reply_to_a_message_of_before_arrives_through_the_operator_that_was_left(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """Its picture is fetched from there too, whoever carries the app today."""
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    [delivery] = await pipeline.deliveries(message_id)
    await cloud.switch()

    told = await pipeline.control(
        "POST",
        f"phones/{ANN}/messages",
        {"to": APP.phone_number, "type": "image", "context_id": delivery["wamid"], "media": _png()},
    )

    callback = await pipeline.wait_for_callback(is_event("message", id=told["wamid"]))
    url = callback["payload"]["payload"]["url"]
    async with pipeline.http.get(url) as answer:
        content = await answer.read()
    assert callback["payload"]["context"]["gsId"] == message_id
    assert content == sample("png")


async def test_operator_that_was_left_says_nothing_of_what_was_accepted_since(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    await cloud.switch()
    left_ms = pipeline.clock.now_ms() + DIRECTORY_CACHE_MS

    read = pipeline.waypost.database.read
    before = await read(may_have_sent_through, APP.id, OPERATOR.id, left_ms - DIRECTORY_CACHE_MS)
    after = await read(may_have_sent_through, APP.id, OPERATOR.id, left_ms + 1)
    never = await read(may_have_sent_through, APP.id, "another", 0)

    assert (before, after, never) == (True, False, False)


async def test_switch_takes_the_ids_of_the_new_operator_and_keeps_those_of_the_old(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """The number is found by its digits; the way back needs no id at all."""
    there = await cloud.switch()
    back = await cloud.switch_back()
    again = await switch(pipeline, CLOUD.id)

    assert there.body["business_account_id"] == WABA_ID
    assert there.body["namespace"] == NAMESPACE
    assert there.body["left"] == OPERATOR.id
    assert [app["phone_number_id"] for app in there.body["apps"]] == [NUMBER_ID]
    assert there.body["callback_url"] == f"{pipeline.service_url}/operator/webhook/{CLOUD.id}"
    assert back.body["business_account_id"] == ACCOUNT.id
    assert [app["phone_number_id"] for app in back.body["apps"]] == [APP.phone_number_id]
    assert again.body["business_account_id"] == WABA_ID


async def test_medium_is_uploaded_to_each_operator_even_where_both_call_the_number_alike(
    pipeline: PipelineHarness, stand_up: StandUp
) -> None:
    cloud = await stand_up(pipeline, waba_id=ACCOUNT.id, number_id=APP.phone_number_id)
    await pipeline.open_window()
    await cloud.open_window()
    media_id = await pipeline.upload(sample("png"), "image/png")
    message = {"type": "image", "id": media_id}
    first = await pipeline.send_session(message)
    await pipeline.events_of(first, until="delivered")

    await cloud.switch()
    second = await pipeline.send_session(message)
    events = await pipeline.events_of(second, until="delivered")

    kept = await cloud.control("GET", "media")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]
    assert len(kept["media"]) == 1


async def test_template_that_both_operators_have_is_sent_through_either(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """It keeps our id; the other operator's is found by name and language."""
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


async def test_template_that_the_new_operator_lacks_is_told_and_handed_in_when_wished(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    template_id = await pipeline.approved_template()

    told = await cloud.switch()
    missing = await cloud.control("GET", "templates")
    wished = await switch(pipeline, CLOUD.id, submit_templates=True)
    await patiently(lambda: cloud.control("GET", "templates"), lambda listed: len(listed["templates"]) == 1)
    await pipeline.sink.wait_until(
        lambda: (
            [_status(one) for one in pipeline.callbacks if _is_of_template(one, template_id)]
            == ["approved", "pending", "approved"]
        )
    )

    assert [one["id"] for one in told.body["templates_missing"]] == [template_id]
    assert missing["templates"] == []
    assert wished.body["templates_submitted"] == 1
    assert wished.body["templates_missing"] == []


async def test_template_deleted_before_a_switch_is_not_deleted_at_the_new_operator(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    """Its deletion was waiting for an operator that was away."""
    await pipeline.approved_template()
    await cloud.seed_greeting()
    await pipeline.close_operator()
    deleted = await pipeline.ask(
        "DELETE", f"/partner/app/{APP.id}/template/greeting", headers={"Authorization": pipeline.app_token}
    )

    await cloud.switch()

    await patiently(pipeline.queue_depths, lambda queues: not any(queues["outbound"].values()))
    kept = await cloud.control("GET", "templates")
    assert deleted.status == 200
    assert [one["name"] for one in kept["templates"]] == ["greeting"]


async def test_switch_is_refused_with_what_the_operator_has_when_a_number_is_not_there(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    answer = await cloud.switch(phone_number_id="999")

    assert answer.status == 400
    assert f"{NUMBER_ID} (+{APP.phone_number})" in answer.body["message"]
    assert await carrier(pipeline) == OPERATOR.id


async def test_switch_that_would_give_two_apps_one_number_is_refused_and_changes_nothing(
    pipeline: PipelineHarness, cloud: SecondOperator
) -> None:
    second = {"name": "Second", "phone_number": "15550009999", "phone_number_id": "777"}
    owner = {"partner_id": PARTNER.id, "business_account_id": ACCOUNT.id}
    await administer(pipeline, "POST", "/admin/apps", second | owner)
    there = {"waba_id": cloud.waba_id, "phone_number": "15550009999", "name": "Second"}
    await cloud.control("PUT", "numbers/6000000000000012", there)

    answer = await cloud.switch(phone_number_id="6000000000000012")

    assert answer.status == 409
    assert "another app of the same business account" in answer.body["message"]
    assert await carrier(pipeline) == OPERATOR.id


async def test_switch_to_an_operator_that_is_away_changes_nothing(pipeline: PipelineHarness) -> None:
    cloud = SecondOperator(pipeline)
    await cloud.open()
    await cloud.close()

    answer = await cloud.switch()

    assert answer.status == 503
    assert await carrier(pipeline) == OPERATOR.id


@pytest.mark.parametrize(
    ("wish", "status", "words"),
    [
        ({"operator_account_id": "nobody"}, 404, "must name an operator account"),
        ({"operator_account_id": 7}, 400, "The body"),
        ({"operator_account_id": OPERATOR.id, "phone_number_id": "2000000000000002"}, 409, "operator account main"),
    ],
)
async def test_switch_that_makes_no_sense_is_refused_with_the_reason(
    pipeline: PipelineHarness, wish: dict[str, object], status: int, words: str
) -> None:
    answer = await administer(pipeline, "PUT", f"/admin/apps/{APP.id}/operator", wish)

    assert answer.status == status
    assert words in answer.body["message"]


async def carrier(pipeline: PipelineHarness) -> str:
    """The operator account that carries the street's app."""
    listed = await administer(pipeline, "GET", "/admin/operator-accounts")
    [found] = [
        one["id"]
        for one in listed.body["operator_accounts"]
        for owner in one["business_accounts"]
        for app in owner["apps"]
        if app["id"] == APP.id
    ]
    return found


async def _lengthening(sent: list[str]) -> int:
    return len(sent)


def _png() -> dict[str, str]:
    content = base64.b64encode(sample("png")).decode()
    return {"content": content, "mime_type": "image/png"}


def _is_of_template(callback: dict[str, Any], template_id: str) -> bool:
    return callback["type"] == "template-event" and callback["payload"]["id"] == template_id


def _status(callback: dict[str, Any]) -> str:
    return callback["payload"].get("status", "")
