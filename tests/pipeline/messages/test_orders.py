"""Orders that a partner sends as passthrough messages, and their payments by a phone."""

from typing import Any, Final

from tests.support.builders import ANN
from tests.support.callback_assertions import assert_delivery_callbacks, operator_id_of
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

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
