"""Orders that a partner sends in the operator's words, and the payments of a phone."""

from typing import Any, Final

from tests.support.both_versions import is_told_as_delivered, operator_id_of
from tests.support.builders import ANN
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import ThirdVersion

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
    "body": {"text": "News of your order"},
    "action": {
        "name": "review_order",
        "parameters": {"reference_id": "order-7", "order": {"status": "shipped", "description": "On its way"}},
    },
}


async def test_order_is_seen_paid_and_told_in_version_3(pipeline: PipelineHarness, third: ThirdVersion) -> None:
    order_id = await ordered(pipeline)
    operator_id = await operator_id_of(pipeline, order_id)

    failed = await pay(pipeline, operator_id, status="failed", reason="payment_cancelled")
    paid = await pay(pipeline, operator_id)

    first = await third.status(order_id, "failed")
    last = await third.status(order_id, "captured")
    assert is_of_payment(first) == is_of_payment(last) == (operator_id, order_id, ANN, "payment")
    assert [one["payment"]["transaction"]["id"] for one in (first, last)] == [failed, paid]
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
    await is_told_as_delivered(pipeline, third, order_id, kind="session")


async def test_payment_leaves_the_message_where_it_is_and_is_in_its_trace(
    pipeline: PipelineHarness, third: ThirdVersion
) -> None:
    order_id = await ordered(pipeline)

    await pay(pipeline, await operator_id_of(pipeline, order_id), status="failed")
    await third.status(order_id, "failed")

    trace = await pipeline.trace(order_id)
    assert trace["state"] == "delivered"
    told = [step for step in trace["news"] if step["news"] == "payment"]
    assert [step["detail"] for step in told] == ["failed"]
    second = [one for one in pipeline.callbacks if one["type"] == "message-event"]
    assert {one["payload"]["type"] for one in second} == {"enqueued", "sent", "delivered"}


async def test_status_of_an_order_is_seen_on_the_phone(pipeline: PipelineHarness, third: ThirdVersion) -> None:
    await ordered(pipeline)

    status_id = await pipeline.send_passthrough(type="interactive", interactive=SHIPPED)

    shown = await pipeline.shown(status_id)
    assert (shown["text"], shown["interactive"]) == ("News of your order", SHIPPED)
    assert shown["buttons"] == []
    await is_told_as_delivered(pipeline, third, status_id, kind="session")


async def ordered(pipeline: PipelineHarness) -> str:
    """Our id of an order that is on the phone."""
    await pipeline.open_window()
    order_id = await pipeline.send_passthrough(type="interactive", interactive=ORDER)
    await pipeline.events_of(order_id, until="delivered")
    return order_id


async def pay(pipeline: PipelineHarness, operator_id: str, **wish: str) -> str:
    """Have the phone pay an order; gives the transaction's id."""
    body = {"message_id": operator_id, **wish}
    answer = await pipeline.control("POST", f"phones/{ANN}/pay", body)
    return str(answer["payment"]["transaction_id"])


def is_of_payment(status: dict[str, Any]) -> tuple[str, str, str, str]:
    """Whose payment it is."""
    return status["id"], status["gs_id"], status["recipient_id"], status["type"]
