"""Orders that a business sends for review, and the payments of phones."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench

Part = dict[str, Any]


def amount(value: int) -> Part:
    return {"value": value, "offset": 100}


ITEM: Part = {"retailer_id": "tea-1", "name": "Sencha", "amount": amount(1200), "quantity": 2}
ORDER: Part = {
    "status": "pending",
    "items": [ITEM, {"name": "Cup", "amount": amount(900), "sale_amount": amount(800), "quantity": 1}],
    "subtotal": amount(3200),
    "tax": amount(300),
    "shipping": amount(500),
    "discount": {**amount(100), "description": "Welcome"},
}  # fmt: skip
GATEWAY: Part = {"type": "payment_gateway", "payment_gateway": {"type": "razorpay", "configuration_name": "shop"}}


def details(**changes: Any) -> Part:
    parameters: Part = {
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


def status(**changes: Any) -> Part:
    parameters: Part = {
        "reference_id": "order-7",
        "order": {"status": "shipped", "description": "On its way"},
        **changes,
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    action = {"name": "review_order", "parameters": parameters}
    return {"type": "order_status", "body": {"text": "News of your order"}, "action": action}


def order(**changes: Any) -> Part:
    return {name: value for name, value in {**ORDER, **changes}.items() if value is not None}


def item(**changes: Any) -> Part:
    """An order of one item, with its sum as it was."""
    one = {name: value for name, value in {**ITEM, **changes}.items() if value is not None}
    return order(items=[one], subtotal=amount(2400))


def with_action(interactive: Part, **changes: Any) -> Part:
    return {**interactive, "action": {**interactive["action"], **changes}}


# fmt: off
BAD: list[tuple[str, Part, int]] = [  # Source: operator's page "Orders"
    # what                   interactive                                             code
    ("no body",              {**details(), "body": None},                            100),
    ("another action",       with_action(details(), name="review_order"),            131009),
    ("no parameters",        with_action(details(), parameters=None),                100),
    ("no reference",         details(reference_id=None),                             100),
    ("long reference",       details(reference_id="x" * 36),                         131009),
    ("odd reference",        details(reference_id="order 7"),                        131009),
    ("no type",              details(type=None),                                     100),
    ("unknown type",         details(type="services"),                               131009),
    ("no currency",          details(currency=None),                                 100),
    ("odd currency",         details(currency="Rupees"),                             131009),
    ("no total",             details(total_amount=None),                             100),
    ("total of text",        details(total_amount={"value": "3900", "offset": 100}), 131009),
    ("total below zero",     details(total_amount=amount(-1)),                       131009),
    ("another offset",       details(total_amount={"value": 39, "offset": 1}),       131009),
    ("another total",        details(total_amount=amount(3901)),                     131009),
    ("settings of nothing",  details(payment_settings=[]),                           131009),
    ("settings of no type",  details(payment_settings=[{"payment_gateway": {}}]),    100),
    ("order that is paid",   details(order=order(status="completed")),               131009),
    ("order of nothing",     details(order=order(items=[])),                         100),
    ("no subtotal",          details(order=order(subtotal=None)),                    100),
    ("another subtotal",     details(order=order(subtotal=amount(3201))),            131009),
    ("item without a name",  details(order=item(name=None)),                         100),
    ("item of a long name",  details(order=item(name="x" * 61)),                     131009),
    ("item without amount",  details(order=item(amount=None)),                       100),
    ("item of no quantity",  details(order=item(quantity=None)),                     100),
    ("half an item",         details(order=item(quantity=0.5)),                      131009),
    ("none of an item",      details(order=item(quantity=0)),                        131009),
    ("status of no order",   status(order=None),                                     100),
    ("status unknown",       status(order={"status": "lost"}),                       131009),
    ("long description",     status(order={"status": "shipped", "description": "x" * 121}), 131009),
    ("status by another",    with_action(status(), name="review_and_pay"),           131009),
    ("status of no reference", status(reference_id=None),                            100),
    ("payment unknown",      status(payment={"status": "stolen"}),                   131009),
]
# fmt: on


@pytest.mark.parametrize(("interactive", "code"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_wrong_order_is_refused_at_once(bench: Bench, interactive: Part, code: int) -> None:
    answer = await send(bench, interactive)

    assert (answer.status, answer.error["code"]) == (400, code), answer.body


@pytest.mark.parametrize(
    "interactive",
    [
        details(),
        details(order=None, total_amount=amount(1)),
        details(payment_settings=None, payment_configuration="shop", order=None),
        details(reference_id="x" * 35, type="digital-goods", order=item(name="x" * 60), total_amount=amount(3100)),
        status(),
        status(order={"status": "partially-shipped"}),
        status(order={"status": "completed", "description": "x" * 120}),
        status(order=None, payment={"status": "captured", "timestamp": 1785125734}),
    ],
    ids=["whole", "simplified", "by configuration", "at the limits", "status", "with a hyphen", "described", "of a payment"],
)  # fmt: skip
async def test_order_is_shown_as_it_was_sent(bench: Bench, interactive: Part) -> None:
    await bench.let_write()

    answer = await send(bench, interactive)

    assert answer.status == 200, answer.body
    shown = (await bench.inbox())[-1]
    assert (shown["text"], shown["interactive"]) == (interactive["body"]["text"], interactive)


async def test_order_can_be_reviewed_and_paid_by_its_button(bench: Bench) -> None:
    await bench.let_write()

    await send(bench, details())

    [button] = (await bench.inbox())[-1]["buttons"]
    assert button == {
        "index": 0,
        "type": "REVIEW_AND_PAY",
        "text": "Review and pay",
        "reference_id": "order-7",
        "currency": "INR",
        "amount": amount(3900),
        "paid_by": "razorpay",
    }


async def test_payment_is_told_with_the_order_it_is_of(bench: Bench) -> None:
    wamid = await ordered(bench)

    paid = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})

    assert paid.status == 200, paid.body
    told = await payment_of(bench, wamid, 1)
    transaction = told["payment"].pop("transaction")
    assert told.pop("recipient_user_id").startswith("US.")
    assert told == {
        "id": wamid,
        "status": "captured",
        "timestamp": told["timestamp"],
        "recipient_id": ANN,
        "type": "payment",
        "payment": {"reference_id": "order-7", "amount": amount(3900), "currency": "INR"},
    }
    assert transaction == {
        "id": paid.body["payment"]["transaction_id"],
        "type": "razorpay",
        "status": "success",
        "created_timestamp": int(told["timestamp"]),
        "updated_timestamp": int(told["timestamp"]),
        "amount": amount(3900),
        "currency": "INR",
    }
    shown = (await bench.inbox())[-1]
    assert shown["payment"] == paid.body["payment"]
    assert shown["payment"]["status"] == "captured"


async def test_payment_that_fails_says_why_and_may_be_tried_again(bench: Bench) -> None:
    wamid = await ordered(bench)
    reason = {"code": "BAD_REQUEST_ERROR", "reason": "payment_cancelled"}

    failed = await bench.control("POST", f"phones/{ANN}/pay", {"status": "failed", **reason})
    paid = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})

    assert (failed.status, paid.status) == (200, 200), (failed.body, paid.body)
    told = await payment_of(bench, wamid, 1)
    assert told["status"] == "failed"
    assert told["payment"]["transaction"]["status"] == "failed"
    assert told["payment"]["transaction"]["error"] == reason
    again = await payment_of(bench, wamid, 2)
    assert again["status"] == "captured"
    assert again["payment"]["transaction"]["id"] != told["payment"]["transaction"]["id"]


async def test_pending_payment_goes_on_as_the_same_transaction(bench: Bench) -> None:
    wamid = await ordered(bench)

    await bench.control("POST", f"phones/{ANN}/pay", {"status": "pending"})
    await bench.control("POST", f"phones/{ANN}/pay", {"status": "captured"})

    first, then = [(await payment_of(bench, wamid, n))["payment"] for n in (1, 2)]
    assert [one["transaction"]["status"] for one in (first, then)] == ["pending", "success"]
    assert first["transaction"]["id"] == then["transaction"]["id"]
    assert first["transaction"]["created_timestamp"] == then["transaction"]["created_timestamp"]


async def test_order_is_paid_once_however_many_pay_it_at_a_time(bench: Bench) -> None:
    wamid = await ordered(bench)
    body = {"message_id": wamid}

    answers = await asyncio.gather(*(bench.control("POST", f"phones/{ANN}/pay", body) for _ in range(5)))

    assert sorted(one.status for one in answers) == [200, 409, 409, 409, 409]
    refused = next(one.body for one in answers if one.status == 409)
    assert (refused["field"], refused["rule"]) == ("message_id", "the order is paid already")
    await payment_of(bench, wamid, 1)
    await bench.drained()
    assert len(payments(bench, wamid)) == 1


async def test_message_that_is_no_order_cannot_be_paid(bench: Bench) -> None:
    await bench.let_write()
    wamid = await bench.send_text()

    named = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})
    newest = await bench.control("POST", f"phones/{ANN}/pay")
    odd = await bench.control("POST", f"phones/{ANN}/pay", {"status": "stolen"})

    assert (named.status, named.body["field"]) == (409, "message_id")
    assert (newest.status, newest.body["field"]) == (404, "message_id")
    assert (odd.status, odd.body["field"]) == (400, "status")


async def test_payment_survives_a_restart(bench: Bench) -> None:
    wamid = await ordered(bench)
    await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})

    await bench.restart()

    assert (await bench.inbox())[-1]["payment"]["status"] == "captured"
    again = await bench.control("POST", f"phones/{ANN}/pay", {"message_id": wamid})
    assert again.status == 409


async def send(bench: Bench, interactive: Part) -> Any:
    return await bench.send({"type": "interactive", "interactive": interactive})


async def ordered(bench: Bench) -> str:
    """The id of an order that is on the phone."""
    await bench.let_write()
    answer = await send(bench, details())
    return str(answer.body["messages"][0]["id"])


def payments(bench: Bench, wamid: str) -> list[Part]:
    return [one for one in bench.receiver.statuses(wamid) if one.get("type") == "payment"]


async def payment_of(bench: Bench, wamid: str, nth: int) -> Part:
    """What was told of the nth payment."""
    told: Iterator[Part] = iter(await bench.receiver.until(lambda: payments(bench, wamid)[:nth][nth - 1 :]))
    return dict(next(told))
