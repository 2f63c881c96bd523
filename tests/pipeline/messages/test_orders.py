"""Orders that a partner sends as passthrough messages, and their payments by a phone."""

import json
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP, PARTNER
from tests.support.callback_assertions import assert_delivery_callbacks, operator_id_of
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver, value_of
from waypost.base.encryption import hash_secret
from waypost.store.accounts.credentials import CredentialKind, add_credential

CLIENT_SECRET: Final = "c0de" * 16
CONFIGURATION: Final = {"configuration_name": "shop", "provider_name": "razorpay"}
REFUND: Final = {
    "reference_id": "order-7",
    "payment_config_id": "shop",
    "amount": {"currency": "INR", "value": 4000, "offset": 100},
}
TOTAL: Final = {"value": 24000, "offset": 100}
ORDER: Final[dict[str, Any]] = {
    "type": "order_details",
    "body": {"text": "Your order"},
    "footer": {"text": "Acme"},
    "action": {
        "name": "review_and_pay",
        "parameters": {
            "reference_id": "order-7",
            "type": "physical-goods",
            "payment_settings": [
                {"type": "payment_gateway", "payment_gateway": {"type": "razorpay", "configuration_name": "shop"}}
            ],
            "currency": "INR",
            "total_amount": TOTAL,
            "order": {
                "status": "pending",
                "items": [
                    {"retailer_id": "tea-1", "name": "Sencha", "amount": {"value": 12000, "offset": 100}, "quantity": 2}
                ],
                "subtotal": TOTAL,
            },
        },
    },
}
SHIPPED: Final[dict[str, Any]] = {
    "type": "order_status",
    "body": {"text": "Your order was shipped"},
    "action": {
        "name": "review_order",
        "parameters": {"reference_id": "order-7", "order": {"status": "shipped", "description": "On its way"}},
    },
}


@pytest.mark.holds("event-69", "event-70")
async def test_order_is_paid_refunded_and_completed_through_the_partner_api(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    """The whole way of a payment: configuration, order, payment, look-up, refund, order status."""
    app_token, partner_token = pipeline.app_token, await log_in(pipeline)
    created = await call(pipeline, "POST", "/payment/configuration", app_token, CONFIGURATION)
    async with pipeline.http.get(created["oauth_url"]) as opened:
        assert opened.status == 200
    listed = await call(pipeline, "GET", "/payment/configurations", app_token)
    changed = await receiver_v3.change("payment_configuration_update")
    order_id = await send_order(pipeline)
    paid = await pay(pipeline, await operator_id_of(pipeline, order_id))
    captured = await receiver_v3.status(order_id, "captured")
    refund = await call(pipeline, "POST", "/payments/refund", partner_token, REFUND)
    looked_up = await call(pipeline, "GET", "/payments/shop/order-7", partner_token)
    [refunded, *_] = await receiver_v3.sink.wait_for(lambda callback: '"refunds"' in json.dumps(callback))
    status_id = await pipeline.send_passthrough(to=ANN, type="interactive", interactive=SHIPPED)
    await receiver_v3.status(status_id, "delivered")

    [page] = listed["data"]
    assert [item["status"] for item in page["payment_configurations"]] == ["Active"]
    assert value_of(changed)["status"] == "Active"
    assert captured["payment"]["transaction"]["id"] == paid
    assert refund["status"] == "pending"
    [payment] = looked_up["payments"]
    assert (payment["status"], payment["reference_id"], payment["currency"]) == ("CAPTURED", "order-7", "INR")
    [transaction] = payment["transactions"]
    [status] = value_of(refunded)["statuses"]
    assert (status["gs_id"], status["type"], status["status"]) == (order_id, "payment", "captured")
    assert status["payment"]["transaction"] == transaction
    assert [(item["id"], item["amount"]["value"]) for item in transaction["refunds"]] == [(refund["id"], 4000)]


async def log_in(pipeline: PipelineHarness) -> str:
    """Return a partner token."""
    secret = hash_secret(CLIENT_SECRET)
    kind = CredentialKind.CLIENT_SECRET
    await pipeline.waypost.database.write(add_credential, kind, PARTNER.id, secret, pipeline.clock.now_ms())
    form = {"email": PARTNER.email, "password": CLIENT_SECRET}
    response = await pipeline.send_request("POST", "/partner/account/login", form)
    assert response.status == 200, response
    return response.body["token"]


async def call(pipeline: PipelineHarness, method: str, path: str, token: str, body: Any = None) -> Any:
    """Make a call of the partner API with a JSON body, and return the response, which must be a success."""
    url = f"{pipeline.service_url}/partner/app/{APP.id}{path}"
    async with pipeline.http.request(method, url, headers={"Authorization": token}, json=body) as response:
        content = await response.json()
        assert response.status == 200, content
        return content


async def test_order_is_shown_paid_and_called_back_in_version_3(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    order_id = await send_order(pipeline)
    operator_id = await operator_id_of(pipeline, order_id)

    failed = await pay(pipeline, operator_id, status="failed", reason="payment_cancelled")
    paid = await pay(pipeline, operator_id)

    first = await receiver_v3.status(order_id, "failed")
    last = await receiver_v3.status(order_id, "captured")
    assert read_payment_owner(first) == read_payment_owner(last) == (operator_id, order_id, ANN, "payment")
    assert [status["payment"]["transaction"]["id"] for status in (first, last)] == [failed, paid]
    transaction = first["payment"]["transaction"]
    assert transaction["status"] == "failed"
    assert transaction["error"]["reason"] == "payment_cancelled"
    assert last["payment"] == {
        "reference_id": "order-7",
        "amount": TOTAL,
        "currency": "INR",
        "transaction": {
            "id": paid,
            "type": "razorpay",
            "status": "success",
            "created_timestamp": int(last["timestamp"]),
            "updated_timestamp": int(last["timestamp"]),
            "amount": TOTAL,
            "currency": "INR",
        },
    }
    await assert_delivery_callbacks(pipeline, receiver_v3, order_id, kind="session")


async def test_payment_does_not_change_the_state_of_its_message_and_is_in_its_trace(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    order_id = await send_order(pipeline)

    await pay(pipeline, await operator_id_of(pipeline, order_id), status="failed")
    await receiver_v3.status(order_id, "failed")

    trace = await pipeline.trace(order_id)
    assert trace["state"] == "delivered"
    payment_steps = [step for step in trace["events"] if step["event"] == "payment"]
    assert [step["detail"] for step in payment_steps] == ["failed"]
    events = [callback for callback in pipeline.callbacks if callback["type"] == "message-event"]
    assert {event["payload"]["type"] for event in events} == {"enqueued", "sent", "delivered"}


async def test_status_of_an_order_is_shown_on_the_phone(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    await send_order(pipeline)

    status_id = await pipeline.send_passthrough(type="interactive", interactive=SHIPPED)

    shown = await pipeline.visible_message(status_id)
    assert (shown["text"], shown["interactive"]) == ("Your order was shipped", SHIPPED)
    assert shown["buttons"] == []
    await assert_delivery_callbacks(pipeline, receiver_v3, status_id, kind="session")


async def send_order(pipeline: PipelineHarness) -> str:
    """Send an order; return our id of it once it is delivered."""
    await pipeline.open_window()
    order_id = await pipeline.send_passthrough(type="interactive", interactive=ORDER)
    await pipeline.events_of(order_id, until="delivered")
    return order_id


async def pay(pipeline: PipelineHarness, operator_id: str, **options: str) -> str:
    """Have the phone pay an order; return the transaction's id."""
    body = {"message_id": operator_id, **options}
    response = await pipeline.control("POST", f"phones/{ANN}/pay", body)
    return str(response["payment"]["transaction_id"])


def read_payment_owner(status: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return the ids, the recipient and the type of a payment status."""
    return status["id"], status["gs_id"], status["recipient_id"], status["type"]
