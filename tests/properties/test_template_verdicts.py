"""The service's template check and the simulator's validation share no code, and reach the same verdict on a draft."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.test_any_draft import CHANGES, changed_draft
from tests.support.builders import draft, template
from waypost.domain.templates.buttons import ButtonKind, Card, SupportedApp, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import add_type_button
from waypost.domain.templates.variables import split_at_variables, variable_names, word_count
from waypost.domain.templates.violations import find_violations
from waypost.operators.cloud.templates import template_body
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.reviews import review_decision
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.template import SimulatedTemplate
from waypost.simulator.templates.text_variables import count_words

HANDLE = "4::aW1hZ2UvcG5n:ARZ:e:1800000000:3000000000000003:1:ARY"
URL = TemplateButton(ButtonKind.URL, "Look", url="https://shop.example/a")
CALL = TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number="+15550001111")
REPLY = TemplateButton(ButtonKind.QUICK_REPLY, "Yes")
CODE = TemplateButton(ButtonKind.COPY_CODE, example=("SAVE20",))
APP = SupportedApp("com.shop.app", "AbC/def1234")
ONE_TAP = TemplateButton(
    ButtonKind.OTP, "Copy code", otp_type="ONE_TAP", autofill_text="Autofill", supported_apps=(APP,)
)
CARD = Card("IMAGE", example_media=HANDLE, body="A warm coat.", sample_text="A warm coat.", buttons=(REPLY, URL))


def filled(text: str | None, value: str = "Ann") -> str | None:
    """Return a text with its variables replaced by a value."""
    return None if text is None else value.join(split_at_variables(text))


def body(content: str, **more: Any) -> TemplateDraft:
    return draft(**({"content": content, "example": filled(content)} | more))


def header(text: str) -> TemplateDraft:
    return draft(header=text, example_header=filled(text))


def buttons(*items: TemplateButton, **more: Any) -> TemplateDraft:
    return draft(**({"category": "MARKETING", "buttons": items} | more))


def code(button: TemplateButton = ONE_TAP, **more: Any) -> TemplateDraft:
    content = "{{1}} is your verification code."
    return draft(category="AUTHENTICATION", content=content, example=filled(content), buttons=(button,), **more)


def offer(text: str = "Ends soon", *items: TemplateButton, **more: Any) -> TemplateDraft:
    return buttons(*(items or (CODE, URL)), is_lto=True, limited_offer_text=text, **({"has_expiration": True} | more))


def carousel(*cards: Card) -> TemplateDraft:
    return draft(category="MARKETING", template_type="CAROUSEL", cards=cards)


def cards(**changes: Any) -> TemplateDraft:
    return carousel(replace(CARD, **changes), replace(CARD, **changes))


def card_body(text: str) -> TemplateDraft:
    return cards(body=text, sample_text=filled(text))


def card_with(button: TemplateButton) -> TemplateDraft:
    return cards(buttons=(button,))


MakeDraft = Callable[[str], TemplateDraft]
LABELS: dict[str, MakeDraft] = {
    "label of a reply": lambda text: buttons(replace(REPLY, text=text)),
    "label of a url": lambda text: buttons(replace(URL, text=text)),
    "label of a number": lambda text: buttons(replace(CALL, text=text)),
    "text of a code": lambda text: code(replace(ONE_TAP, text=text)),
    "autofill text": lambda text: code(replace(ONE_TAP, autofill_text=text)),
    "label on a card": lambda text: cards(buttons=(replace(REPLY, text=text), URL)),
}
TEXT_FIELDS: dict[str, MakeDraft] = {
    "body": body,
    "header": header,
    "footer": lambda text: draft(footer=text),
    "offer text": offer,
    "body of a card": card_body,
    **LABELS,
}
TEXTS = (
    "Yes", "Ja, gern", "10%", "Order #12", "5 * 3", "snake_case_name", "a~b", "\u00a9 Acme\u2122", "déjà", "是",
    "ใช่",
    "\u2190 back", "Yes \U0001f44d", "Yes \u2705", "\u2764", "1\ufe0f\u20e3", "\U0001f1e9\U0001f1ea", "\u263a\ufe0f",
    "a\nb", "a\rb", "a\tb", "a\u2028b",
    "*bold*", "_italic_", "~gone~", "```code```", "*", "two *bold* words", "x" * 25, "x" * 26, "x" * 60, "x" * 61,
    "Hi {{1}}", "{{1}}", "{{1}}-{{1}}", "Hi {{1", "Hi 1}}", "Hi {{ 1 }} and more of it", "Hi {{}} and more of it",
    "Hi {{2}} and more of it", "Hi {{Name}} and more of it", "Hi {{name}} and more of it", "Hi {{#1}} and more of it",
    "see https://shop.example now", "shop.example",
)  # fmt: skip
BODIES = (
    "您好{{1}}\uff0c您的订单已发货\u3002", "您好 {{1}} 订单", "你好{{1}}吗", "你好{{1}}和{{2}}吗",
    "ご注文{{1}}が発送されました\u3002", "ｶﾀｶﾅ {{1}} ありがとう", "您好 {{1}}\uff0c訂單已寄出",
    "สวัสดี {{1}} คำสั่งซื้อของคุณพร้อมแล้ว", "สวัสดี {{1}} คุณ",
    "ສະບາຍດີ {{1}} ຄໍາສັ່ງຊື້ຂອງທ່ານພ້ອມແລ້ວ", "បង {{1}} ការបញ្ជាទិញរបស់អ្នក",
    "안녕하세요 {{1}}님, 주문이 접수되었습니다.", "Привет, {{1}}, заказ готов.", "مرحبا {{1}} طلبك جاهز",
    "Hi {{1}} - - - ok", "Hi {{1}} https://a.example/x/y", "Hi {{1}}, hello there.", "Hi {{1}}, hello.",
    "Hi {{1}}!!!", "Hi {{1}} \U0001f44d \U0001f44d ok",
    "Hi {{1}}, parcel {{2}} left today.", "Hi {{1}}, your parcel {{2}} left today.", "One {{1}} two {{1}} three four.",
    "Hello {{1}}, your order {{2}} for {{3}} will be delivered by {{4}}.",
    "Hello {{1}}, your order {{2}} for {{3}} will be delivered by {{4}} today.",
    "Your order {{1}}{{2}} is ready for you.", "Your order {{1}} {{2}} is ready for you.",
    "Your {{1}}-{{2}} is here for you.",
    "Order#{{1}} \u200b \u200b \u200b ok", "iPhone{{1}}号已发", "{{1}}, your order is ready.",
    "Your order is ready, {{1}}", "Your order is ready, {{1}}.",
    "A\n\nB {{1}} C D", "*Bold* _it_ ~x~ is fine \U0001f44d", "x" * 1024, "x" * 1025,
)  # fmt: skip
URLS = (
    "https://shop.example", "http://shop.example/a?b=c#d", "HTTPS://SHOP.EXAMPLE/a", "https://shop.example/{{1}}",
    "https://shop.example/?id={{1}}",
    "https://shop.example/{{1}}/x", "https://shop.example/{{2}}", "https://shop.example/{{name}}",
    "https://shop.example/{{1}}{{1}}",
    "https://{{1}}", "https://{{1}}.example/", "https://shop.example/a b", "https://shop.example/a\tb",
    "https://shop.example/{{1}} ", "https:///x", "https://",
    "ftp://shop.example", "shop.example", "javascript:alert(1)", "mailto:a@shop.example", "https://[shop",
    "https://shop.example/{{1", "https://:80/",
    "https://wa.me/15550001111", "https://wa.me", "https://chat.whatsapp.com/x", "https://WA.ME/1",
    "https://a@wa.me/1", "https://wa.me/pay/x", "https://wa.me/payments",
    "https://wa.me.shop.example/", "https://shop.example/wa.me/", "https://notwa.me/",
    "https://shop.example/" + "x" * 1979, "https://shop.example/" + "x" * 1980,
)  # fmt: skip
NUMBERS = (
    "+15550001111",
    "15550001111",
    "+1 (555) 000-1111",
    "12345",
    "1234",
    "1" * 20,
    "1" * 21,
    "++1555000",
    "call me",
    "\u0661\u0662\u0663\u0664\u0665\u0666",
)
# fmt: off
DRAFTS = [
    *(pytest.param(make(text), id=f"{field}: {text[:40]!a}") for field, make in TEXT_FIELDS.items() for text in TEXTS),
    *(pytest.param(body(text), id=f"body: {text[:40]!a}") for text in BODIES),
    *(pytest.param(card_body(text), id=f"body of a card: {text[:40]!a}") for text in BODIES),
    *(
        pytest.param(make(replace(URL, url=url, example=("https://shop.example/7",))), id=f"url {place}: {url[:40]!a}")
        for url in URLS
        for place, make in (("in the message", buttons), ("on a card", card_with))
    ),
    *(pytest.param(buttons(replace(CALL, phone_number=number)), id=f"number: {number!a}") for number in NUMBERS),
    *(
        pytest.param(body(text, parameter_format="NAMED"), id=f"named: {text[:40]!a}")
        for text in (
            "Hi {{name}}, hello there.", "Hi {{name}}, hello {{name}} and all of you.",
            "Hi {{name_2}}, hello there.", "Hi {{2name}}, hello there.",
            "Hi {{Name}}, hello there.", "Hi {{1}}, hello there.", "Hi {{" + "x" * 32 + "}}, hello there.",
            "Hi {{" + "x" * 33 + "}}, hello there.",
        )
    ),
    pytest.param(buttons(REPLY, REPLY), id="two replies with one label"),
    pytest.param(buttons(REPLY, replace(URL, text="Yes")), id="one label for two kinds"),
    pytest.param(buttons(REPLY, replace(REPLY, text="yes")), id="labels that differ in case"),
    pytest.param(cards(buttons=(REPLY, REPLY)), id="two replies with one label on a card"),
    pytest.param(buttons(*(replace(REPLY, text=f"B{n}") for n in range(10))), id="ten buttons"),
    pytest.param(buttons(*(replace(REPLY, text=f"B{n}") for n in range(11))), id="eleven buttons"),
    pytest.param(buttons(*(replace(URL, text=f"B{n}") for n in range(3))), id="three urls"),
    pytest.param(buttons(CALL, replace(CALL, text="Ring")), id="two numbers"),
    pytest.param(buttons(CODE, CODE), id="two codes"),
    pytest.param(buttons(REPLY, URL, replace(REPLY, text="No")), id="replies apart"),
    pytest.param(buttons(REPLY, URL, CALL, CODE), id="every button"),
    pytest.param(code(replace(ONE_TAP, supported_apps=(APP, APP))), id="one app twice"),
    pytest.param(code(replace(ONE_TAP, supported_apps=(APP, replace(APP, package_name="com.shop.b")))), id="two apps"),
    pytest.param(code(replace(ONE_TAP, supported_apps=())), id="no app"),
    *(
        pytest.param(code(replace(ONE_TAP, supported_apps=(replace(APP, package_name=name),))), id=f"app: {name[:20]}")
        for name in ("com.shop", "shop", "com.1shop", "com..shop", "com.shop-a", "a." + "b" * 222, "a." + "b" * 223)
    ),
    *(
        pytest.param(code(replace(ONE_TAP, supported_apps=(replace(APP, signature_hash=text),))), id=f"hash: {text}")
        for text in ("AbC/def1234", "AbC/def123", "AbC/def12345", "AbC_def1234")
    ),
    *(pytest.param(code(code_expiration_minutes=minutes), id=f"minutes: {minutes}") for minutes in (0, 1, 90, 91)),
    pytest.param(offer("Ends soon", URL, has_expiration=False), id="offer with a url"),
    pytest.param(offer("Ends soon", URL, CODE), id="url before code"),
    pytest.param(offer("Ends soon", CODE, CALL, URL), id="number between code and url"),
    pytest.param(offer("Ends soon", footer="Bye"), id="offer with a footer"),
    pytest.param(offer("Ends soon", header="Now"), id="offer with a header"),
    pytest.param(offer("Ends soon", content="x" * 601, example="x"), id="long offer"),
    pytest.param(offer("x" * 17), id="long offer text"),
    pytest.param(carousel(CARD), id="one card"),
    pytest.param(carousel(*[CARD] * 10), id="ten cards"),
    pytest.param(carousel(*[CARD] * 11), id="eleven cards"),
    pytest.param(carousel(CARD, replace(CARD, body=None, sample_text=None)), id="one card has a body"),
    pytest.param(carousel(CARD, replace(CARD, header_type="VIDEO")), id="headers vary"),
    pytest.param(carousel(CARD, replace(CARD, buttons=(URL, REPLY))), id="buttons in another order"),
    pytest.param(cards(buttons=()), id="cards without buttons"),
    pytest.param(cards(buttons=(REPLY, URL, CALL)), id="three buttons on a card"),
    *(pytest.param(cards(buttons=(button,)), id=f"{button.kind} on a card") for button in (CODE, REPLY, URL, CALL)),
    *(
        pytest.param(cards(buttons=(TemplateButton(kind, "View", flow_id="1"),)), id=f"{kind} on a card")
        for kind in (ButtonKind.MPM, ButtonKind.CATALOG, ButtonKind.FLOW, ButtonKind.OTP)
    ),
    pytest.param(card_body("x" * 160), id="card of 160"),
    pytest.param(card_body("x" * 161), id="card of 161"),
    pytest.param(draft(message_validity_s=29), id="short lifetime"),
    pytest.param(draft(language_code="xx"), id="unknown language"),
    pytest.param(draft(element_name="Order"), id="name in capitals"),
    *(
        pytest.param(draft(template_type=kind, example_media=sample), id=f"{kind} with sample {sample}")
        for kind in ("IMAGE", "VIDEO", "DOCUMENT")
        for sample in (HANDLE, None)
    ),
    *(
        pytest.param(draft(template_type="GIF", media_id=HANDLE, media_url="https://shop.example/a", category=category),
                     id=f"GIF in {category}")
        for category in ("MARKETING", "UTILITY")
    ),
]
# fmt: on


def simulated_verdict(submitted: TemplateDraft) -> str | None:
    """Return why the strict simulator or its review rejects what the service would submit; None: it is approved."""
    fields = template_body(template(of=submitted), {})
    try:
        accepted = check_draft(fields, strict=True)
    except GraphApiError as error:
        return str(error.error.get("error_user_msg") or error.error["message"])
    decision = review_decision(
        SimulatedTemplate("1", "2", accepted.name, accepted.language, accepted.category, accepted.components)
    )
    return None if decision.status == "APPROVED" else str(decision.explanation)


def check_verdicts(submitted: TemplateDraft) -> None:
    found = [f"{violation.rule}: {violation.says}" for violation in find_violations(submitted)]
    rejected = simulated_verdict(submitted)
    assert bool(found) is (rejected is not None), f"the check: {found}; the operator: {rejected}"


@pytest.mark.parametrize("submitted", DRAFTS)
def test_check_warns_exactly_of_what_the_simulator_rejects(submitted: TemplateDraft) -> None:
    check_verdicts(submitted)


PIECES = st.sampled_from(
    ["{{1}}", "{{2}}", " ", "-", ",", ".", "Hi", "order", "a_b", "订", "あ", "สวัสดี", "ດີ", "ក", "안녕", "Пр", "م",
     "\U0001f44d", "\u2764\ufe0f", "https://a.example/x", "\u3002", "\uff0c", "\u200b", "\n", "*", "_", "~", "`",
     "9", "\u0301"]
)  # fmt: skip
ANY_TEXT = st.lists(PIECES, min_size=1, max_size=14).map("".join) | st.text(max_size=30)


@given(ANY_TEXT)
def test_both_count_the_same_words(text: str) -> None:
    assert word_count(text) == count_words(text)


@given(ANY_TEXT.filter(lambda text: text.strip() != ""), st.sampled_from(sorted(TEXT_FIELDS)))
def test_any_text_has_one_verdict(text: str, field: str) -> None:
    submitted = TEXT_FIELDS[field](text)
    if variable_names(text) and submitted.example == submitted.content:
        return
    check_verdicts(submitted)


@given(CHANGES.map(changed_draft))
def test_draft_that_the_check_finds_nothing_in_is_approved(submitted: TemplateDraft) -> None:
    assert find_violations(submitted) or simulated_verdict(submitted) is None


NO = replace(REPLY, text="No")
SHOP = replace(URL, text="Shop", url="https://shop.example/{{1}}", example=("https://shop.example/a",))
FLOW = TemplateButton(ButtonKind.FLOW, "Book", flow_id="1", navigate_screen="ONE")
MANY_BUTTONS = st.lists(st.sampled_from([REPLY, NO, URL, SHOP, CALL, CODE, FLOW]), max_size=5).map(tuple)
TYPES = st.sampled_from(["TEXT", "IMAGE", "LOCATION", "CATALOG", "PRODUCT", "CAROUSEL"])


@given(MANY_BUTTONS, MANY_BUTTONS, st.sampled_from(["MARKETING", "UTILITY"]), TYPES, st.booleans())
def test_any_combination_of_buttons_has_one_verdict(
    given_buttons: tuple[TemplateButton, ...],
    on_cards: tuple[TemplateButton, ...],
    category: str,
    template_type: str,
    is_lto: bool,
) -> None:
    card = replace(CARD, buttons=on_cards)
    more: dict[str, Any] = {"cards": (card, card)} if template_type == "CAROUSEL" else {"example_media": HANDLE}
    if is_lto and template_type == "TEXT":
        more |= {"is_lto": True, "limited_offer_text": "Soon", "has_expiration": False}
    check_verdicts(
        add_type_button(draft(category=category, template_type=template_type, buttons=given_buttons, **more))
    )
