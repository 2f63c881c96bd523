"""Orders that a business sends for review, and payments by phones."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench

JsonObject = dict[str, Any]


def amount(value: int) -> JsonObject:
    return {"value": value, "offset": 100}


ITEM: JsonObject = {"retailer_id": "tea-1", "name": "Sencha", "amount": amount(1200), "quantity": 2}
ORDER: JsonObject = {
    "status": "pending",
    "items": [ITEM, {"name": "Cup", "amount": amount(900), "sale_amount": amount(800), "quantity": 1}],
    "subtotal": amount(3200),
    "tax": amount(300),
    "shipping": amount(500),
    "discount": {**amount(100), "description": "Welcome"},
}  # fmt: skip
GATEWAY: JsonObject = {"type": "payment_gateway", "payment_gateway": {"type": "razorpay", "configuration_name": "shop"}}


def order_details(**changes: Any) -> JsonObject:
    parameters: JsonObject = {
        "reference_id": "order-7",
        "type": "physical-goods",
        "payment_settings": [GATEWAY],
        "currency": "INR",
        "total_amount": amount(3900),
        "order": ORDER,
    }
    parameters = {name: value for name, value in {**parameters, **changes}.items() if value is not None}  # fmt: skip
    action = {"name": "review_and_pay", "parameters": parameters}
    return {"type": "order_details", "body": {"text": "Your order"}, "action": action}


def order_status(**changes: Any) -> JsonObject:
    parameters: JsonObject = {
        "reference_id": "order-7",
        "order": {"status": "shipped", "description": "On its way"},
        **changes,
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    action = {"name": "review_order", "parameters": parameters}
    return {"type": "order_status", "body": {"text": "Order update"}, "action": action}


def order_with(**changes: Any) -> JsonObject:
    return {name: value for name, value in {**ORDER, **changes}.items() if value is not None}


def order_of_item(**changes: Any) -> JsonObject:
    """Return an order of one changed item, with the original subtotal of the item."""
    item = {name: value for name, value in {**ITEM, **changes}.items() if value is not None}
    return order_with(items=[item], subtotal=amount(2400))


def replace_action(interactive: JsonObject, **changes: Any) -> JsonObject:
    return {**interactive, "action": {**interactive["action"], **changes}}


# fmt: off
BAD: list[tuple[str, JsonObject, int]] = [  # Source: operator's page "Orders"
    # what                     interactive                                                   code
    ("no body",                {**order_details(), "body": None},                            100),
    ("another action",         replace_action(order_details(), name="review_order"),         131009),
    ("no parameters",          replace_action(order_details(), parameters=None),             100),
    ("no reference",           order_details(reference_id=None),                             100),
    ("long reference",         order_details(reference_id="x" * 36),                         131009),
    ("odd reference",          order_details(reference_id="order 7"),                        131009),
    ("no type",                order_details(type=None),                                     100),
    ("unknown type",           order_details(type="services"),                               131009),
    ("no currency",            order_details(currency=None),                                 100),
    ("odd currency",           order_details(currency="Rupees"),                             131009),
    ("no total",               order_details(total_amount=None),                             100),
    ("total of text",          order_details(total_amount={"value": "3900", "offset": 100}), 131009),
    ("total below zero",       order_details(total_amount=amount(-1)),                       131009),
    ("another offset",         order_details(total_amount={"value": 39, "offset": 1}),       131009),
    ("another total",          order_details(total_amount=amount(3901)),                     131009),
    ("settings of nothing",    order_details(payment_settings=[]),                           131009),
    ("settings of no type",    order_details(payment_settings=[{"payment_gateway": {}}]),    100),
    ("order that is paid",     order_details(order=order_with(status="completed")),          131009),
    ("order of nothing",       order_details(order=order_with(items=[])),                    100),
    ("no subtotal",            order_details(order=order_with(subtotal=None)),               100),
    ("another subtotal",       order_details(order=order_with(subtotal=amount(3201))),       131009),
    ("item without a name",    order_details(order=order_of_item(name=None)),                100),
    ("item of a long name",    order_details(order=order_of_item(name="x" * 61)),            131009),
    ("item without amount",    order_details(order=order_of_item(amount=None)),              100),
    ("item of no quantity",    order_details(order=order_of_item(quantity=None)),            100),
    ("half an item",           order_details(order=order_of_item(quantity=0.5)),             131009),
    ("none of an item",        order_details(order=order_of_item(quantity=0)),               131009),
    ("status of no order",     order_status(order=None),                                     100),
    ("status unknown",         order_status(order={"status": "lost"}),                       131009),
    ("long description",       order_status(order={"status": "shipped", "description": "x" * 121}), 131009),
    ("status by another",      replace_action(order_status(), name="review_and_pay"),        131009),
    ("status of no reference", order_status(reference_id=None),                              100),
    ("payment unknown",        order_status(payment={"status": "stolen"}),                   131009),
]
# fmt: on


@pytest.mark.parametrize(("interactive", "code"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_invalid_order_is_rejected_at_once(bench: Bench, interactive: JsonObject, code: int) -> None:
    response = await send(bench, interactive)

    assert (response.status, response.error["code"]) == (400, code), response.body


@pytest.mark.parametrize(
    "interactive",
    [
        order_details(),
        order_details(order=None, total_amount=amount(1)),
        order_details(payment_settings=None, payment_configuration="shop", order=None),
        order_details(reference_id="x" * 35, type="digital-goods", order=order_of_item(name="x" * 60), total_amount=amount(3100)),
        order_status(),
        order_status(order={"status": "partially-shipped"}),
        order_status(order={"status": "completed", "description": "x" * 120}),
        order_status(order=None, payment={"status": "captured", "timestamp": 1785125734}),
    ],
    ids=["whole", "simplified", "by configuration", "at the limits", "status", "with a hyphen", "described", "of a payment"],
)  # fmt: skip
async def test_order_is_shown_unchanged_on_the_phone(bench: Bench, interactive: JsonObject) -> None:
    await bench.send_from_phone()

    response = await send(bench, interactive)

    assert response.status == 200, response.body
    shown = (await bench.inbox())[-1]
    assert (shown["text"], shown["interactive"]) == (interactive["body"]["text"], interactive)


async def test_order_has_a_review_and_pay_button(bench: Bench) -> None:
    await bench.send_from_phone()

    await send(bench, order_details())

    [button] = (await bench.inbox())[-1]["buttons"]
    assert button == {
        "index": 0,
        "type": "REVIEW_AND_PAY",
        "text": "Review and pay",
        "reference_id": "order-7",
        "currency": "INR",
        "amount": amount(3900),
        "paid_by": "razorpay",
        "configuration": "shop",
    }


async def test_payment_status_names_its_order(bench: Bench) -> None:
    wamid = await send_order(bench)

    paid = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})

    assert paid.status == 200, paid.body
    status = await wait_for_payment(bench, wamid, 1)
    transaction = status["payment"].pop("transaction")
    assert status.pop("recipient_user_id").startswith("US.")
    assert status == {
        "id": wamid,
        "status": "captured",
        "timestamp": status["timestamp"],
        "recipient_id": ANN,
        "type": "payment",
        "payment": {"reference_id": "order-7", "amount": amount(3900), "currency": "INR"},
    }
    assert transaction == {
        "id": paid.body["payment"]["transaction_id"],
        "type": "razorpay",
        "status": "success",
        "created_timestamp": int(status["timestamp"]),
        "updated_timestamp": int(status["timestamp"]),
        "amount": amount(3900),
        "currency": "INR",
    }
    shown = (await bench.inbox())[-1]
    assert shown["payment"] == paid.body["payment"]
    assert shown["payment"]["status"] == "captured"


async def test_failed_payment_has_an_error_and_can_be_retried(bench: Bench) -> None:
    wamid = await send_order(bench)
    reason = {"code": "BAD_REQUEST_ERROR", "reason": "payment_cancelled"}

    failed = await bench.control("POST", f"phones/{ANN}/pay", {"status": "failed", **reason})
    paid = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})

    assert (failed.status, paid.status) == (200, 200), (failed.body, paid.body)
    first = await wait_for_payment(bench, wamid, 1)
    assert first["status"] == "failed"
    assert first["payment"]["transaction"]["status"] == "failed"
    assert first["payment"]["transaction"]["error"] == reason
    second = await wait_for_payment(bench, wamid, 2)
    assert second["status"] == "captured"
    assert second["payment"]["transaction"]["id"] != first["payment"]["transaction"]["id"]


async def test_pending_payment_is_captured_in_the_same_transaction(bench: Bench) -> None:
    wamid = await send_order(bench)

    await bench.control("POST", f"phones/{ANN}/pay", {"status": "pending"})
    await bench.control("POST", f"phones/{ANN}/pay", {"status": "captured"})

    first, second = [(await wait_for_payment(bench, wamid, n))["payment"] for n in (1, 2)]
    assert [payment["transaction"]["status"] for payment in (first, second)] == ["pending", "success"]
    assert first["transaction"]["id"] == second["transaction"]["id"]
    assert first["transaction"]["created_timestamp"] == second["transaction"]["created_timestamp"]


async def test_order_is_paid_once_by_concurrent_payments(bench: Bench) -> None:
    wamid = await send_order(bench)
    body = {"message_id": wamid}

    responses = await asyncio.gather(*(bench.control("POST", f"phones/{ANN}/pay", body) for _ in range(5)))

    assert sorted(response.status for response in responses) == [200, 409, 409, 409, 409]
    rejected = next(response.body for response in responses if response.status == 409)
    assert (rejected["field"], rejected["rule"]) == ("message_id", "the order is paid already")
    await wait_for_payment(bench, wamid, 1)
    await bench.wait_until_drained()
    assert len(payment_statuses(bench, wamid)) == 1


async def test_only_an_order_can_be_paid(bench: Bench) -> None:
    await bench.send_from_phone()
    wamid = await bench.send_text()

    named = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})
    newest = await bench.control("POST", f"phones/{ANN}/pay")
    invalid = await bench.control("POST", f"phones/{ANN}/pay", {"status": "stolen"})

    assert (named.status, named.body["field"]) == (409, "message_id")
    assert (newest.status, newest.body["field"]) == (404, "message_id")
    assert (invalid.status, invalid.body["field"]) == (400, "status")


async def test_payment_survives_a_restart(bench: Bench) -> None:
    wamid = await send_order(bench)
    await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})

    await bench.restart()

    assert (await bench.inbox())[-1]["payment"]["status"] == "captured"
    again = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})
    assert again.status == 409


async def send(bench: Bench, interactive: JsonObject) -> Any:
    return await bench.send({"type": "interactive", "interactive": interactive})


async def send_order(bench: Bench) -> str:
    """Send an order to the phone and return its message id."""
    await bench.send_from_phone()
    response = await send(bench, order_details())
    return str(response.body["messages"][0]["id"])


def payment_statuses(bench: Bench, wamid: str) -> list[JsonObject]:
    return [status for status in bench.receiver.statuses(wamid) if status.get("type") == "payment"]


async def wait_for_payment(bench: Bench, wamid: str, nth: int) -> JsonObject:
    """Return the nth payment status of the message."""
    statuses: Iterator[JsonObject] = iter(
        await bench.receiver.wait_until(lambda: payment_statuses(bench, wamid)[:nth][nth - 1 :])
    )
    return dict(next(statuses))
