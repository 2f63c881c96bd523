"""A request whose response was lost is not carried out a second time under its key: groups and refunds."""

from typing import Any

from tests.pipeline.messages.test_orders import CONFIGURATION, REFUND, call, log_in, pay, send_order
from tests.support.builders import APP
from tests.support.callback_assertions import operator_id_of
from tests.support.pipeline import PipelineHarness

GROUP = {"messaging_product": "whatsapp", "subject": "Tea"}


async def test_group_that_may_exist_is_not_created_again(pipeline: PipelineHarness) -> None:
    await lose_response(pipeline, "groups.create")
    lost = await send(pipeline, "/group", pipeline.app_token, GROUP)

    again = await send(pipeline, "/group", pipeline.app_token, GROUP)

    assert (lost[0], again[0]) == (503, 409)
    assert "list the groups" in again[1]["message"]
    assert len((await pipeline.control("GET", "groups"))["groups"]) == 1


async def test_group_that_was_not_created_is_created_by_the_same_request(pipeline: PipelineHarness) -> None:
    await lose_response(pipeline, "groups.create", "before")
    lost = await send(pipeline, "/group", pipeline.app_token, GROUP)

    again = await send(pipeline, "/group", pipeline.app_token, GROUP)

    assert (lost[0], again[0]) == (503, 200)
    assert len((await pipeline.control("GET", "groups"))["groups"]) == 1


async def test_refund_that_may_have_been_made_is_not_made_again(pipeline: PipelineHarness) -> None:
    token = await log_in(pipeline)
    await call(pipeline, "POST", "/payment/configuration", pipeline.app_token, CONFIGURATION)
    await pay(pipeline, await operator_id_of(pipeline, await send_order(pipeline)))
    await lose_response(pipeline, "payments.refund")
    lost = await send(pipeline, "/payments/refund", token, REFUND)

    again = await send(pipeline, "/payments/refund", token, REFUND)

    assert (lost[0], again[0]) == (503, 409)
    assert "look it up" in again[1]["message"]
    [payment] = (await call(pipeline, "GET", "/payments/shop/order-7", token))["payments"]
    assert len(payment["transactions"][0]["refunds"]) == 1


async def lose_response(pipeline: PipelineHarness, name: str, moment: str = "after") -> None:
    """Make the operator break the connection of the next call, before or after it is carried out."""
    fault = {"on": "call", "call": name, "what": {"reset": moment}, "when": {"next": 1}}
    await pipeline.control("POST", "faults", {"faults": [fault]})


async def send(pipeline: PipelineHarness, path: str, token: str, body: Any) -> tuple[int, Any]:
    """Send a request with an idempotency key, and return status and body."""
    headers = {"Authorization": token, "Idempotency-Key": "first"}
    url = f"{pipeline.service_url}/partner/app/{APP.id}{path}"
    async with pipeline.http.post(url, headers=headers, json=body) as response:
        return response.status, await response.json()
