"""Sends of the special templates: media, offers, carousels, catalogs, flows, one-time codes."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench
from waypost.base.clock import ManualClock

Part = dict[str, Any]
HELLO: Part = {"type": "BODY", "text": "Hello there"}


def row_of(*buttons: Part) -> Part:
    return {"type": "BUTTONS", "buttons": list(buttons)}


def media_header(header_format: str) -> Part:
    return {"type": "HEADER", "format": header_format, "example": {"header_handle": ["4::x"]}}


def header(kind: str, content: Part) -> Part:
    return {"type": "header", "parameters": [{"type": kind, kind: content}]}


def button(index: int, sub_type: str, parameter: Part) -> Part:
    return {"type": "button", "sub_type": sub_type, "index": index, "parameters": [parameter]}


def action(index: int, sub_type: str, **content: Any) -> Part:
    return button(index, sub_type, {"type": "action", "action": content})


def expiry(at_ms: Any) -> Part:
    parameter = {"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": at_ms}}
    return {"type": "limited_time_offer", "parameters": [parameter]}


CODE = button(0, "copy_code", {"type": "coupon_code", "coupon_code": "SAVE20"})
OFFER: list[Part] = [
    media_header("IMAGE"),
    {"type": "BODY", "text": "Hello {{1}}, all is cheaper now", "example": {"body_text": "Ann"}},
    {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Ends soon!", "has_expiration": True}},
    row_of(
        {"type": "COPY_CODE", "example": "SAVE20"},
        {"type": "URL", "text": "Shop", "url": "https://x.example/{{1}}", "example": ["https://x.example/a"]},
    ),
]
CARD: Part = {
    "components": [
        media_header("IMAGE"),
        {"type": "BODY", "text": "Only {{1}} are left", "example": {"body_text": ["5"]}},
        row_of(
            {"type": "QUICK_REPLY", "text": "More"},
            {"type": "URL", "text": "Buy", "url": "https://x.example/{{1}}", "example": ["https://x.example/a"]},
        ),
    ]
}
SECTIONS: list[Part] = [{"title": "Top", "product_items": [{"product_retailer_id": "a"}, {"product_retailer_id": "b"}]}]


def card(index: int, picture: Part, payload: str) -> Part:
    return {
        "card_index": index,
        "components": [
            header("image", picture),
            {"type": "body", "parameters": [{"type": "text", "text": str(index + 1)}]},
            button(0, "quick_reply", {"type": "payload", "payload": payload}),
            button(1, "url", {"type": "text", "text": f"p{index}"}),
        ],
    }


async def test_media_of_the_number_are_shown_with_their_type(bench: Bench) -> None:
    await bench.seed_template([media_header("DOCUMENT"), HELLO])
    media_id = await bench.media_of("application/pdf")

    answer = await bench.send_template([header("document", {"id": media_id, "filename": "a.pdf"})])

    assert answer.status == 200, answer.body
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
async def test_media_that_do_not_fit_are_refused_at_once(bench: Bench, content: Part, code: int) -> None:
    await bench.seed_template([media_header("DOCUMENT"), HELLO])
    if content.get("id") == "PICTURE":
        content = {"id": await bench.media_of("image/png")}

    answer = await bench.send_template([header("document", content)])

    assert (answer.status, answer.error["code"]) == (400, code)


async def test_place_of_a_location_header_is_shown(bench: Bench) -> None:
    await bench.seed_template([{"type": "HEADER", "format": "LOCATION"}, HELLO])
    place = {"latitude": "37.4", "longitude": -122.1, "name": "Shop", "address": "1 Main St"}

    answer = await bench.send_template([header("location", place)])
    without = await bench.send_template([header("location", {"latitude": "37.4"})])
    nowhere = await bench.send_template([header("location", {**place, "latitude": 91})])

    assert answer.status == 200
    assert (await bench.inbox())[0]["header"] == {"format": "LOCATION", "location": place}
    assert without.error["code"] == 131008
    assert nowhere.error["code"] == 131009


async def test_offer_shows_its_line_its_end_and_its_code(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(OFFER, category="MARKETING")
    until_ms = manual.now_ms() + 3_600_000
    picture = header("image", {"link": "https://x.example/a.png"})
    body = {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]}
    url = button(1, "url", {"type": "text", "text": "sale"})

    answer = await slow.send_template([picture, body, expiry(until_ms), CODE, url])
    manual.advance(ms=1000)

    assert answer.status == 200, answer.body
    [message] = await slow.inbox()
    assert message["limited_time_offer"] == {"text": "Ends soon!", "expiration_time_ms": until_ms}
    assert message["buttons"] == [
        {"index": 0, "type": "COPY_CODE", "text": "Copy offer code", "code": "SAVE20"},
        {"index": 1, "type": "URL", "text": "Shop", "url": "https://x.example/sale"},
    ]


@pytest.mark.parametrize(("at", "code"), [(None, 131008), ("seconds", 131009), ("past", 131009), ("text", 131009)])
async def test_offer_must_end_later_in_milliseconds(
    slow: Bench, manual: ManualClock, at: str | None, code: int
) -> None:
    await slow.seed_template(OFFER, category="MARKETING")
    now_ms = manual.now_ms()
    times = {"seconds": now_ms // 1000 + 3600, "past": now_ms, "text": "soon"}
    picture = header("image", {"link": "https://x.example/a.png"})
    body = {"type": "body", "parameters": [{"type": "text", "text": "Ann"}]}
    url = button(1, "url", {"type": "text", "text": "sale"})
    ends = [expiry(times[at])] if at else []

    answer = await slow.send_template([picture, body, *ends, CODE, url])

    assert (answer.status, answer.error["code"]) == (400, code)


async def test_cards_are_shown_each_with_its_own(bench: Bench) -> None:
    await bench.seed_template([HELLO, {"type": "CAROUSEL", "cards": [CARD, CARD]}], category="MARKETING")
    picture = {"id": await bench.media_of("image/png")}
    link = {"link": "https://x.example/a.png"}
    cards = [card(1, link, "second"), card(0, picture, "first")]

    answer = await bench.send_template([{"type": "carousel", "cards": cards}])

    assert answer.status == 200, answer.body
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

    [message] = await bench.receiver.until(bench.receiver.messages)
    assert message["button"] == {"payload": "second", "text": "More"}
    assert message["context"]["id"] == sent.body["messages"][0]["id"]
    assert (beyond.status, beyond.body["field"]) == (404, "card")


@pytest.mark.parametrize("count", [1, 3])
async def test_carousel_has_as_many_cards_as_its_template(bench: Bench, count: int) -> None:
    await bench.seed_template([HELLO, {"type": "CAROUSEL", "cards": [CARD, CARD]}], category="MARKETING")
    link = {"link": "https://x.example/a.png"}
    cards = [card(index, link, "x") for index in range(count)]

    answer = await bench.send_template([{"type": "carousel", "cards": cards}])

    assert (answer.status, answer.error["code"]) == (400, 132012)


# fmt: off
BUTTONS: list[tuple[str, list[Part], Part, list[Part], Part]] = [
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
    ("components", "given", "sent", "shown"), [row[1:] for row in BUTTONS],
    ids=[row[0] for row in BUTTONS],
)  # fmt: skip
async def test_button_shows_what_it_does(
    bench: Bench, components: list[Part], given: Part, sent: list[Part], shown: Part
) -> None:
    await bench.seed_template([*components, HELLO, row_of(given)], category="MARKETING")

    answer = await bench.send_template(sent)

    assert answer.status == 200, answer.body
    [message] = await bench.inbox()
    expected = {"index": 0, "type": given["type"], "text": given["text"], **shown}
    assert message["buttons"] == [expected]


A: Part = {"product_retailer_id": "a"}
WRONG_SECTIONS: list[tuple[list[Part], int]] = [
    ([], 131008),
    ([{"title": "A", "product_items": []}], 131008),
    ([{"title": "x" * 25, "product_items": [A]}], 131009),
    ([{"title": "A", "product_items": [A] * 31}], 131009),
    ([{"title": "A", "product_items": [A]}] * 11, 131009),
    ([{"product_items": [A]}] * 2, 131009),
]


@pytest.mark.parametrize(("sections", "code"), WRONG_SECTIONS)
async def test_sections_of_products_have_their_limits(bench: Bench, sections: list[Part], code: int) -> None:
    components = [{"type": "HEADER", "text": "Ours"}, HELLO, row_of({"type": "MPM", "text": "View"})]
    await bench.seed_template(components, category="MARKETING")

    answer = await bench.send_template([action(0, "mpm", sections=sections)])

    assert (answer.status, answer.error["code"]) == (400, code)


async def test_product_header_names_its_product(bench: Bench) -> None:
    components = [{"type": "HEADER", "format": "PRODUCT"}, HELLO, row_of({"type": "SPM", "text": "View"})]
    await bench.seed_template(components, category="MARKETING")
    product = {"product_retailer_id": "sku", "catalog_id": "1"}

    answer = await bench.send_template([header("product", product)])
    without = await bench.send_template()

    assert answer.status == 200
    assert (await bench.inbox())[0]["header"] == {"format": "PRODUCT", "product": product}
    assert without.error["code"] == 132012


def coded(text: str, in_button: str | None = None) -> list[Part]:
    parameter = {"type": "text", "text": text}
    pressed = {"type": "text", "text": text if in_button is None else in_button}
    return [{"type": "body", "parameters": [parameter]}, button(0, "url", pressed)]


async def test_code_is_in_the_text_and_on_the_button(bench: Bench) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy it"}
    await bench.seed_template([{"type": "BODY"}, row_of(otp)], category="AUTHENTICATION")

    answer = await bench.send_template(coded("123456"))

    assert answer.status == 200, answer.body
    [message] = await bench.inbox()
    assert message["text"] == "*123456* is your verification code."
    assert message["buttons"] == [
        {"index": 0, "type": "OTP", "text": "Copy it", "otp_type": "COPY_CODE", "code": "123456"}
    ]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        (coded("1" * 16), 132018),
        (coded("https://x.ex"), 132018),
        (coded("1234\U0001f600"), 132018),
        (coded("123456")[:1], 131008),
        (coded("123456")[1:], 132000),
        (coded("123456", "1" * 16), 132018),
    ],
)
async def test_code_that_is_none_is_refused(bench: Bench, components: list[Part], code: int) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE"}
    await bench.seed_template([{"type": "BODY"}, row_of(otp)], category="AUTHENTICATION")

    answer = await bench.send_template(components)

    assert (answer.status, answer.error["code"]) == (400, code)


async def test_person_can_say_that_the_code_was_not_asked_for(bench: Bench) -> None:
    otp = {"type": "OTP", "otp_type": "COPY_CODE"}
    await bench.seed_template([{"type": "BODY"}, row_of(otp)], category="AUTHENTICATION")
    await bench.send_template(coded("123456"))

    await bench.control("POST", f"phones/{ANN}/tap", {"not_requested": True})

    [message] = await bench.receiver.until(bench.receiver.messages)
    assert message["button"] == {"payload": "DID_NOT_REQUEST_CODE", "text": "I didn't request a code"}
    statuses = await bench.receiver.until(bench.receiver.statuses)
    assert statuses[0]["pricing"]["category"] == "authentication"
