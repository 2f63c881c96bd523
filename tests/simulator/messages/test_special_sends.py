"""Sends of special templates: media, offers, carousels, catalogs, flows, one-time codes."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench
from tests.support.manual_clock import ManualClock

JsonObject = dict[str, Any]
HELLO: JsonObject = {"type": "BODY", "text": "Hello there"}


def button_row(*buttons: JsonObject) -> JsonObject:
    return {"type": "BUTTONS", "buttons": list(buttons)}


def media_header(header_format: str) -> JsonObject:
    return {"type": "HEADER", "format": header_format, "example": {"header_handle": ["4::x"]}}


def header(kind: str, content: JsonObject) -> JsonObject:
    return {"type": "header", "parameters": [{"type": kind, kind: content}]}


def button(index: int, sub_type: str, parameter: JsonObject) -> JsonObject:
    return {"type": "button", "sub_type": sub_type, "index": index, "parameters": [parameter]}


def action(index: int, sub_type: str, **content: Any) -> JsonObject:
    return button(index, sub_type, {"type": "action", "action": content})


def expiry(at_ms: Any) -> JsonObject:
    parameter = {"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": at_ms}}
    return {"type": "limited_time_offer", "parameters": [parameter]}


CODE = button(0, "copy_code", {"type": "coupon_code", "coupon_code": "SAVE20"})
OFFER: list[JsonObject] = [
    media_header("IMAGE"),
    {"type": "BODY", "text": "Hello {{1}}, all is cheaper now", "example": {"body_text": "Ann"}},
    {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Ends soon!", "has_expiration": True}},
    button_row(
        {"type": "COPY_CODE", "example": "SAVE20"},
        {"type": "URL", "text": "Shop", "url": "https://x.example/{{1}}", "example": ["https://x.example/a"]},
    ),
]
CARD: JsonObject = {
    "components": [
        media_header("IMAGE"),
        {"type": "BODY", "text": "Only {{1}} are left", "example": {"body_text": ["5"]}},
        button_row(
            {"type": "QUICK_REPLY", "text": "More"},
            {"type": "URL", "text": "Buy", "url": "https://x.example/{{1}}", "example": ["https://x.example/a"]},
        ),
    ]
}
SECTIONS: list[JsonObject] = [
    {"title": "Top", "product_items": [{"product_retailer_id": "a"}, {"product_retailer_id": "b"}]}
]


def card(index: int, picture: JsonObject, payload: str) -> JsonObject:
    return {
        "card_index": index,
        "components": [
            header("image", picture),
            {"type": "body", "parameters": [{"type": "text", "text": str(index + 1)}]},
            button(0, "quick_reply", {"type": "payload", "payload": payload}),
            button(1, "url", {"type": "text", "text": f"p{index}"}),
        ],
    }


async def test_header_media_is_shown_with_its_mime_type(bench: Bench) -> None:
    await bench.seed_template([media_header("DOCUMENT"), HELLO])
    media_id = await bench.upload_media("application/pdf")

    response = await bench.send_template([header("document", {"id": media_id, "filename": "a.pdf"})])

    assert response.status == 200, response.body
    [message] = await bench.inbox()
    assert message["header"] == {
        "format": "DOCUMENT",
        "document": {"id": media_id, "filename": "a.pdf", "mime_type": "application/pdf"},
    }
    assert message["template"] == {"name": "seeded", "language": "en_US", "category": "UTILITY"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({"id": "7000000000000000"}, 131053),
        ({"id": "PICTURE"}, 131053),
        ({"id": "1", "link": "https://x.example/a.pdf"}, 100),
        ({"filename": "a.pdf"}, 100),
        ({"link": "https://x.example/a.pdf", "caption": "Look"}, 131009),
    ],
)
async def test_unsuitable_header_media_is_rejected_at_once(bench: Bench, content: JsonObject, code: int) -> None:
    await bench.seed_template([media_header("DOCUMENT"), HELLO])
    if content.get("id") == "PICTURE":
        content = {"id": await bench.upload_media("image/png")}

    response = await bench.send_template([header("document", content)])

    assert (response.status, response.error["code"]) == (400, code)


async def test_location_header_shows_its_location(bench: Bench) -> None:
    await bench.seed_template([{"type": "HEADER", "format": "LOCATION"}, HELLO])
    location = {"latitude": "37.4", "longitude": -122.1, "name": "Shop", "address": "1 Main St"}

    response = await bench.send_template([header("location", location)])
    without = await bench.send_template([header("location", {"latitude": "37.4"})])
    out_of_range = await bench.send_template([header("location", {**location, "latitude": 91})])

    assert response.status == 200
    assert (await bench.inbox())[0]["header"] == {"format": "LOCATION", "location": location}
    assert without.error["code"] == 131008
    assert out_of_range.error["code"] == 131009


async def test_offer_shows_its_text_expiry_and_code(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(OFFER, category="MARKETING")
    until_ms = clock.now_ms() + 3_600_000
    picture = header("image", {"link": "https://x.example/a.png"})
    body = {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]}
    url = button(1, "url", {"type": "text", "text": "sale"})

    response = await slow.send_template([picture, body, expiry(until_ms), CODE, url])
    clock.advance(ms=1000)

    assert response.status == 200, response.body
    [message] = await slow.inbox()
    assert message["limited_time_offer"] == {"text": "Ends soon!", "expiration_time_ms": until_ms}
    assert message["buttons"] == [
        {"index": 0, "type": "COPY_CODE", "text": "Copy offer code", "code": "SAVE20"},
        {"index": 1, "type": "URL", "text": "Shop", "url": "https://x.example/sale"},
    ]


@pytest.mark.parametrize(("at", "code"), [(None, 131008), ("seconds", 131009), ("past", 131009), ("text", 131009)])
async def test_offer_expiry_must_be_in_the_future_in_milliseconds(
    slow: Bench, clock: ManualClock, at: str | None, code: int
) -> None:
    await slow.seed_template(OFFER, category="MARKETING")
    now_ms = clock.now_ms()
    times = {"seconds": now_ms // 1000 + 3600, "past": now_ms, "text": "soon"}
    picture = header("image", {"link": "https://x.example/a.png"})
    body = {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]}
    url = button(1, "url", {"type": "text", "text": "sale"})
    ends = [expiry(times[at])] if at else []

    response = await slow.send_template([picture, body, *ends, CODE, url])

    assert (response.status, response.error["code"]) == (400, code)


async def test_each_card_shows_its_own_parameters(bench: Bench) -> None:
    await bench.seed_template([HELLO, {"type": "CAROUSEL", "cards": [CARD, CARD]}], category="MARKETING")
    picture = {"id": await bench.upload_media("image/png")}
    link = {"link": "https://x.example/a.png"}
    cards = [card(1, link, "second"), card(0, picture, "first")]

    response = await bench.send_template([{"type": "carousel", "cards": cards}])

    assert response.status == 200, response.body
    [message] = await bench.inbox()
    first, second = message["cards"]
    assert first["header"]["image"]["id"] == picture["id"]
    assert second == {
        "index": 1,
        "header": {"format": "IMAGE", "image": link},
        "text": "Only 2 are left",
        "buttons": [
            {"index": 0, "type": "QUICK_REPLY", "text": "More", "payload": "second"},
            {"index": 1, "type": "URL", "text": "Buy", "url": "https://x.example/p1"},
        ],
    }


async def test_tapped_card_returns_its_own_payload(bench: Bench) -> None:
    await bench.seed_template([HELLO, {"type": "CAROUSEL", "cards": [CARD, CARD]}], category="MARKETING")
    link = {"link": "https://x.example/a.png"}
    cards = [card(0, link, "first"), card(1, link, "second")]
    sent = await bench.send_template([{"type": "carousel", "cards": cards}])

    await bench.control("POST", f"phones/{ANN}/tap", {"card": 1, "index": 0})
    beyond = await bench.control("POST", f"phones/{ANN}/tap", {"card": 2, "index": 0})

    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    assert message["button"] == {"payload": "second", "text": "More"}
    assert message["context"]["id"] == sent.body["messages"][0]["id"]
    assert (beyond.status, beyond.body["field"]) == (404, "card")


@pytest.mark.parametrize("count", [1, 3])
async def test_carousel_must_have_as_many_cards_as_its_template(bench: Bench, count: int) -> None:
    await bench.seed_template([HELLO, {"type": "CAROUSEL", "cards": [CARD, CARD]}], category="MARKETING")
    link = {"link": "https://x.example/a.png"}
    cards = [card(index, link, "x") for index in range(count)]

    response = await bench.send_template([{"type": "carousel", "cards": cards}])

    assert (response.status, response.error["code"]) == (400, 132012)


# fmt: off
BUTTONS: list[tuple[str, list[JsonObject], JsonObject, list[JsonObject], JsonObject]] = [
    # what           components                                                    button of the template                   sent                                                             shown
    ("catalog",      [],                                                           {"type": "CATALOG", "text": "View"},     [action(0, "CATALOG", thumbnail_product_retailer_id="a")],       {"thumbnail_product_retailer_id": "a"}),
    ("bare catalog", [],                                                           {"type": "CATALOG", "text": "View"},     [],                                                              {}),
    ("items",        [{"type": "HEADER", "text": "Ours"}],                         {"type": "MPM", "text": "View"},         [action(0, "mpm", thumbnail_product_retailer_id="a", sections=SECTIONS)], {"thumbnail_product_retailer_id": "a", "sections": SECTIONS}),
    ("flow",         [],                                                           {"type": "FLOW", "text": "Book", "flow_id": "1", "navigate_screen": "S"}, [action(0, "flow", flow_token="t", flow_action_data={"k": "v"})], {"flow_id": "1", "flow_token": "t", "flow_action": "navigate", "screen": "S", "flow_action_data": {"k": "v"}}),
    ("bare flow",    [],                                                           {"type": "FLOW", "text": "Book", "flow_id": "1"}, [],                                                     {"flow_id": "1", "flow_token": "unused", "flow_action": "navigate"}),
    ("phone call",   [],                                                           {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"}, [],                             {"phone_number": "+15550001111"}),
]
# fmt: on


@pytest.mark.parametrize(
    ("components", "template_button", "sent", "shown"), [row[1:] for row in BUTTONS],
    ids=[row[0] for row in BUTTONS],
)  # fmt: skip
async def test_button_shows_its_action(
    bench: Bench, components: list[JsonObject], template_button: JsonObject, sent: list[JsonObject], shown: JsonObject
) -> None:
    await bench.seed_template([*components, HELLO, button_row(template_button)], category="MARKETING")

    response = await bench.send_template(sent)

    assert response.status == 200, response.body
    [message] = await bench.inbox()
    expected = {"index": 0, "type": template_button["type"], "text": template_button["text"], **shown}
    assert message["buttons"] == [expected]


A: JsonObject = {"product_retailer_id": "a"}
WRONG_SECTIONS: list[tuple[list[JsonObject], int]] = [
    ([], 131008),
    ([{"title": "A", "product_items": []}], 131008),
    ([{"title": "x" * 25, "product_items": [A]}], 131009),
    ([{"title": "A", "product_items": [A] * 31}], 131009),
    ([{"title": "A", "product_items": [A]}] * 11, 131009),
    ([{"product_items": [A]}] * 2, 131009),
]


@pytest.mark.parametrize(("sections", "code"), WRONG_SECTIONS)
async def test_product_sections_are_limited(bench: Bench, sections: list[JsonObject], code: int) -> None:
    components = [{"type": "HEADER", "text": "Ours"}, HELLO, button_row({"type": "MPM", "text": "View"})]
    await bench.seed_template(components, category="MARKETING")

    response = await bench.send_template([action(0, "mpm", sections=sections)])

    assert (response.status, response.error["code"]) == (400, code)


async def test_product_header_names_its_product(bench: Bench) -> None:
    components = [{"type": "HEADER", "format": "PRODUCT"}, HELLO, button_row({"type": "SPM", "text": "View"})]
    await bench.seed_template(components, category="MARKETING")
    product = {"product_retailer_id": "sku", "catalog_id": "1"}

    response = await bench.send_template([header("product", product)])
    without = await bench.send_template()

    assert response.status == 200
    assert (await bench.inbox())[0]["header"] == {"format": "PRODUCT", "product": product}
    assert without.error["code"] == 132012


def code_components(text: str, in_button: str | None = None) -> list[JsonObject]:
    parameter = {"type": "text", "text": text}
    pressed = {"type": "text", "text": text if in_button is None else in_button}
    return [{"type": "body", "parameters": [parameter]}, button(0, "url", pressed)]


async def test_one_time_code_is_in_the_text_and_on_the_button(bench: Bench) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy it"}
    await bench.seed_template([{"type": "BODY"}, button_row(otp)], category="AUTHENTICATION")

    response = await bench.send_template(code_components("123456"))

    assert response.status == 200, response.body
    [message] = await bench.inbox()
    assert message["text"] == "*123456* is your verification code."
    assert message["buttons"] == [
        {"index": 0, "type": "OTP", "text": "Copy it", "otp_type": "COPY_CODE", "code": "123456"}
    ]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        (code_components("1" * 16), 132018),
        (code_components("https://x.ex"), 132018),
        (code_components("1234\U0001f600"), 132018),
        (code_components("123456")[:1], 131008),
        (code_components("123456")[1:], 132000),
        (code_components("123456", "1" * 16), 132018),
    ],
)
async def test_invalid_one_time_code_is_rejected(bench: Bench, components: list[JsonObject], code: int) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE"}
    await bench.seed_template([{"type": "BODY"}, button_row(otp)], category="AUTHENTICATION")

    response = await bench.send_template(components)

    assert (response.status, response.error["code"]) == (400, code)


async def test_phone_can_report_that_the_code_was_not_requested(bench: Bench) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE"}
    await bench.seed_template([{"type": "BODY"}, button_row(otp)], category="AUTHENTICATION")
    await bench.send_template(code_components("123456"))

    await bench.control("POST", f"phones/{ANN}/tap", {"not_requested": True})

    [message] = await bench.receiver.wait_until(bench.receiver.messages)
    assert message["button"] == {"payload": "DID_NOT_REQUEST_CODE", "text": "I didn't request a code"}
    statuses = await bench.receiver.wait_until(bench.receiver.statuses)
    assert statuses[0]["pricing"]["category"] == "authentication"
