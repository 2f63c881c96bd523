"""Direct Send: messages that name a category instead of a template, and the templates generated for them."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import ANN, ANN_USER_ID, NUMBER_ID, WABA, Bench
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from waypost.base.clock import DAY_MS


async def generated(bench: Bench, **query: str) -> list[dict[str, Any]]:
    """Return the account's generated templates."""
    params = {"source": "AUTO_GENERATED", **query}
    response = await bench.graph("GET", f"{WABA}/message_templates", params=params)
    assert response.status == 200, response.body
    return response.body["data"]


async def statuses(bench: Bench, wamid: str, count: int) -> list[dict[str, Any]]:
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == count)
    return bench.receiver.statuses(wamid)


@pytest.mark.parametrize("category", ["utility", "UTILITY", "authentication"])
async def test_direct_send_needs_no_window(bench: Bench, category: str) -> None:
    wamid = await bench.send_text("Your order is ready.", category=category)

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    sent, delivered = bench.receiver.statuses(wamid)
    assert [sent["status"], delivered["status"]] == ["sent", "delivered"]
    assert sent["pricing"]["category"] == category.lower()
    assert sent["pricing"]["billable"] is True


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"category": "marketing"}, "category"),
        ({"category": 7}, "category"),
        ({"ttl_seconds": 600}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": 29}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": 43_201}, "ttl_seconds"),
        ({"category": "authentication", "ttl_seconds": 901}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": "600"}, "ttl_seconds"),
        ({"category": "utility", "ttl_seconds": True}, "ttl_seconds"),
        ({"category": "utility", "type": "reaction", "reaction": {"message_id": "w", "emoji": "+"}}, "category"),
    ],
    ids=str,
)  # fmt: skip
async def test_invalid_direct_send_error_names_the_parameter(bench: Bench, more: dict[str, Any], name: str) -> None:
    response = await bench.send({"type": "text", "text": {"body": "Hello"}, **more})

    assert (response.status, response.body["error"]["code"]) == (400, 100)
    assert f"Param {name}" in response.body["error"]["message"]


@pytest.mark.parametrize("ttl_s", [30, 43_200])
async def test_ttl_of_direct_send_is_accepted(bench: Bench, ttl_s: int) -> None:
    wamid = await bench.send_text("Hello", category="utility", ttl_seconds=ttl_s)

    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)


async def test_message_is_attributed_to_the_fallback_and_the_next_like_it_to_a_template_of_its_content(
    bench: Bench,
) -> None:
    """The next message with the same words and another number uses the template generated for the first."""
    first = await bench.send_text("Order A123 is on its way.", category="utility")
    second = await bench.send_text("Order B456 is on its way.", category="utility")

    ids = {template["components"][0]["text"]: template["id"] for template in await generated(bench)}
    assert set(ids) == {"{{1}}", "Order {{1}} is on its way."}
    assert {status["template_id"] for status in await statuses(bench, first, 2)} == {ids["{{1}}"]}
    assert {status["template_id"] for status in await statuses(bench, second, 2)} == {ids["Order {{1}} is on its way."]}


async def test_generated_template_is_listed_as_documented(bench: Bench) -> None:
    await bench.send_text("Hi 1, your order is delivered.", category="utility")

    [template] = [each for each in await generated(bench) if each["name"].startswith("auto_generated_text_")]
    assert template == {
        "name": template["name"],
        "parameter_format": "POSITIONAL",
        "components": [
            {"type": "BODY", "text": "Hi {{1}} your order is delivered.", "example": {"body_text": [["sample 1"]]}}
        ],
        "language": "en_US",
        "status": "APPROVED",
        "category": "UTILITY",
        "correct_category": "UTILITY",
        "source": "AUTO_GENERATED",
        "id": template["id"],
    }
    assert await generated(bench, correct_category="MARKETING") == []


async def test_ordinary_templates_have_no_source(bench: Bench) -> None:
    await bench.create_template([{"type": "BODY", "text": "Hello"}])

    assert await generated(bench) == []
    [template] = (await bench.graph("GET", f"{WABA}/message_templates")).body["data"]
    assert "source" not in template


async def test_text_of_another_script_has_another_language(bench: Bench) -> None:
    await bench.send_text("您的订单已发货", category="utility")

    assert {template["language"] for template in await generated(bench)} == {"zh_CN"}


async def test_buttons_are_links_before_replies_and_a_tap_returns_the_template_format(bench: Bench) -> None:
    interactive = {
        "type": "button",
        "header": {"type": "text", "text": "Delivery"},
        "body": {"text": "Your parcel is on its way."},
        "footer": {"text": "Shop One"},
        "action": {
            "buttons": [
                {"type": "cta_url", "cta_url": {"display_text": "Track", "url": "https://shop.example/t"}},
                {"type": "reply", "reply": {"id": "got-it", "title": "Received"}},
            ]
        },
    }
    response = await bench.send({"type": "interactive", "interactive": interactive, "category": "utility"})
    assert response.status == 200, response.body
    wamid = response.body["messages"][0]["id"]
    await statuses(bench, wamid, 2)

    await bench.control("POST", f"phones/{ANN}/tap", {"message_id": wamid, "index": 1})

    [reply] = await bench.receiver.wait_until(bench.receiver.messages)
    assert (reply["type"], reply["button"]) == ("button", {"payload": "got-it", "text": "Received"})
    [template] = [each for each in await generated(bench) if "interactive" in each["name"]]
    assert template["components"] == [
        {"type": "HEADER", "text": "Delivery", "format": "TEXT"},
        {"type": "BODY", "text": "Your parcel is on its way."},
        {"type": "FOOTER", "text": "Shop One"},
        {
            "type": "BUTTONS",
            "buttons": [
                {"type": "URL", "text": "Track", "url": "https://shop.example/t"},
                {"type": "QUICK_REPLY", "text": "Received"},
            ],
        },
    ]


LINK = {"type": "cta_url", "cta_url": {"display_text": "Track", "url": "https://shop.example/t"}}
REPLY = {"type": "reply", "reply": {"id": "a", "title": "A"}}


@pytest.mark.parametrize(
    ("buttons", "text"),
    [
        ([REPLY, LINK], "before those of the type reply"),
        ([LINK, LINK, LINK], "at most 2 buttons"),
        ([{**REPLY, "reply": {"id": str(index), "title": "A"}} for index in range(11)], "1 to 10 buttons"),
        ([REPLY, REPLY], "an id twice"),
        ([{"type": "call"}], "cta_url and reply"),
        ([{"type": "cta_url", "cta_url": "https://shop.example"}], "is required"),
        ([], "is required"),
    ],
    ids=str,
)
async def test_wrong_buttons_are_rejected(bench: Bench, buttons: list[Any], text: str) -> None:
    interactive = {"type": "button", "body": {"text": "Hello"}, "action": {"buttons": buttons}}

    response = await bench.send({"type": "interactive", "interactive": interactive, "category": "utility"})

    assert response.status == 400
    assert text in json.dumps(response.body)


@pytest.mark.parametrize("kind", ["list", "product", "flow"])
async def test_other_interactive_types_are_rejected(bench: Bench, kind: str) -> None:
    interactive = {"type": kind, "body": {"text": "Hello"}, "action": {}}

    response = await bench.send({"type": "interactive", "interactive": interactive, "category": "utility"})

    assert (response.status, response.error["code"]) == (400, 131009)
    assert "button, cta_url, voice_call" in json.dumps(response.body)


async def test_text_is_as_long_as_the_body_of_a_template(bench: Bench) -> None:
    accepted = await bench.send({"type": "text", "text": {"body": "x" * 1024}, "category": "utility"})
    rejected = await bench.send({"type": "text", "text": {"body": "x" * 1025}, "category": "utility"})

    assert (accepted.status, rejected.status) == (200, 400)


@pytest.mark.parametrize(
    ("access", "code", "text"),
    [
        ("NOT_ENABLED", 100, "isn't enabled for this account"),
        ("RESTRICTED", 139200, "misclassification based enforcements"),
        ("RATE_LIMITED", 131064, "next window"),
    ],
)
async def test_account_without_access_gets_the_documented_error(
    bench: Bench, access: str, code: int, text: str
) -> None:
    denied = await bench.control("PUT", f"accounts/{WABA}/direct-send", {"access": access})
    response = await bench.send({"type": "text", "text": {"body": "Hello"}, "category": "utility"})
    ordinary = await bench.send({"type": "text", "text": {"body": "Hello"}})
    await bench.control("PUT", f"accounts/{WABA}/direct-send", {"access": "ENABLED"})
    again = await bench.send({"type": "text", "text": {"body": "Hello"}, "category": "utility"})

    assert denied.body == {"waba_id": WABA, "access": access}
    assert (response.status, response.error["code"]) == (400, code)
    assert text in response.error["error_data"]["details"]
    assert (ordinary.status, again.status) == (200, 200)


async def test_access_must_be_known_and_the_account_too(bench: Bench) -> None:
    unknown = await bench.control("PUT", f"accounts/{WABA}/direct-send", {"access": "PERHAPS"})
    missing = await bench.control("PUT", "accounts/7/direct-send", {"access": "ENABLED"})

    assert (unknown.status, missing.status) == (400, 404)


async def test_service_is_the_category_of_an_ordinary_message(bench: Bench) -> None:
    wamid = await bench.send_text("Hello", category="service")

    [failed] = await statuses(bench, wamid, 1)
    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 131047)


async def test_code_is_not_sent_to_a_user_id(bench: Bench) -> None:
    code = {"type": "text", "text": {"body": "Your code is 123456."}, "category": "authentication", "to": None}

    await bench.send_from_phone()
    response = await bench.send(code | {"recipient": ANN_USER_ID})

    assert (response.status, response.error["code"]) == (400, 131062)


async def test_business_names_the_template_of_its_messages(bench: Bench) -> None:
    named = {"category": "utility", "direct_send_config": {"template_name": "order_update"}}
    first = await bench.send_text("Order 1 has been shipped.", **named)
    second = await bench.send_text("Something else altogether.", **named)

    [template] = await generated(bench, name="order_update")
    for wamid in (first, second):
        assert {status["template_id"] for status in await statuses(bench, wamid, 2)} == {template["id"]}
    assert len(await generated(bench)) == 1


async def test_name_of_an_ordinary_template_fails_the_message(bench: Bench) -> None:
    await bench.create_template([{"type": "BODY", "text": "Hello"}], name="greeting")

    wamid = await bench.send_text("Hi", category="utility", direct_send_config={"template_name": "greeting"})

    [failed] = await statuses(bench, wamid, 1)
    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 132021)


@pytest.mark.parametrize(
    "more",
    [
        {"direct_send_config": {"template_name": "Order-Update"}},
        {"direct_send_config": {"template_name": "x" * 513}},
        {"direct_send_config": {"template_name": 7}},
        {"direct_send_config": "order_update"},
        {"direct_send_config": {"template_name": "codes"}, "category": "authentication"},
        {"direct_send_config": {"template_name": "codes"}, "category": None},
    ],
    ids=str,
)
async def test_invalid_template_name_is_rejected(bench: Bench, more: dict[str, Any]) -> None:
    response = await bench.send({"type": "text", "text": {"body": "Hello"}, "category": "utility", **more})

    assert (response.status, response.error["code"]) == (400, 100)
    assert "direct_send_config" in response.error["message"]


async def test_generated_template_is_neither_changed_nor_sent_as_a_template(bench: Bench) -> None:
    await bench.send_text("Hello", category="utility")
    template = (await generated(bench))[0]

    edited = await bench.graph("POST", template["id"], json={"components": [{"type": "BODY", "text": "Hi"}]})
    deleted = await bench.graph(
        "DELETE", f"{WABA}/message_templates", params={"name": template["name"], "hsm_id": template["id"]}
    )
    sent = await bench.send(
        {"type": "template", "template": {"name": template["name"], "language": {"code": template["language"]}}}
    )

    assert (edited.status, edited.error["error_subcode"]) == (400, 2388318)
    assert (deleted.status, deleted.error["error_subcode"]) == (400, 2388330)
    assert (sent.status, sent.error["code"]) == (400, 132018)
    assert template in await generated(bench)


async def test_message_like_a_paused_template_fails_and_only_time_ends_the_pause(bench: Bench) -> None:
    await bench.send_text("Your parcel 1 is late.", category="utility")
    [template] = [each for each in await generated(bench) if each["components"][0]["text"] != "{{1}}"]
    await bench.control("POST", f"templates/{template['id']}/pause")

    wamid = await bench.send_text("Your parcel 2 is late.", category="utility")
    unpaused = await bench.graph("POST", f"{template['id']}/unpause")

    [failed] = await statuses(bench, wamid, 1)
    assert (failed["status"], failed["errors"][0]["code"]) == ("failed", 132015)
    assert unpaused.body["success"] is False


async def test_content_of_marketing_is_detected(bench: Bench) -> None:
    await bench.control("PUT", "settings", {"marketing_words": ["discount"]})

    await bench.send_text("Get a discount today.", category="utility")

    [value] = await bench.receiver.wait_until(lambda: bench.receiver.changes("template_correct_category_detection"))
    [template] = await generated(bench, correct_category="MARKETING")
    assert value == {
        "message_template_id": int(template["id"]),
        "message_template_name": template["name"],
        "message_template_language": "en_US",
        "category": "UTILITY",
        "correct_category": "MARKETING",
    }


async def test_generated_template_that_no_message_used_is_deleted_after_a_day(slow: Bench, clock: ManualClock) -> None:
    bench = slow
    await bench.send_text("Parcel 1 is ready.", category="utility")
    await bench.send_text("Order 1 is ready.", category="utility")
    await bench.send_text("Order 2 is ready.", category="utility")

    clock.advance(ms=DAY_MS + 1000)

    async def bodies() -> set[str]:
        return {template["components"][0]["text"] for template in await generated(bench)}

    await poll_until(bodies, lambda texts: texts == {"{{1}}", "Order {{1}} is ready."})


async def test_number_id_is_the_senders(bench: Bench) -> None:
    await bench.send_text("Hello", category="utility")

    await bench.receiver.wait_until(lambda: bench.receiver.statuses())
    assert {value["metadata"]["phone_number_id"] for value in bench.receiver.changes()} == {NUMBER_ID}
