"""Template sends, checked against the template."""

from typing import Any

import pytest

from tests.simulator.conftest import ANN, Bench

JsonObject = dict[str, Any]
TEMPLATE: list[JsonObject] = [
    {"type": "HEADER", "text": "For {{1}}", "example": {"header_text": ["Ann"]}},
    {"type": "BODY", "text": "Hi {{1}}, your parcel {{2}} left today.", "example": {"body_text": [["Ann", "PX-9"]]}},
    {"type": "FOOTER", "text": "Reply STOP to opt out"},
    {
        "type": "BUTTONS",
        "buttons": [
            {"type": "QUICK_REPLY", "text": "Yes"},
            {"type": "QUICK_REPLY", "text": "No"},
            {
                "type": "URL",
                "text": "Track",
                "url": "https://x.example/t/{{1}}",
                "example": ["https://x.example/t/PX-9"],
            },
        ],
    },
]


def texts(*values: str) -> list[JsonObject]:
    return [{"type": "text", "text": value} for value in values]


def button(index: int | str, sub_type: str, parameter: JsonObject | None) -> JsonObject:
    parameters = [] if parameter is None else [parameter]
    return {"type": "button", "sub_type": sub_type, "index": index, "parameters": parameters}


def currency(**more: Any) -> JsonObject:
    return {"type": "currency", "currency": {"fallback_value": "$10", "code": "USD", "amount_1000": 10000} | more}


HEADER: JsonObject = {"type": "header", "parameters": texts("Ann")}
BODY: JsonObject = {"type": "body", "parameters": texts("Ann", "PX-9")}
URL = button("2", "url", {"type": "text", "text": "PX-9"})
TOO_MANY = {"type": "body", "parameters": texts("a", "b", "c")}


def payload(text: Any) -> JsonObject:
    return button(0, "quick_reply", {"type": "payload", "payload": text})


# fmt: off
REJECTED: list[tuple[str, list[JsonObject] | None, int]] = [
    # what                      components                                                   code
    ("no components",           None,                                                        132000),
    ("no header parameter",     [BODY, URL],                                                 132000),
    ("too many parameters",     [HEADER, TOO_MANY, URL],                                     132000),
    ("no url parameter",        [HEADER, BODY],                                              131008),
    ("empty url parameter",     [HEADER, BODY, button(2, "url", None)],                      131008),
    ("line break in a text",    [HEADER, {"type": "body", "parameters": texts("a\nb", "c")}, URL], 132018),
    ("tab in a text",           [HEADER, {"type": "body", "parameters": texts("a\tb", "c")}, URL], 132018),
    ("five spaces in a text",   [HEADER, {"type": "body", "parameters": texts("a     b", "c")}, URL], 132018),
    ("empty text",              [HEADER, {"type": "body", "parameters": texts("", "c")}, URL], 132018),
    ("no text",                 [HEADER, {"type": "body", "parameters": [{"type": "text"}, {}]}, URL], 131008),
    ("text is a number",        [HEADER, {"type": "body", "parameters": [7, 8]}, URL],       131009),
    ("long header",             [{"type": "header", "parameters": texts("x" * 57)}, BODY, URL], 132005),
    ("long body",               [HEADER, {"type": "body", "parameters": texts("x" * 1024, "c")}, URL], 132005),
    ("image in a text header",  [{"type": "header", "parameters": [{"type": "image", "image": {"id": "1"}}]}, BODY, URL], 132012),
    ("wrong kind of button",    [HEADER, BODY, URL, button(0, "url", {"type": "text", "text": "a"})], 132018),
    ("no such button",          [HEADER, BODY, URL, button(7, "quick_reply", None)],         131009),
    ("payload without text",    [HEADER, BODY, URL, payload("")],                            131008),
    ("long payload",            [HEADER, BODY, URL, payload("x" * 257)],                     131009),
    ("return in a text",        [HEADER, {"type": "body", "parameters": texts("a\rb", "c")}, URL], 132018),
    ("two header parameters",   [{"type": "header", "parameters": texts("a", "b")}, BODY, URL], 132000),
    ("two url parameters",      [HEADER, BODY, {**URL, "parameters": texts("a", "b")}],      132000),
    ("offer's end",             [HEADER, BODY, URL, {"type": "limited_time_offer", "parameters": [{"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": 1}}]}], 132000),
    ("currency without a code", [HEADER, {"type": "body", "parameters": [currency(code=None), *texts("c")]}, URL], 131008),
    ("currency without amount", [HEADER, {"type": "body", "parameters": [currency(amount_1000=None), *texts("c")]}, URL], 131008),
    ("currency in small letters", [HEADER, {"type": "body", "parameters": [currency(code="usd"), *texts("c")]}, URL], 131009),
    ("currency with a fraction", [HEADER, {"type": "body", "parameters": [currency(amount_1000="ten"), *texts("c")]}, URL], 131009),
    ("unknown component",       [HEADER, BODY, URL, {"type": "tail"}],                       131009),
]
# fmt: on


@pytest.mark.parametrize(("components", "code"), [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
async def test_send_that_does_not_match_the_template_is_rejected(
    bench: Bench, components: list[JsonObject] | None, code: int
) -> None:
    await bench.seed_template(TEMPLATE)

    response = await bench.send_template(components)

    assert (response.status, response.error["code"]) == (400, code)
    assert response.error["message"].startswith(f"(#{code}) ")
    assert response.error["error_data"]["messaging_product"] == "whatsapp"


async def test_errors_have_the_documented_details(bench: Bench) -> None:
    await bench.seed_template(TEMPLATE)

    count = await bench.send_template([HEADER, {"type": "body", "parameters": texts("a")}, URL])
    link = await bench.send_template([HEADER, BODY])
    unknown = await bench.send_template(name="other")

    assert count.error["error_data"]["details"] == (
        "body: number of localizable_params (1) does not match the expected number of params (2)"
    )
    assert link.error["error_data"]["details"] == ("buttons: Button at index 2 of type Url requires a parameter")
    assert (unknown.status, unknown.error["code"]) == (404, 132001)
    assert unknown.error["error_data"]["details"] == ("template name (other) does not exist in en_US")


async def test_phone_shows_the_rendered_template(bench: Bench) -> None:
    await bench.seed_template(TEMPLATE)

    response = await bench.send_template([HEADER, BODY, URL, payload("ok-1")], biz_opaque_callback_data="mine")

    assert response.body["messages"][0]["message_status"] == "accepted"
    inbox = await bench.control("GET", f"phones/{ANN}")
    [message] = inbox.body["messages"]
    assert message["header"] == {"format": "TEXT", "text": "For Ann"}
    assert message["text"] == "Hi Ann, your parcel PX-9 left today."
    assert message["footer"] == "Reply STOP to opt out"
    assert message["callback_data"] == "mine"
    assert message["buttons"] == [
        {"index": 0, "type": "QUICK_REPLY", "text": "Yes", "payload": "ok-1"},
        {"index": 1, "type": "QUICK_REPLY", "text": "No", "payload": "No"},
        {"index": 2, "type": "URL", "text": "Track", "url": "https://x.example/t/PX-9"},
    ]


async def test_template_is_delivered_outside_the_window(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Hello there"}])
    response = await bench.send_template()

    wamid = response.body["messages"][0]["id"]
    await bench.receiver.wait_until(lambda: len(bench.receiver.statuses(wamid)) == 2)
    sent = bench.receiver.statuses(wamid)[0]
    assert sent["pricing"]["type"] == "regular"
    assert sent["pricing"]["category"] == "utility"


async def test_named_parameters_are_matched_by_name(bench: Bench) -> None:
    named = {"param_name": "first_name", "example": "Ann"}, {"param_name": "parcel", "example": "P"}
    body = {
        "type": "BODY",
        "text": "Hi {{first_name}}, your parcel {{parcel}} left today.",
        "example": {"body_text_named_params": list(named)},
    }
    await bench.seed_template([body], parameter_format="NAMED")
    parameters = [
        {"type": "text", "parameter_name": "parcel", "text": "PX-9"},
        {"type": "text", "parameter_name": "first_name", "text": "Ann"},
    ]

    response = await bench.send_template([{"type": "body", "parameters": parameters}])
    nameless = await bench.send_template([{"type": "body", "parameters": texts("a", "b")}])

    inbox = await bench.control("GET", f"phones/{ANN}")
    assert response.status == 200
    assert inbox.body["messages"][0]["text"] == "Hi Ann, your parcel PX-9 left today."
    assert nameless.error["code"] == 132000


async def test_header_that_the_template_does_not_have_is_rejected(bench: Bench) -> None:
    await bench.seed_template([{"type": "BODY", "text": "Look at this"}])
    image = {"type": "image", "image": {"link": "https://x.example/a.png"}}

    response = await bench.send_template([{"type": "header", "parameters": [image]}])

    assert response.error["code"] == 132000
    assert response.error["error_data"]["details"] == (
        "header: number of localizable_params (1) does not match the expected number of params (0)"
    )


async def test_media_header_always_needs_its_parameter(bench: Bench) -> None:
    header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::x"]}}
    await bench.seed_template([header, {"type": "BODY", "text": "Look at this"}])
    image = {"type": "image", "image": {"link": "https://x.example/a.png"}}
    video = {"type": "video", "video": {"id": "1"}}

    without = await bench.send_template()
    wrong = await bench.send_template([{"type": "header", "parameters": [video]}])
    right = await bench.send_template([{"type": "header", "parameters": [image]}])

    assert without.error["code"] == wrong.error["code"] == 132012
    assert without.error["error_data"]["details"] == ("header: Format mismatch, expected IMAGE, received UNKNOWN")
    assert right.status == 200


async def test_template_that_is_not_approved_cannot_be_sent(slow: Bench) -> None:
    await slow.create_template([{"type": "BODY", "text": "Hello there"}], name="pending")

    response = await slow.send_template(name="pending")

    assert (response.status, response.error["code"]) == (404, 132001)


async def test_authentication_code_is_in_body_and_button(bench: Bench) -> None:
    await bench.seed_template(
        [{"type": "BODY"}, {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE"}]}],
        category="AUTHENTICATION",
    )
    code = {"type": "text", "text": "123456"}

    response = await bench.send_template([{"type": "body", "parameters": [code]}, button("0", "url", code)])

    inbox = await bench.control("GET", f"phones/{ANN}")
    assert response.status == 200
    assert inbox.body["messages"][0]["text"] == "*123456* is your verification code."
