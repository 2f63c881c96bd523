"""Template analytics, and templates created from the library."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA, Bench, SimulatorResponse
from tests.support.manual_clock import ManualClock

TEMPLATE = "1400000000000004"
DAY_S = 24 * 3600
BUTTONS: list[dict[str, Any]] = [
    {"type": "BODY", "text": "Hello there"},
    {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}]},
]


async def analytics(bench: Bench, **query: Any) -> SimulatorResponse:
    now_s = bench.clock.now_ms() // 1000
    defaults: dict[str, Any] = {
        "start": now_s - DAY_S,
        "end": now_s,
        "granularity": "DAILY",
        "template_ids": f"[{TEMPLATE}]",
        "metric_types": "sent,delivered,read,clicked",
    }
    params = {name: str(value) for name, value in {**defaults, **query}.items() if value is not None}
    return await bench.graph("GET", f"{WABA}/template_analytics", params=params)


async def test_template_is_counted_as_sent_delivered_read_and_clicked(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(BUTTONS)
    today_s = slow.clock.now_ms() // 1000 // DAY_S * DAY_S
    for number in range(3):
        await slow.send_template(to=f"1555123456{number}")
    sent = await analytics(slow)
    clock.advance(ms=1000)
    first = await slow.control("GET", "phones/15551234560")
    wamid = first.body["messages"][0]["wamid"]
    await slow.control("POST", "phones/15551234560/tap", {"message_id": wamid, "index": 0})

    response = await analytics(slow)

    [data] = response.body["data"]
    assert (data["granularity"], data["product_type"]) == ("DAILY", "cloud_api")
    *before, today = data["data_points"]
    assert today == {
        "template_id": TEMPLATE,
        "start": today_s,
        "end": today_s + DAY_S,
        "sent": 3,
        "delivered": 3,
        "read": 1,
        "clicked": [{"type": "quick_reply_button", "button_content": "Yes", "count": 1}],
    }
    assert [point["sent"] for point in before] == [0]
    assert sent.body["data"][0]["data_points"][-1]["delivered"] == 0


async def test_template_sent_as_a_form_is_counted(bench: Bench) -> None:
    """The operator accepts a form in place of JSON, and so a message is a message."""
    await bench.seed_template(BUTTONS)
    template = '{"name":"seeded","language":{"code":"en_US"}}'
    form = {"messaging_product": "whatsapp", "to": ANN, "type": "template", "template": template}
    await bench.graph("POST", f"{NUMBER_ID}/messages", data=form)

    response = await analytics(bench)

    assert response.body["data"][0]["data_points"][-1]["sent"] == 1


async def test_only_requested_metrics_are_shown(bench: Bench) -> None:
    await bench.seed_template(BUTTONS)

    response = await analytics(bench, metric_types='["SENT"]', template_ids=TEMPLATE)

    assert set(response.body["data"][0]["data_points"][0]) == {"template_id", "start", "end", "sent"}


@pytest.mark.parametrize(
    "query",
    [
        {"start": None},
        {"end": "x"},
        {"end": 1},
        {"start": 1},
        {"granularity": "HOURLY"},
        {"metric_types": "shown"},
        {"template_ids": None},
        {"template_ids": "999"},
        {"template_ids": ",".join(map(str, range(11)))},
    ],
)
async def test_invalid_analytics_query_is_code_100(bench: Bench, query: dict[str, Any]) -> None:
    await bench.seed_template(BUTTONS)

    response = await analytics(bench, **query)

    assert (response.status, response.error["code"]) == (400, 100)


async def test_analytics_can_be_confirmed(bench: Bench) -> None:
    confirmed = await bench.graph("POST", f"{WABA}?is_enabled_for_insights=true")
    disabled = await bench.graph("POST", WABA, json={"is_enabled_for_insights": False})
    empty = await bench.graph("POST", WABA, json={})

    assert confirmed.body == {"id": WABA}
    assert (disabled.status, empty.status) == (400, 400)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=how_was_it", ["how_was_it"]),
        ("search=REMINDER%20that", ["payment_is_due"]),
        ("topic=PAYMENTS", ["payment_is_due"]),
        ("usecase=order_pick_up", ["order_ready_to_collect"]),
        ("industry=HEALTH,OTHER", ["appointment_tomorrow"]),
        ("industry=%5B%22BEAUTY%22%5D", ["appointment_tomorrow"]),
        ("name=order_on_its_way&language=en_GB", ["order_on_its_way"]),
        ("language=fr", []),
        ("limit=2", ["order_on_its_way", "order_on_its_way"]),
    ],
)
async def test_library_can_be_searched(bench: Bench, query: str, names: list[str]) -> None:
    response = await bench.graph("GET", f"message_template_library?{query}")
    of_account = await bench.graph("GET", f"{WABA}/message_template_library?{query}")

    assert [template["name"] for template in response.body["data"]] == names
    assert of_account.body["data"] == response.body["data"]


async def test_library_shows_the_parameters_of_a_template(bench: Bench) -> None:
    response = await bench.graph("GET", "message_template_library?name=payment_is_due")

    [template] = response.body["data"]
    assert template["category"] == "UTILITY"
    assert len(template["body_params"]) == len(template["body_param_types"]) == template["body"].count("{{")
    assert [button["type"] for button in template["buttons"]] == ["URL", "PHONE_NUMBER"]
    assert (await bench.request("GET", "/v25.0/message_template_library")).status == 401


async def create_from_library(bench: Bench, **fields: Any) -> SimulatorResponse:
    draft = {"name": "mine", "language": "en_US", "category": "UTILITY", **fields}
    return await bench.graph("POST", f"{WABA}/message_templates", json=draft)


async def test_every_library_template_can_be_created(bench: Bench) -> None:
    listed = await bench.graph("GET", "message_template_library")

    library = listed.body["data"]
    for index, template in enumerate(library):
        created = await create_from_library(
            bench, name=f"mine_{index}", library_template_name=template["name"], language=template["language"]
        )
        assert created.status == 200, created.body
        assert created.body["status"] == "APPROVED"
    await bench.receiver.wait_until(lambda: len(bench.receiver.template_events()) == len(library))


async def test_library_template_uses_the_business_buttons_and_can_be_sent(bench: Bench) -> None:
    inputs = [
        {
            "type": "URL",
            "url": {"base_url": "https://shop.example/{{1}}", "url_suffix_example": "https://shop.example/a"},
        },
        {"type": "PHONE_NUMBER", "phone_number": "+15550007777"},
    ]
    created = await create_from_library(
        bench, library_template_name="payment_is_due", library_template_button_inputs=inputs
    )

    body = [{"type": "text", "text": text} for text in ("Ann", "$24.00", "5 May")]
    link = {"type": "button", "sub_type": "url", "index": "0", "parameters": [body[0]]}
    sent = await bench.send_template([{"type": "body", "parameters": body}, link], "mine")
    shown = await bench.graph("GET", f"{created.body['id']}?fields=components")
    assert sent.status == 200, sent.body
    buttons = shown.body["components"][-1]["buttons"]
    assert [button.get("url") or button["phone_number"] for button in buttons] == [
        "https://shop.example/{{1}}",
        "+15550007777",
    ]
    inbox = await bench.control("GET", f"phones/{ANN}?wait_ms=2000")
    assert "$24.00" in inbox.body["messages"][0]["text"]


@pytest.mark.parametrize(
    "fields",
    [
        {"library_template_name": "nothing"},
        {"library_template_name": "payment_is_due", "language": "fr"},
        {"library_template_name": "payment_is_due", "category": "MARKETING"},
        {"library_template_name": "payment_is_due", "library_template_button_inputs": [{"type": "PHONE_NUMBER"}]},
        {
            "library_template_name": "order_ready_to_collect",
            "library_template_button_inputs": [{"type": "PHONE_NUMBER", "phone_number": "x"}],
        },
    ],
)
async def test_template_that_the_library_does_not_offer_is_rejected(bench: Bench, fields: dict[str, Any]) -> None:
    response = await create_from_library(bench, **fields)

    assert (response.status, response.error["code"]) == (400, 100)
    assert (await bench.graph("GET", f"{WABA}/message_templates")).body["data"] == []
