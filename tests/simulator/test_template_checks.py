"""Templates that are refused at once, one row each."""

from typing import Any

import pytest

from tests.simulator.conftest import WABA, Bench

Part = dict[str, Any]
HANDLE = "4::aW1hZ2UvcG5n:ARZ:e:1800000000:3000000000000003:1:ARY"


def body(text: str, *values: str) -> Part:
    part: Part = {"type": "BODY", "text": text}
    return part | ({"example": {"body_text": [list(values)]}} if values else {})


def buttons(*given: Part) -> list[Part]:
    return [body("Hello there"), {"type": "BUTTONS", "buttons": list(given)}]


def reply(text: str = "Yes") -> Part:
    return {"type": "QUICK_REPLY", "text": text}


def link(url: str = "https://x.example/a", **more: Any) -> Part:
    return {"type": "URL", "text": "Open", "url": url, **more}


CALL = {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"}
CODE = {"type": "COPY_CODE", "example": "SAVE20"}
HELLO = [body("Hello there")]

# fmt: off
REFUSED: list[tuple[str, list[Part], dict[str, Any], int | None]] = [
    # what                  components                                             fields                      subcode
    ("name in capitals",    HELLO,                                                 {"name": "Greeting"},       None),
    ("name too long",       HELLO,                                                 {"name": "x" * 513},        None),
    ("unknown language",    HELLO,                                                 {"language": "en-US"},      None),
    ("unknown category",    HELLO,                                                 {"category": "PROMO"},      None),
    ("unknown format",      HELLO,                                                 {"parameter_format": "X"},  None),
    ("no components",       [],                                                    {},                         None),
    ("unknown component",   [body("Hello"), {"type": "TAIL"}],                     {},                         None),
    ("two bodies",          [body("Hello"), body("Hello")],                        {},                         None),
    ("no body",             [{"type": "FOOTER", "text": "Bye"}],                   {},                         None),
    ("empty body",          [body("  ")],                                          {},                         None),
    ("long body",           [body("x" * 1025)],                                    {},                         2388040),
    ("leading variable",    [body("{{1}} says hello to you", "A")],                {},                         2388299),
    ("trailing variable",   [body("Hello to you from {{1}}", "A")],                {},                         2388299),
    ("too many variables",  [body("Hi {{1}} and {{2}} there", "A", "B")],          {},                         2388293),
    ("no body example",     [body("Hello {{1}}, how are you")],                    {},                         None),
    ("too few examples",    [body("Hello {{1}}, so {{2}} is here again now", "A")], {},                        None),
    ("named, no format",    [body("Hello {{name}}, how are you", "A")],            {},                         2388072),
    ("badly named",         [body("Hello {{Name}}, how are you", "A")],            {"parameter_format": "NAMED"}, 2388072),
    ("unknown header",      [{"type": "HEADER", "format": "SONG"}, *HELLO],        {},                         2388047),
    ("empty header",        [{"type": "HEADER", "format": "TEXT"}, *HELLO],        {},                         2388047),
    ("header with lines",   [{"type": "HEADER", "text": "a\nb"}, *HELLO],          {},                         2388047),
    ("bold header",         [{"type": "HEADER", "text": "*a*"}, *HELLO],           {},                         2388047),
    ("long header",         [{"type": "HEADER", "text": "x" * 61}, *HELLO],        {},                         2388040),
    ("two in the header",   [{"type": "HEADER", "text": "a {{1}} {{2}}"}, *HELLO], {},                         2388047),
    ("no header example",   [{"type": "HEADER", "text": "a {{1}}"}, *HELLO],       {},                         None),
    ("no header handle",    [{"type": "HEADER", "format": "IMAGE"}, *HELLO],       {},                         None),
    ("address as a handle", [{"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["https://x.example/a.png"]}}, *HELLO], {}, None),
    ("long footer",         [*HELLO, {"type": "FOOTER", "text": "x" * 61}],        {},                         2388040),
    ("variable in footer",  [*HELLO, {"type": "FOOTER", "text": "a {{1}}"}],       {},                         2388073),
    ("lines in footer",     [*HELLO, {"type": "FOOTER", "text": "a\nb"}],          {},                         2388073),
    ("emoji in footer",     [*HELLO, {"type": "FOOTER", "text": "a \U0001f600"}],  {},                         2388073),
    ("no buttons",          buttons(),                                             {},                         None),
    ("eleven buttons",      buttons(*[reply(f"B{n}") for n in range(11)]),         {},                         None),
    ("unknown button",      buttons({"type": "HORN", "text": "Toot"}),             {},                         None),
    ("button without text", buttons(reply("")),                                    {},                         None),
    ("long button",         buttons(reply("x" * 26)),                              {},                         None),
    ("three links",         buttons(link(), link(), link()),                       {},                         None),
    ("two calls",           buttons(CALL, CALL),                                   {},                         None),
    ("two codes",           buttons(CODE, CODE),                                   {},                         None),
    ("replies apart",       buttons(reply("A"), link(), reply("B")),               {},                         None),
    ("links apart",         buttons(link(), reply(), link()),                      {},                         None),
    ("link to nowhere",     buttons(link("")),                                     {},                         None),
    ("link to a file",      buttons(link("file:///etc/passwd")),                   {},                         None),
    ("long link",           buttons(link("https://x.example/" + "x" * 2000)),      {},                         None),
    ("variable in between", buttons(link("https://x.example/{{1}}/a", example=["A"])), {},                     None),
    ("link, no example",    buttons(link("https://x.example/{{1}}")),              {},                         None),
    ("long phone number",   buttons({**CALL, "phone_number": "1" * 21}),           {},                         None),
    ("long code",           buttons({**CODE, "example": "x" * 21}),                {},                         None),
    ("catalog and more",    buttons({"type": "CATALOG", "text": "View"}, reply()), {},                         None),
    ("short lifetime",      HELLO,                                                 {"message_send_ttl_seconds": 5}, None),
    ("late expiration",     [{"type": "BODY"}, {"type": "FOOTER", "code_expiration_minutes": 91}], {"category": "AUTHENTICATION"}, None),
]
ACCEPTED: list[tuple[str, list[Part], dict[str, Any]]] = [
    # what                  components                                             fields
    ("plain",               HELLO,                                                 {}),
    ("lower case",          [{"type": "body", "text": "Hello there"}],             {"category": "utility"}),
    ("nested example",      [body("Hello {{1}}, how are you", "Ann")],             {}),
    ("flat example",        [{**body("Hello {{1}}, how are you"), "example": {"body_text": ["Ann"]}}], {}),
    ("text example",        [{**body("Hello {{1}}, how are you"), "example": {"body_text": "Ann"}}], {}),
    ("two variables",       [body("Hi {{1}}, parcel {{2}} left today.", "Ann", "PX")], {}),
    ("named variables",     [{**body("Hi {{first_name}}, your parcel left"), "example": {"body_text_named_params": [{"param_name": "first_name", "example": "Ann"}]}}], {"parameter_format": "NAMED"}),
    ("header variable",     [{"type": "HEADER", "text": "For {{1}}", "example": {"header_text": ["Ann"]}}, *HELLO], {}),
    ("image header",        [{"type": "HEADER", "format": "image", "example": {"header_handle": [HANDLE]}}, *HELLO], {}),
    ("handle with lines",   [{"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [HANDLE + "\n" + HANDLE]}}, *HELLO], {}),
    ("location header",     [{"type": "HEADER", "format": "LOCATION"}, *HELLO],    {}),
    ("all the buttons",     buttons(reply("A"), reply("B"), link(), CALL, CODE),   {"category": "MARKETING"}),
    ("replies at the end",  buttons(link(), CALL, reply("A"), reply("B")),         {}),
    ("link with variable",  buttons(link("https://x.example/{{1}}", example=["A"])), {}),
    ("authentication",      [{"type": "BODY", "add_security_recommendation": True}, {"type": "FOOTER", "code_expiration_minutes": 10}, {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy"}]}], {"category": "AUTHENTICATION"}),
]
# fmt: on


@pytest.mark.parametrize(
    ("components", "fields", "subcode"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
async def test_template_is_refused_at_once(
    bench: Bench, components: list[Part], fields: dict[str, Any], subcode: int | None
) -> None:
    answer = await bench.create(components, **fields)

    assert (answer.status, answer.error["code"]) == (400, 100)
    assert answer.error.get("error_subcode") == subcode
    assert answer.error["type"] == "OAuthException"
    assert answer.error["fbtrace_id"]
    if subcode is not None:
        assert answer.error["message"] == "Invalid parameter"
        assert answer.error["error_user_title"]
        assert answer.error["error_user_msg"]


@pytest.mark.parametrize(
    ("components", "fields"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED]
)
async def test_template_is_taken_for_review(
    slow: Bench, components: list[Part], fields: dict[str, Any]
) -> None:
    answer = await slow.create(components, **fields)

    assert answer.status == 200, answer.body
    assert answer.body["status"] == "PENDING"
    assert answer.body["category"] == fields.get("category", "UTILITY").upper()
    assert int(answer.body["id"]) < 2**53
    assert len(answer.body["id"]) == 16


async def test_second_content_in_one_language_is_refused(slow: Bench) -> None:
    await slow.create(HELLO)

    again = await slow.create(HELLO)
    other = await slow.create(HELLO, language="en_GB")

    assert again.error["error_subcode"] == 2388024
    assert again.error["error_user_title"] == "Content in This Language Already Exists"
    assert other.status == 200


async def test_texts_of_authentication_are_the_operators(slow: Bench) -> None:
    _, components, fields = ACCEPTED[-1]
    created = await slow.create(components, **fields)

    shown = await slow.graph("GET", created.body["id"])

    part_body, footer, part_buttons = shown.body["components"]
    assert part_body["text"] == (
        "*{{1}}* is your verification code. For your security, do not share this code."
    )
    assert footer["text"] == "This code expires in 10 minutes."
    assert part_buttons["buttons"][0]["type"] == "URL"
    assert part_buttons["buttons"][0]["url"].startswith("https://www.whatsapp.com/otp/code/")


async def test_upload_is_read_back_as_an_address(slow: Bench) -> None:
    header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [HANDLE]}}
    await slow.create([header, *HELLO])

    listed = await slow.graph("GET", f"{WABA}/message_templates")

    [address] = listed.body["data"][0]["components"][0]["example"]["header_handle"]
    assert address.startswith("https://")
