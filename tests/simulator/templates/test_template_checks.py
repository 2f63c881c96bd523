"""Validation of new templates: rejected and accepted drafts, one row each."""

import json
from typing import Any

import pytest

from tests.simulator.conftest import WABA, Bench

JsonObject = dict[str, Any]
HANDLE = "4::aW1hZ2UvcG5n:ARZ:e:1800000000:3000000000000003:1:ARY"


def body(text: str, *values: str) -> JsonObject:
    part: JsonObject = {"type": "BODY", "text": text}
    return part | ({"example": {"body_text": [list(values)]}} if values else {})


def buttons(*items: JsonObject) -> list[JsonObject]:
    return [body("Hello there"), {"type": "BUTTONS", "buttons": list(items)}]


def reply(text: str = "Yes") -> JsonObject:
    return {"type": "QUICK_REPLY", "text": text}


def link(url: str = "https://x.example/a", **more: Any) -> JsonObject:
    return {"type": "URL", "text": "Open", "url": url} | more


def image(handle: str = HANDLE, image_format: str = "IMAGE") -> JsonObject:
    return {"type": "HEADER", "format": image_format, "example": {"header_handle": [handle]}}


def offer(text: str = "Ends soon!", **more: Any) -> JsonObject:
    return {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": text, **more}}


def button_row(*items: JsonObject) -> JsonObject:
    return {"type": "BUTTONS", "buttons": list(items)}


def card(*items: JsonObject, header: JsonObject | None = None, text: str = "A card") -> JsonObject:
    return {"components": [header or image(), body(text), button_row(*(items or (reply(),)))]}


def carousel(*cards: JsonObject) -> list[JsonObject]:
    return [body("Hello there"), {"type": "CAROUSEL", "cards": list(cards)}]


def otp(otp_type: str = "COPY_CODE", **more: Any) -> list[JsonObject]:
    return [{"type": "BODY"}, button_row({"type": "OTP", "otp_type": otp_type, **more})]


def apps(package_name: str = "com.shop.app", signature_hash: str = "AbC/def1234") -> list[JsonObject]:
    return [{"package_name": package_name, "signature_hash": signature_hash}]


MARKETING: JsonObject = {"category": "MARKETING"}
SECRET_CODE: JsonObject = {"category": "AUTHENTICATION"}
NO_BODY: JsonObject = {"components": [image(), button_row(reply())]}
TITLE: JsonObject = {"type": "HEADER", "text": "Our things"}
PRODUCT: JsonObject = {"type": "HEADER", "format": "PRODUCT"}
FLOW: JsonObject = {"type": "FLOW", "text": "Book", "flow_id": "1", "navigate_screen": "FIRST"}
CALL = {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"}
CODE = {"type": "COPY_CODE", "example": "SAVE20"}
HELLO = [body("Hello there")]

# fmt: off
REJECTED: list[tuple[str, list[JsonObject], dict[str, Any], int | None]] = [
    # what                   components                                                    fields                           subcode
    ("name in capitals",     HELLO,                                                        {"name": "Greeting"},            None),
    ("name too long",        HELLO,                                                        {"name": "x" * 513},             None),
    ("unknown language",     HELLO,                                                        {"language": "en-US"},           None),
    ("unknown category",     HELLO,                                                        {"category": "PROMO"},           None),
    ("unknown format",       HELLO,                                                        {"parameter_format": "X"},       None),
    ("no components",        [],                                                           {},                              None),
    ("unknown component",    [body("Hello"), {"type": "TAIL"}],                            {},                              None),
    ("two bodies",           [body("Hello"), body("Hello")],                               {},                              None),
    ("no body",              [{"type": "FOOTER", "text": "Bye"}],                          {},                              None),
    ("empty body",           [body("  ")],                                                 {},                              None),
    ("long body",            [body("x" * 1025)],                                           {},                              2388040),
    ("leading variable",     [body("{{1}} says hello to you", "A")],                       {},                              2388299),
    ("trailing variable",    [body("Hello to you from {{1}}", "A")],                       {},                              2388299),
    ("too many variables",   [body("Hi {{1}} and {{2}} there", "A", "B")],                 {},                              2388293),
    ("variables and commas", [body("Hello {{1}}, your order {{2}} for {{3}} will be delivered by {{4}}.", *"ABCD")], {},    2388293),
    ("address as one word",  [body("Hi {{1}} https://a.example/x/y", "A")],                {},                              2388293),
    ("too little Chinese",   [body("你{{1}}吗", "A")],                             {"language": "zh_CN"},           2388293),
    ("emoji in the header",  [{"type": "HEADER", "text": "Hi \U0001f44b"}, *HELLO],        {},                              2388047),
    ("markup in the header", [{"type": "HEADER", "text": "_Hi_"}, *HELLO],                 {},                              2388047),
    ("name too often",       [body("Hi {{a}}, it is {{a}} once again", "A")],              {"parameter_format": "NAMED"},   2388072),
    ("long name",            [body("Hi {{" + "a" * 33 + "}}, how are you")],               {"parameter_format": "NAMED"},   2388072),
    ("emoji in a label",     buttons(reply("Yes \U0001f44d")),                             {},                              2388060),
    ("keycap in a label",    buttons(reply("1\ufe0f\u20e3")),                              {},                              2388060),
    ("line in a label",      buttons(link(text="Open\nit")),                               {},                              2388060),
    ("tab in a label",       buttons({**CALL, "text": "Call\tus"}),                        {},                              2388060),
    ("bold label",           buttons(reply("*Yes*")),                                      {},                              2388060),
    ("struck label",         buttons(reply("~Yes~")),                                      {},                              2388060),
    ("variable in a label",  buttons(reply("Yes {{1}}")),                                  {},                              2388060),
    ("emoji on a code",      otp(text="Copy \U0001f44d"),                                  SECRET_CODE,                     2388060),
    ("emoji to fill in",     otp("ONE_TAP", autofill_text="\u2705", supported_apps=apps()), SECRET_CODE,                    2388060),
    ("link on a code",       otp(text="shop.example"),                                     SECRET_CODE,                     None),
    ("emoji on a card",      carousel(*[card(reply("Yes \U0001f44d"))] * 2),               MARKETING,                       2388060),
    ("labels alike",         buttons(reply("Yes"), reply("Yes")),                          {},                              None),
    ("card's labels alike",  carousel(*[card(reply("Yes"), reply("Yes"))] * 2),            MARKETING,                       None),
    ("link to the operator", buttons(link("https://wa.me/15550001111")),                   {},                              2388081),
    ("placeholder sample",   buttons(link("https://x.example/{{1}}", example=["{{1}}"])),  {},                              2388043),
    ("other variable",       buttons(link("https://x.example/{{2}}", example=["A"])),      {},                              None),
    ("one app twice",        otp("ONE_TAP", supported_apps=apps() * 2),                    SECRET_CODE,                     None),
    ("variable in an offer", [*HELLO, offer("{{1}} off"), button_row(link())],             MARKETING,                       None),
    ("no body example",      [body("Hello {{1}}, how are you")],                           {},                              2388043),
    ("too few examples",     [body("Hello {{1}}, so {{2}} is here again now", "A")],       {},                              2388043),
    ("named, no format",     [body("Hello {{name}}, how are you", "A")],                   {},                              2388072),
    ("badly named",          [body("Hello {{Name}}, how are you", "A")],                   {"parameter_format": "NAMED"},   2388072),
    ("unknown header",       [{"type": "HEADER", "format": "SONG"}, *HELLO],               {},                              2388047),
    ("empty header",         [{"type": "HEADER", "format": "TEXT"}, *HELLO],               {},                              2388047),
    ("header with lines",    [{"type": "HEADER", "text": "a\nb"}, *HELLO],                 {},                              2388047),
    ("bold header",          [{"type": "HEADER", "text": "*a*"}, *HELLO],                  {},                              2388047),
    ("long header",          [{"type": "HEADER", "text": "x" * 61}, *HELLO],               {},                              2388040),
    ("two in the header",    [{"type": "HEADER", "text": "a {{1}} {{2}}"}, *HELLO],        {},                              2388047),
    ("no header example",    [{"type": "HEADER", "text": "a {{1}}"}, *HELLO],              {},                              2388043),
    ("no header handle",     [{"type": "HEADER", "format": "IMAGE"}, *HELLO],              {},                              2388043),
    ("address as a handle",  [{"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["https://x.example/a.png"]}}, *HELLO], {}, 2388043),
    ("long footer",          [*HELLO, {"type": "FOOTER", "text": "x" * 61}],               {},                              2388040),
    ("variable in footer",   [*HELLO, {"type": "FOOTER", "text": "a {{1}}"}],              {},                              2388073),
    ("lines in footer",      [*HELLO, {"type": "FOOTER", "text": "a\nb"}],                 {},                              2388073),
    ("emoji in footer",      [*HELLO, {"type": "FOOTER", "text": "a \U0001f600"}],         {},                              2388073),
    ("no buttons",           buttons(),                                                    {},                              None),
    ("eleven buttons",       buttons(*[reply(f"B{n}") for n in range(11)]),                {},                              None),
    ("unknown button",       buttons({"type": "HORN", "text": "Toot"}),                    {},                              None),
    ("button without text",  buttons(reply("")),                                           {},                              None),
    ("long button",          buttons(reply("x" * 26)),                                     {},                              None),
    ("three links",          buttons(link(), link(), link()),                              {},                              None),
    ("two calls",            buttons(CALL, CALL),                                          {},                              None),
    ("two codes",            buttons(CODE, CODE),                                          {},                              None),
    ("replies apart",        buttons(reply("A"), link(), reply("B")),                      {},                              None),
    ("links apart",          buttons(link(), reply(), link()),                             {},                              None),
    ("link to nowhere",      buttons(link("")),                                            {},                              None),
    ("link to a file",       buttons(link("file:///etc/passwd")),                          {},                              None),
    ("long link",            buttons(link("https://x.example/" + "x" * 2000)),             {},                              None),
    ("variable in between",  buttons(link("https://x.example/{{1}}/a", example=["A"])),    {},                              None),
    ("link, no example",     buttons(link("https://x.example/{{1}}")),                     {},                              2388043),
    ("long phone number",    buttons({**CALL, "phone_number": "1" * 21}),                  {},                              None),
    ("long code",            buttons({**CODE, "example": "x" * 21}),                       {},                              None),
    ("catalog and more",     buttons({"type": "CATALOG", "text": "View"}, reply()),        {},                              None),
    ("short lifetime",       HELLO,                                                        {"message_send_ttl_seconds": 5}, None),
    ("unknown handle",       [image("4::x"), *HELLO],                                      {},                              None),
    ("long offer",           [*HELLO, offer("x" * 17), button_row(link())],                MARKETING,                       None),
    ("offer without text",   [*HELLO, offer(""), button_row(link())],                      MARKETING,                       None),
    ("offer's long body",    [body("x" * 601), offer(), button_row(link())],               MARKETING,                       2388040),
    ("offer with footer",    [*HELLO, offer(), button_row(link()), {"type": "FOOTER", "text": "Bye"}], MARKETING,           None),
    ("offer's text header",  [TITLE, *HELLO, offer(), button_row(link())],                 MARKETING,                       None),
    ("offer without link",   [*HELLO, offer(), button_row(CODE)],                          MARKETING,                       None),
    ("link before code",     [*HELLO, offer(), button_row(link(), CODE)],                  MARKETING,                       None),
    ("expiry without code",  [*HELLO, offer(has_expiration=True), button_row(link())],     MARKETING,                       None),
    ("one card",             carousel(card()),                                             MARKETING,                       None),
    ("eleven cards",         carousel(*[card()] * 11),                                     MARKETING,                       None),
    ("card without header",  carousel(*[{"components": [body("A"), button_row(reply())]}] * 2), MARKETING,                  None),
    ("card with a title",    carousel(*[card(header=TITLE)] * 2),                          MARKETING,                       None),
    ("card with document",   carousel(*[card(header=image(image_format="DOCUMENT"))] * 2), MARKETING,                       None),
    ("card with a code",     carousel(*[card(CODE)] * 2),                                  MARKETING,                       None),
    ("three on a card",      carousel(*[card(reply("A"), reply("B"), link())] * 2),        MARKETING,                       None),
    ("cards' buttons vary",  carousel(card(reply()), card(link())),                        MARKETING,                       None),
    ("one card has a body",  carousel(card(), NO_BODY),                                    MARKETING,                       None),
    ("headers vary",         carousel(card(), card(header=image(image_format="VIDEO"))),   MARKETING,                       None),
    ("card's long body",     carousel(*[card(text="x" * 161)] * 2),                        MARKETING,                       2388040),
    ("card, no example",     carousel(*[card(text="A {{1}} b")] * 2),                      MARKETING,                       2388043),
    ("footer in a card",     carousel(*[{"components": [image(), {"type": "FOOTER", "text": "x"}]}] * 2), MARKETING,        None),
    ("carousel and footer",  [*carousel(card(), card()), {"type": "FOOTER", "text": "Bye"}], MARKETING,                     None),
    ("catalog with header",  [TITLE, *buttons({"type": "CATALOG", "text": "View"})],       MARKETING,                       None),
    ("items, no header",     buttons({"type": "MPM", "text": "View"}),                     MARKETING,                       None),
    ("product, no header",   buttons({"type": "SPM", "text": "View"}),                     MARKETING,                       None),
    ("product, no button",   [PRODUCT, *HELLO],                                            MARKETING,                       None),
    ("flow for utility",     buttons(FLOW),                                                {},                              None),
    ("flow that is none",    buttons(FLOW),                                                MARKETING,                       None),
    ("flow without id",      buttons({"type": "FLOW", "text": "Book"}),                    MARKETING,                       None),
    ("flow by unknown name", buttons({"type": "FLOW", "text": "Book", "flow_name": "booking"}), MARKETING,                 None),
    ("GIF for utility",      [image(image_format="GIF"), *HELLO],                          {},                              2388047),
    ("flow named twice",     buttons({**FLOW, "flow_name": "x"}),                          MARKETING,                       None),
    ("flow's odd action",    buttons({**FLOW, "flow_action": "jump"}),                     MARKETING,                       None),
    ("code in UTILITY",      buttons({"type": "OTP", "otp_type": "COPY_CODE"}),            {},                              None),
    ("no code button",       [{"type": "BODY"}],                                           SECRET_CODE,                     None),
    ("own text of a code",   [body("Your code is here"), otp()[1]],                        SECRET_CODE,                     2388072),
    ("header over a code",   [TITLE, *otp()],                                              SECRET_CODE,                     None),
    ("unknown kind of code", otp("TWO_TAP"),                                               SECRET_CODE,                     None),
    ("one tap, no app",      otp("ONE_TAP"),                                               SECRET_CODE,                     None),
    ("one tap, flat app",    otp("ONE_TAP", **apps()[0]),                                  SECRET_CODE,                     None),
    ("six apps",             otp("ONE_TAP", supported_apps=apps() * 6),                    SECRET_CODE,                     None),
    ("one word's package",   otp("ONE_TAP", supported_apps=apps("shop")),                  SECRET_CODE,                     None),
    ("package with digits",  otp("ONE_TAP", supported_apps=apps("com.1shop")),             SECRET_CODE,                     None),
    ("long package",         otp("ONE_TAP", supported_apps=apps("a." + "b" * 223)),        SECRET_CODE,                     None),
    ("short signature",      otp("ONE_TAP", supported_apps=apps(signature_hash="AbC/def123")), SECRET_CODE,                 None),
    ("terms not accepted",   otp("ZERO_TAP", supported_apps=apps()),                       SECRET_CODE,                     None),
    ("no minutes",           [*otp(), {"type": "FOOTER", "code_expiration_minutes": 0}],   SECRET_CODE,                     None),
    ("lifetime of words",    HELLO,                                                        {"message_send_ttl_seconds": "long"}, None),
    ("code's long life",     otp(),                                                        {**SECRET_CODE, "message_send_ttl_seconds": 901}, None),
    ("late expiration",      [{"type": "BODY"}, {"type": "FOOTER", "code_expiration_minutes": 91}], {"category": "AUTHENTICATION"}, None),
]
ACCEPTED: list[tuple[str, list[JsonObject], dict[str, Any]]] = [
    # what                  components                                                   fields
    ("plain",               HELLO,                                                       {}),
    ("lower case",          [{"type": "body", "text": "Hello there"}],                   {"category": "utility"}),
    ("nested example",      [body("Hello {{1}}, how are you", "Ann")],                   {}),
    ("flat example",        [{**body("Hello {{1}}, how are you"), "example": {"body_text": ["Ann"]}}], {}),
    ("text example",        [{**body("Hello {{1}}, how are you"), "example": {"body_text": "Ann"}}], {}),
    ("two variables",       [body("Hi {{1}}, your parcel {{2}} left today.", "Ann", "PX")],   {}),
    ("named variables",     [{**body("Hi {{first_name}}, your parcel left"), "example": {"body_text_named_params": [{"param_name": "first_name", "example": "Ann"}]}}], {"parameter_format": "NAMED"}),
    ("header variable",     [{"type": "HEADER", "text": "For {{1}}", "example": {"header_text": ["Ann"]}}, *HELLO], {}),
    ("image header",        [{"type": "HEADER", "format": "image", "example": {"header_handle": [HANDLE]}}, *HELLO], {}),
    ("handle with lines",   [{"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [HANDLE + "\n" + HANDLE]}}, *HELLO], {}),
    ("location header",     [{"type": "HEADER", "format": "LOCATION"}, *HELLO],          {}),
    ("all the buttons",     buttons(reply("A"), reply("B"), link(), CALL, CODE),         {"category": "MARKETING"}),
    ("replies at the end",  buttons(link(), CALL, reply("A"), reply("B")),               {}),
    ("link with variable",  buttons(link("https://x.example/{{1}}", example=["A"])),     {}),
    ("authentication",      [{"type": "BODY", "add_security_recommendation": True}, {"type": "FOOTER", "code_expiration_minutes": 10}, {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy"}]}], {"category": "AUTHENTICATION"}),
    ("offer with a code",   [image(), body("x" * 600), offer(has_expiration=True), button_row(CODE, link())], MARKETING),
    ("offer with a link",   [*HELLO, offer("x" * 16), button_row(link())],               MARKETING),
    ("two cards",           carousel(card(reply(), link()), card(reply(), link())),      MARKETING),
    ("ten cards",           carousel(*[card(text="x" * 160)] * 10),                      MARKETING),
    ("cards in lower case", [HELLO[0], {"type": "carousel", "cards": [{"components": [{**image(), "type": "header", "format": "image"}, {"type": "buttons", "buttons": [{"type": "quick_reply", "text": "Yes"}]}]}] * 2}], MARKETING),
    ("cards of products",   carousel(*[card({"type": "SPM", "text": "View"}, header=PRODUCT)] * 2), MARKETING),
    ("catalog",             buttons({"type": "CATALOG", "text": "View"}),                MARKETING),
    ("items",               [TITLE, *buttons({"type": "MPM", "text": "View"})],          MARKETING),
    ("product",             [PRODUCT, *buttons({"type": "SPM", "text": "View"})],        MARKETING),
    ("flow by its JSON",    buttons({"type": "FLOW", "text": "Book", "flow_json": "{}"}), MARKETING),
    ("call and contact",    buttons({"type": "VOICE_CALL", "text": "Call"}, {"type": "REQUEST_CONTACT_INFO", "text": "Share"}), {}),
    ("one tap",             otp("ONE_TAP", autofill_text="Autofill", supported_apps=[app for n in range(5) for app in apps(f"com.shop.app{n}")]), SECRET_CODE),
    ("Chinese",             [body("您好{{1}}\uff0c您的订单已发货\u3002", "Ann")], {"language": "zh_CN"}),
    ("Cantonese",           [body("您好 {{1}}\uff0c訂單已寄出", "Ann")], {"language": "zh_HK"}),
    ("Japanese",            [body("ご注文{{1}}が発送されました\u3002", "PX")], {"language": "ja"}),
    ("Thai",                [body("สวัสดี {{1}} คำสั่งซื้อของคุณพร้อมแล้ว", "Ann")], {"language": "th"}),
    ("Lao",                 [body("ສະບາຍດີ {{1}} ຄໍາສັ່ງຊື້ຂອງທ່ານພ້ອມແລ້ວ", "Ann")], {"language": "lo"}),
    ("dashes as words",     [body("Hi {{1}} - - - ok", "Ann")],                          {}),
    ("signs in a label",    buttons(reply("\u00a9 10% snake_case"), link()),             {}),
    ("payment link",        buttons(link("https://wa.me/pay/x")),                        {}),
    ("zero tap",            otp("ZERO_TAP", zero_tap_terms_accepted=True, supported_apps=apps("a." + "b" * 222)), SECRET_CODE),
    ("code without end",    otp(),                                                       {**SECRET_CODE, "message_send_ttl_seconds": -1}),
    ("90 minutes",          [*otp(), {"type": "FOOTER", "code_expiration_minutes": 90}], SECRET_CODE),
]
# fmt: on


@pytest.mark.parametrize(
    ("components", "fields", "subcode"), [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
async def test_invalid_template_is_rejected_at_once(
    bench: Bench, components: list[JsonObject], fields: dict[str, Any], subcode: int | None
) -> None:
    text = json.dumps(components)
    if HANDLE in text:
        components = json.loads(text.replace(HANDLE, await bench.upload_file()))

    response = await bench.create_template(components, **fields)

    assert (response.status, response.error["code"]) == (400, 100)
    assert response.error.get("error_subcode") == subcode
    assert response.error["type"] == "OAuthException"
    assert response.error["fbtrace_id"]
    if subcode is not None:
        assert response.error["message"] == "Invalid parameter"
        assert response.error["error_user_title"]
        assert response.error["error_user_msg"]


@pytest.mark.parametrize(("components", "fields"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
async def test_valid_template_is_accepted_for_review(
    slow: Bench, components: list[JsonObject], fields: dict[str, Any]
) -> None:
    handle = await slow.upload_file()
    components = json.loads(json.dumps(components).replace(HANDLE, handle))

    response = await slow.create_template(components, **fields)

    assert response.status == 200, response.body
    assert response.body["status"] == "PENDING"
    assert response.body["category"] == fields.get("category", "UTILITY").upper()
    assert int(response.body["id"]) < 2**53
    assert len(response.body["id"]) == 16


# fmt: off
MARKETING_FORMATS: list[tuple[str, list[JsonObject]]] = [  # Source: facts 2.2, notes; decision 0068
    # what                  components
    ("offer in UTILITY",    [*HELLO, offer(), button_row(link())]),
    ("carousel in UTILITY", carousel(card(), card())),
    ("catalog in UTILITY",  buttons({"type": "CATALOG", "text": "View"})),
    ("items in UTILITY",    [TITLE, *buttons({"type": "MPM", "text": "View"})]),
]
# fmt: on


@pytest.mark.parametrize("components", [row[1] for row in MARKETING_FORMATS], ids=[row[0] for row in MARKETING_FORMATS])
async def test_marketing_formats_as_utility_are_rejected_by_a_strict_operator_only(
    slow: Bench, components: list[JsonObject]
) -> None:
    components = json.loads(json.dumps(components).replace(HANDLE, await slow.upload_file()))

    accepted = await slow.create_template(components)
    await slow.control("PUT", "settings", {"strict": True})
    rejected = await slow.create_template(components, name="another")
    for_marketing = await slow.create_template(components, name="a_third", category="MARKETING")
    code = await slow.create_template(components, name="a_fourth", category="AUTHENTICATION")

    assert (accepted.status, accepted.body.get("category")) == (200, "UTILITY"), accepted.body
    assert (rejected.status, rejected.error["code"]) == (400, 100)
    assert for_marketing.status == 200, for_marketing.body
    assert code.status == 400


async def test_second_content_in_one_language_is_rejected(slow: Bench) -> None:
    await slow.create_template(HELLO)

    again = await slow.create_template(HELLO)
    other = await slow.create_template(HELLO, language="en_GB")

    assert again.error["error_subcode"] == 2388024
    assert again.error["error_user_title"] == "Content in This Language Already Exists"
    assert other.status == 200


async def test_authentication_texts_are_those_of_the_operator(slow: Bench) -> None:
    _, components, fields = next(row for row in ACCEPTED if row[0] == "authentication")
    created = await slow.create_template(components, **fields)

    shown = await slow.graph("GET", created.body["id"])

    part_body, footer, part_buttons = shown.body["components"]
    assert part_body["text"] == ("*{{1}}* is your verification code. For your security, do not share this code.")
    assert footer["text"] == "This code expires in 10 minutes."
    assert part_buttons["buttons"][0]["type"] == "URL"
    assert part_buttons["buttons"][0]["url"].startswith("https://www.whatsapp.com/otp/code/")


async def test_uploaded_example_is_shown_as_a_url(slow: Bench) -> None:
    handle = await slow.upload_file()
    header = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}}
    await slow.create_template([header, *HELLO])

    listed = await slow.graph("GET", f"{WABA}/message_templates")

    [url] = listed.body["data"][0]["components"][0]["example"]["header_handle"]
    assert url.startswith("https://")


async def test_handle_type_must_match_the_header_format(slow: Bench) -> None:
    document = await slow.upload_file("application/pdf")

    as_image = await slow.create_template([image(document), *HELLO])
    as_document = await slow.create_template([image(document, "DOCUMENT"), *HELLO])

    assert as_image.error["message"] == "Invalid parameter"
    assert as_document.status == 200


async def test_handle_check_can_be_switched_off(slow: Bench) -> None:
    await slow.control("PUT", "settings", {"check_references": False})

    response = await slow.create_template([image("4::unseen"), *HELLO])

    assert response.status == 200


async def test_button_can_refer_to_a_flow_of_the_account(slow: Bench) -> None:
    flow = await slow.graph("POST", f"{WABA}/flows", json={"name": "f", "categories": ["OTHER"]})

    response = await slow.create_template(buttons({**FLOW, "flow_id": flow.body["id"]}), **MARKETING)

    assert response.status == 200, response.body


async def test_button_can_name_a_flow_of_the_account(slow: Bench) -> None:
    await slow.graph("POST", f"{WABA}/flows", json={"name": "booking", "categories": ["OTHER"]})

    response = await slow.create_template(
        buttons({"type": "FLOW", "text": "Book", "flow_name": "booking"}), **MARKETING
    )

    assert response.status == 200, response.body


async def test_error_names_the_line_of_a_handle_that_is_unknown(slow: Bench) -> None:
    handle = await slow.upload_file()

    response = await slow.create_template([image(f"{handle}\n4::x"), *HELLO])

    assert response.error["error_user_msg"] == "The header_handle '4::x' was not given by a resumable upload."


async def test_code_button_is_shown_as_a_url_button(slow: Bench) -> None:
    created = await slow.create_template(otp("ONE_TAP", supported_apps=apps()), category="AUTHENTICATION")

    shown = await slow.graph("GET", created.body["id"])

    [button] = shown.body["components"][1]["buttons"]
    assert button["type"] == "URL"
    assert button["otp_type"] == "ONE_TAP"
    assert button["supported_apps"] == apps()
