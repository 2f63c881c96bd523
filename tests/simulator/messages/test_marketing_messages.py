"""The API for marketing messages: who may use it, what it accepts, clicks on links, and insights."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, BUSINESS, NUMBER_ID, TOKEN, WABA, Bench
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS

LINK = {"type": "URL", "text": "Shop", "url": "https://shop.example"}
COMPONENTS = [{"type": "BODY", "text": "Everything is cheap."}, {"type": "BUTTONS", "buttons": [LINK]}]
TEMPLATE = {"type": "template", "template": {"name": "seeded", "language": {"code": "en_US"}}}
ID = "1400000000000004"


async def onboard(bench: Bench, status: str = "ONBOARDED") -> None:
    response = await bench.control("PUT", f"accounts/{WABA}/marketing-messages", {"status": status})
    assert response.body == {"waba_id": WABA, "status": status}


async def send(bench: Bench, **more: Any) -> Any:
    body = {"messaging_product": "whatsapp", "to": f"+{ANN}", **TEMPLATE, **more}
    return await bench.graph("POST", f"{NUMBER_ID}/marketing_messages", json=body)


async def delivered(bench: Bench, wamid: str) -> list[dict[str, Any]]:
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    return bench.receiver.statuses(wamid)


@pytest.mark.parametrize(("status", "category"), [("ONBOARDED", "marketing_lite"), ("ELIGIBLE", "marketing")])
async def test_marketing_template_has_the_price_of_the_api_once_the_terms_are_accepted(
    bench: Bench, status: str, category: str
) -> None:
    await bench.seed_template(COMPONENTS, category="MARKETING")
    await onboard(bench, status)

    response = await send(bench)

    assert response.status == 200, response.body
    assert response.body["messages"][0]["message_status"] == "accepted"
    wamid = response.body["messages"][0]["id"]
    assert {each["pricing"]["category"] for each in await delivered(bench, wamid)} == {category}
    shown = await bench.graph("GET", f"{WABA}?fields=marketing_messages_lite_api_status")
    assert shown.body["marketing_messages_lite_api_status"] == status


async def test_strict_policy_needs_the_terms(bench: Bench) -> None:
    await bench.seed_template(COMPONENTS, category="MARKETING")

    rejected = await send(bench, product_policy="STRICT")
    await onboard(bench)
    accepted = await send(bench, product_policy="STRICT")

    assert (rejected.status, rejected.error["code"]) == (400, 131055)
    assert accepted.status == 200


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"type": "text", "text": {"body": "Hello"}}, 134100),
        ({"product_policy": "SOMETIMES"}, 100),
        ({"message_activity_sharing": "yes"}, 100),
    ],
    ids=str,
)
async def test_other_messages_are_rejected(bench: Bench, more: dict[str, Any], code: int) -> None:
    await bench.seed_template(COMPONENTS, category="MARKETING")
    await onboard(bench)

    response = await send(bench, **more)

    assert (response.status, response.error["code"]) == (400, code)


async def test_template_of_another_category_is_rejected(bench: Bench) -> None:
    await bench.seed_template(COMPONENTS, category="UTILITY")
    await onboard(bench)

    response = await send(bench)

    assert (response.status, response.error["code"]) == (400, 134100)


async def test_tap_on_a_link_is_a_click_event(bench: Bench) -> None:
    await bench.seed_template(COMPONENTS, category="MARKETING")
    await onboard(bench)
    wamid = (await send(bench)).body["messages"][0]["id"]
    await delivered(bench, wamid)

    tapped = await bench.control("POST", f"phones/{ANN}/tap", {"message_id": wamid, "index": 0})

    assert (tapped.status, tapped.body["wamid"]) == (200, None)
    [value] = await bench.receiver.wait_until(
        lambda: [change for change in bench.receiver.changes() if "user_actions" in change]
    )
    [action] = value["user_actions"]
    assert value == {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": BUSINESS, "phone_number_id": NUMBER_ID},
        "user_actions": [
            {
                "action_type": "marketing_messages_link_click",
                "timestamp": action["timestamp"],
                "marketing_messages_link_click_data": {
                    "click_component": "CTA",
                    "click_id": tapped.body["click_id"],
                    "tracking_token": action["marketing_messages_link_click_data"]["tracking_token"],
                },
            }
        ],
    }


async def test_tap_on_a_link_of_another_message_is_an_error(bench: Bench) -> None:
    await bench.seed_template(COMPONENTS, category="MARKETING")
    wamid = (await bench.send_template()).body["messages"][0]["id"]
    await delivered(bench, wamid)

    tapped = await bench.control("POST", f"phones/{ANN}/tap", {"message_id": wamid, "index": 0})

    assert tapped.status == 409


async def test_insights_count_marketing_messages_of_the_period(slow: Bench, clock: ManualClock) -> None:
    bench = slow
    await bench.seed_template(COMPONENTS, category="MARKETING")
    await onboard(bench)
    await bench.send_template()  # not through this API
    wamids = [(await send(bench)).body["messages"][0]["id"] for _ in range(2)]
    clock.advance(ms=2000)
    await bench.receiver.wait_until(lambda: all(len(bench.receiver.statuses(wamid)) == 2 for wamid in wamids))
    await bench.control("POST", f"phones/{ANN}/read", {"message_id": wamids[0]})
    await bench.control("POST", f"phones/{ANN}/tap", {"message_id": wamids[0], "index": 0})
    ad_id = (await bench.graph("GET", f"{ID}?fields=ad_id")).body["ad_id"]
    names = ("sent", "delivered", "delivery_rate", "link_btn_click", "spend", "app_purchase")
    fields = ",".join(f"marketing_messages_{name}" for name in names)

    today = await bench.graph("GET", f"{ad_id}/insights", params={"date_preset": "today", "fields": fields})
    clock.advance(ms=DAY_MS)
    tomorrow = await bench.graph("GET", f"{ad_id}/insights", params={"date_preset": "today", "fields": fields})
    yesterday = await bench.graph("GET", f"{ad_id}/insights", params={"date_preset": "yesterday", "fields": fields})

    assert today.status == 200, today.body
    [counts] = today.body["data"]
    assert {name: counts[name] for name in counts if name.startswith("marketing")} == {
        "marketing_messages_sent": "2",
        "marketing_messages_delivered": "2",
        "marketing_messages_delivery_rate": "1",
        "marketing_messages_link_btn_click": "1",
        "marketing_messages_spend": "0",
    }
    assert counts["date_start"] == counts["date_stop"]
    assert tomorrow.body["data"][0]["marketing_messages_sent"] == "0"
    assert yesterday.body["data"] == today.body["data"]


@pytest.mark.parametrize("query", [{"date_preset": "someday"}, {"fields": "clicks"}], ids=str)
async def test_unknown_period_or_field_is_rejected(bench: Bench, query: dict[str, str]) -> None:
    await bench.seed_template(COMPONENTS, category="MARKETING")

    response = await bench.graph("GET", f"120{ID}/insights", params=query)

    assert (response.status, response.error["code"]) == (400, 100)


async def test_only_a_marketing_template_has_an_ad_and_only_its_account_sees_it(bench: Bench) -> None:
    await bench.seed_template(COMPONENTS)

    template = await bench.graph("GET", f"{ID}?fields=ad_id")
    insights = await bench.graph("GET", f"120{ID}/insights")
    stranger = await bench.graph("GET", f"120{ID}/insights", token=f"{TOKEN}-other")

    assert template.body == {"id": ID}
    assert (insights.status, stranger.status) == (400, 401)


async def test_click_on_a_message_of_more_than_7_days_ago_is_no_event(slow: Bench, clock: ManualClock) -> None:
    bench = slow
    await bench.seed_template(COMPONENTS, category="MARKETING")
    await onboard(bench)
    wamid = (await send(bench)).body["messages"][0]["id"]
    clock.advance(ms=7 * DAY_MS + 1000)

    tapped = await bench.control("POST", f"phones/{ANN}/tap", {"message_id": wamid, "index": 0})

    assert (tapped.status, tapped.body["click_id"]) == (200, None)


@pytest.mark.parametrize(
    ("preset", "first", "last"),
    [
        ("this_month", "2026-11-01", "2026-11-27"), ("last_month", "2026-10-01", "2026-10-31"),
        ("this_quarter", "2026-10-01", "2026-11-27"), ("last_quarter", "2026-07-01", "2026-09-30"),
        ("this_year", "2026-01-01", "2026-11-27"), ("last_year", "2025-01-01", "2025-12-31"),
        ("last_7d", "2026-11-20", "2026-11-26"), ("maximum", "2026-08-29", "2026-11-26"),
        ("last_week_mon_sun", "2026-11-16", "2026-11-22"), ("last_week_sun_sat", "2026-11-15", "2026-11-21"),
        ("this_week_mon_today", "2026-11-23", "2026-11-27"), ("this_week_sun_today", "2026-11-22", "2026-11-27"),
    ],
)  # fmt: skip
async def test_period_of_a_name(slow: Bench, clock: ManualClock, preset: str, first: str, last: str) -> None:
    """On Friday, 27 November 2026."""
    await slow.seed_template(COMPONENTS, category="MARKETING")
    clock.advance(ms=1_795_780_800_000 - clock.now_ms())

    response = await slow.graph("GET", f"120{ID}/insights", params={"date_preset": preset})

    assert response.body["data"] == [{"date_start": first, "date_stop": last}]
