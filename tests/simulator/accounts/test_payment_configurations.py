"""Payment configurations, and payments of their orders: looked up, refunded, reported."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA, Bench
from tests.simulator.messages.test_orders import amount, order_details
from tests.support.manual_clock import ManualClock

CONFIGURATION = {
    "configuration_name": "shop",
    "provider_name": "razorpay",
    "purpose_code": "00",
    "merchant_category_code": "5411",
    "redirect_url": "https://shop.example/?a=1&b=2",
}
REFUND = {
    "reference_id": "order-7",
    "payment_config_id": "shop",
    "speed": "instant",
    "amount": {"currency": "INR", "value": 900, "offset": 100},
}
LOOKUP = f"{NUMBER_ID}/payments/shop/order-7"


async def create_configuration(bench: Bench, **changes: Any) -> dict[str, Any]:
    response = await bench.graph("POST", f"{WABA}/payment_configuration", json=CONFIGURATION | changes)
    assert response.status == 200, response.body
    return response.body


async def statuses_of(bench: Bench) -> list[str]:
    listed = await bench.graph("GET", f"{WABA}/payment_configurations")
    [page] = listed.body["data"]
    return [item["status"] for item in page["payment_configurations"]]


async def open_link(bench: Bench, url: str) -> tuple[int, str]:
    async with bench.http.get(url) as response:
        return response.status, await response.text()


async def send_order(bench: Bench) -> str:
    await bench.send_from_phone()
    response = await bench.send({"type": "interactive", "interactive": order_details()})
    return response.body["messages"][0]["id"]


async def pay(bench: Bench, status: str = "captured") -> None:
    paid = await bench.control("POST", f"phones/{ANN}/pay", {"status": status, "wait_ms": 5000})
    assert paid.status == 200, paid.body


async def payment_statuses(bench: Bench, count: int) -> list[dict[str, Any]]:
    def read() -> list[dict[str, Any]] | None:
        found = [status for status in bench.receiver.statuses() if status.get("type") == "payment"]
        return found if len(found) >= count else None

    return await bench.receiver.wait_until(read)


async def test_configuration_is_active_once_its_link_is_opened(bench: Bench) -> None:
    created = await create_configuration(bench)
    before = await statuses_of(bench)

    status, page = await open_link(bench, created["oauth_url"])
    shown = await bench.graph("GET", f"{WABA}/payment_configuration/shop")
    [update] = await bench.receiver.wait_until(lambda: bench.receiver.changes("payment_configuration_update"))

    assert (created["success"], before) == (True, ["Needs_Connecting"])
    assert status == 200
    assert 'href="https://shop.example/?a=1&amp;b=2"' in page
    [configuration] = shown.body["data"]
    assert configuration["status"] == "Active"
    assert configuration["merchant_category_code"]["code"] == "5411"
    assert configuration["provider_mid"]
    assert update == {
        name: configuration[name]
        for name in (
            "configuration_name", "provider_name", "provider_mid", "status", "created_timestamp", "updated_timestamp",
        )
    }  # fmt: skip


async def test_link_expires_and_cannot_be_changed(slow: Bench, clock: ManualClock) -> None:
    created = await create_configuration(slow)
    renewed = await slow.graph(
        "POST",
        f"{WABA}/generate_payment_configuration_oauth_link",
        json={"configuration_name": "shop", "redirect_url": "javascript:alert(1)"},
    )
    forged = await open_link(slow, created["oauth_url"].replace("mid=shop", "mid=other"))
    clock.advance(ms=3_600_000)
    expired = await open_link(slow, renewed.body["oauth_url"])

    assert renewed.body["expiration"] == created["expiration"]
    assert (forged[0], expired[0]) == (400, 400)
    assert await statuses_of(slow) == ["Needs_Connecting"]


async def test_page_of_a_link_leads_to_web_pages_only(bench: Bench) -> None:
    created = await create_configuration(bench, configuration_name="<b>", redirect_url="javascript:alert(1)")

    _, page = await open_link(bench, created["oauth_url"])

    assert "javascript" not in page
    assert "&lt;b&gt;" in page


async def test_status_is_set_by_the_control_api(bench: Bench) -> None:
    await create_configuration(bench)
    path = f"accounts/{WABA}/payment-configurations"

    changed = await bench.control("PUT", f"{path}/shop", {"status": "Needs_Testing"})
    unknown = await bench.control("PUT", f"{path}/other", {})
    wrong = await bench.control("PUT", f"{path}/shop", {"status": "On"})

    assert changed.body["status"] == "Needs_Testing"
    assert (unknown.status, wrong.status) == (404, 400)
    listed = (await bench.control("GET", path)).body["payment_configurations"]
    assert [item["status"] for item in listed] == ["Needs_Testing"]


async def test_removed_configuration_is_unknown(bench: Bench) -> None:
    await create_configuration(bench)
    body = {"configuration_name": "shop"}

    removed = await bench.graph("DELETE", f"{WABA}/payment_configuration", json=body)
    again = await bench.graph("DELETE", f"{WABA}/payment_configuration", json=body)

    assert removed.body == {"success": True}
    assert again.body["error"]["code"] == 134009
    assert await statuses_of(bench) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"configuration_name": ""},
        {"configuration_name": None},
        {"configuration_name": 7},
        {"configuration_name": "a/b"},
        {"configuration_name": "x" * 61},
        {"provider_name": None},
        {"redirect_url": 7},
    ],
    ids=str,
)
async def test_invalid_configuration_is_rejected(bench: Bench, changes: dict[str, Any]) -> None:
    response = await bench.graph("POST", f"{WABA}/payment_configuration", json=CONFIGURATION | changes)

    assert (response.status, response.body["error"]["code"]) == (400, 100)


async def test_name_in_use_is_rejected(bench: Bench) -> None:
    await create_configuration(bench)

    response = await bench.graph("POST", f"{WABA}/payment_configuration", json=CONFIGURATION)

    assert (response.status, response.body["error"]["code"]) == (400, 100)


async def test_payment_is_looked_up_with_all_its_transactions(bench: Bench) -> None:
    await create_configuration(bench)
    await send_order(bench)
    unpaid = await bench.graph("GET", LOOKUP)
    await pay(bench, "failed")
    await pay(bench, "pending")
    await pay(bench, "captured")

    paid = await bench.graph("GET", LOOKUP)

    assert unpaid.body["payments"] == [
        {"reference_id": "order-7", "status": "PENDING", "amount": amount(3900), "currency": "INR", "transactions": []}
    ]
    [payment] = paid.body["payments"]
    assert payment["status"] == "CAPTURED"
    assert [item["status"] for item in payment["transactions"]] == ["failed", "success"]
    assert [item["refunds"] for item in payment["transactions"]] == [[], []]


@pytest.mark.parametrize(
    ("path", "code"), [(f"{NUMBER_ID}/payments/shop/order-8", 134006), (f"{NUMBER_ID}/payments/other/order-7", 134009)]
)
async def test_unknown_payment_has_the_documented_code(bench: Bench, path: str, code: int) -> None:
    await create_configuration(bench)
    await send_order(bench)

    response = await bench.graph("GET", path)

    assert (response.status, response.body["error"]["code"]) == (400, code)


async def test_refunds_are_reported_until_nothing_is_left(bench: Bench) -> None:
    await create_configuration(bench)
    wamid = await send_order(bench)
    await pay(bench)

    first = await bench.graph("POST", f"{NUMBER_ID}/payments_refund", json=REFUND)
    whole = {**REFUND, "speed": "normal", "amount": {"currency": "INR", "value": 3000, "offset": 100}}
    second = await bench.graph("POST", f"{NUMBER_ID}/payments_refund", json=whole)
    third = await bench.graph("POST", f"{NUMBER_ID}/payments_refund", json=REFUND)
    statuses = await payment_statuses(bench, 3)

    assert (first.body["status"], first.body["speed_processed"]) == ("pending", "instant")
    assert (third.status, third.body["error"]["code"]) == (400, 100)
    last = statuses[-1]
    assert (last["id"], last["status"], last["payment"]["reference_id"]) == (wamid, "captured", "order-7")
    assert [(refund["id"], refund["amount"], refund["status"]) for refund in last["payment"]["transaction"]["refunds"]] == [
        (first.body["id"], amount(900), "success"), (second.body["id"], amount(3000), "success"),
    ]  # fmt: skip
    [payment] = (await bench.graph("GET", LOOKUP)).body["payments"]
    assert len(payment["transactions"][0]["refunds"]) == 2


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"reference_id": None}, 100),
        ({"reference_id": "order-8"}, 134006),
        ({"payment_config_id": None}, 100),
        ({"payment_config_id": "other"}, 134009),
        ({"speed": "slow"}, 100),
        ({"amount": None}, 100),
        ({"amount": {"currency": "INR", "value": 0, "offset": 100}}, 100),
        ({"amount": {"currency": "INR", "value": True, "offset": 100}}, 100),
        ({"amount": {"currency": "INR", "value": 900, "offset": 1}}, 100),
        ({"amount": {"currency": "USD", "value": 900, "offset": 100}}, 100),
        ({"amount": {"value": 900, "offset": 100}}, 100),
        ({"amount": {"currency": "INR", "value": 3901, "offset": 100}}, 100),
    ],
    ids=str,
)
async def test_invalid_refund_changes_nothing(bench: Bench, changes: dict[str, Any], code: int) -> None:
    await create_configuration(bench)
    await send_order(bench)
    await pay(bench)

    response = await bench.graph("POST", f"{NUMBER_ID}/payments_refund", json=REFUND | changes)

    assert (response.status, response.body["error"]["code"]) == (400, code)
    [payment] = (await bench.graph("GET", LOOKUP)).body["payments"]
    assert payment["transactions"][0]["refunds"] == []


async def test_order_that_is_not_paid_has_nothing_to_refund(bench: Bench) -> None:
    await create_configuration(bench)
    await send_order(bench)

    response = await bench.graph("POST", f"{NUMBER_ID}/payments_refund", json=REFUND)

    assert (response.status, response.body["error"]["code"]) == (400, 100)
