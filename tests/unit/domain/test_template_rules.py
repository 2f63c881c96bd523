"""The table of validation rules for template drafts."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import draft
from waypost.domain.app import Hosting
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.buttons import ButtonKind, Card, SupportedApp, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rules import OPERATOR_RULES, SPEC_RULES, TEMPLATE_RULES, check_draft
from waypost.domain.templates.types import LANGUAGES, canonical_language

REPLY = ButtonKind.QUICK_REPLY
URL = TemplateButton(ButtonKind.URL, "Look", url="https://acme.test")


def violation(strict: bool = True, **more: Any) -> str | None:
    """Return the explanation of the first broken rule; None for a valid draft."""
    try:
        check_draft(draft(**more), strict=strict)
    except ApiError as error:
        return error.explanation
    return None


def replies(count: int) -> tuple[TemplateButton, ...]:
    return tuple(TemplateButton(REPLY, f"b{n}") for n in range(count))


def offer(**more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "category": "MARKETING",
        "is_lto": True,
        "limited_offer_text": "Ends soon",
        "has_expiration": True,
        "buttons": (copy_code("SAVE20"), URL),
    }
    return fields | more


def code(**more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "category": "AUTHENTICATION",
        "content": "{{1}} is your verification code.",
        "buttons": (TemplateButton(ButtonKind.OTP, "Copy code", otp_type="COPY_CODE"),),
    }
    return fields | more


def carousel(*cards: Card) -> dict[str, Any]:
    return {"category": "MARKETING", "template_type": "CAROUSEL", "cards": cards}


def sale(*buttons: TemplateButton) -> dict[str, Any]:
    return {"category": "MARKETING", "buttons": buttons}


def card(**more: Any) -> Card:
    fields: dict[str, Any] = {"header_type": "IMAGE", "media_id": "1", "buttons": (URL,)}
    return Card(**(fields | more))


def app(package_name: str, signature_hash: str = "AbC/def1234") -> SupportedApp:
    return SupportedApp(package_name, signature_hash)


def tap(*apps: SupportedApp) -> TemplateButton:
    return TemplateButton(
        ButtonKind.OTP, "Copy code", otp_type="ZERO_TAP", supported_apps=apps, zero_tap_terms_accepted=True
    )


def copy_code(example: str) -> TemplateButton:
    return TemplateButton(ButtonKind.COPY_CODE, example=(example,))


CALL = TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number="+15550001111")
CARD = card()
APPS = [app(f"com.acme.shop{n}") for n in range(6)]
URLS = tuple(replace(URL, text=f"Look {n}") for n in range(3))


def test_draft_of_the_builders_breaks_no_rule() -> None:
    assert violation() is None


@pytest.mark.parametrize("rule", TEMPLATE_RULES, ids=lambda rule: rule.id)
def test_every_rule_names_its_source(rule: Any) -> None:
    assert rule.source
    assert rule.requirement[-1] not in ".;"


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len({rule.id for rule in TEMPLATE_RULES}) == len(TEMPLATE_RULES)
    assert not any(rule.is_operator_rule for rule in SPEC_RULES)
    assert all(rule.is_operator_rule for rule in OPERATOR_RULES)


@pytest.mark.parametrize("rule", TEMPLATE_RULES, ids=lambda rule: rule.id)
def test_every_rule_can_check_an_empty_draft(rule: Any) -> None:
    assert rule.check(TemplateDraft()) is None or rule.requirement


# fmt: off
BOUNDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "element_name":  ({"element_name": "x" * 180}, {"element_name": "x" * 181}),
    "vertical":      ({"vertical": "x" * 180}, {"vertical": "x" * 181}),
    "content":       ({"content": "x" * 1024, "example": "x"}, {"content": "x" * 1025, "example": "x"}),
    "lto_content":   (offer(content="x" * 600, example="x"), offer(content="x" * 601, example="x")),
    "offer_text":    (offer(limited_offer_text="x" * 16), offer(limited_offer_text="x" * 17)),
    "minutes_low":   (code(code_expiration_minutes=1), code(code_expiration_minutes=0)),
    "minutes_high":  (code(code_expiration_minutes=90), code(code_expiration_minutes=91)),
    "validity_low":  ({"message_validity_s": 30}, {"message_validity_s": 29}),
    "validity_high": ({"message_validity_s": 43_200}, {"message_validity_s": 43_201}),
    "cards_few":     (carousel(CARD, CARD), carousel(CARD)),
    "cards_many":    (carousel(*[CARD] * 10), carousel(*[CARD] * 11)),
    "card_body":     (carousel(*[card(body="x" * 160)] * 2), carousel(*[card(body="x" * 161)] * 2)),
    "card_buttons":  (carousel(*[card(buttons=(URL, CALL))] * 2), carousel(*[card(buttons=(URL, URL, CALL))] * 2)),
    "copy_code":     (sale(copy_code("x" * 15)), sale(copy_code("x" * 16))),
    "copy_codes":    (sale(copy_code("x")), sale(copy_code("x"), copy_code("x"))),
    "apps":          (code(buttons=(tap(*APPS[:5]),)), code(buttons=(tap(*APPS),))),
    "signature":     (code(buttons=(tap(app("com.a", "x" * 11)),)), code(buttons=(tap(app("com.a", "x" * 12)),))),
    "package":       (code(buttons=(tap(app("c." + "x" * 222)),)), code(buttons=(tap(app("c." + "x" * 223)),))),
    "header":        ({"header": "x" * 60}, {"header": "x" * 61}),
    "footer":        ({"footer": "x" * 60}, {"footer": "x" * 61}),
    "buttons":       ({"buttons": replies(10)}, {"buttons": replies(11)}),
    "urls":          ({"buttons": URLS[:2]}, {"buttons": URLS}),
    "label":         ({"buttons": (TemplateButton(REPLY, "x" * 25),)}, {"buttons": (TemplateButton(REPLY, "x" * 26),)}),
    "header_variables": (
        {"header": "{{1}}!", "example_header": "a!"},
        {"header": "{{1}}{{2}}", "example_header": "ab"},
    ),
}
# fmt: on


@pytest.mark.parametrize("name", BOUNDS)
def test_value_at_a_bound_is_valid_and_one_beyond_it_is_not(name: str) -> None:
    within, beyond = BOUNDS[name]

    assert violation(True, **within) is None
    assert violation(True, **beyond) is not None


@pytest.mark.parametrize("field", ["element_name", "category", "template_type", "vertical", "content", "example"])
@pytest.mark.parametrize("nothing", [None, ""])
def test_required_field_is_named_when_it_is_missing(field: str, nothing: str | None) -> None:
    explanation = violation(True, **{field: nothing})

    assert explanation is not None
    assert " is required: " in explanation


@pytest.mark.parametrize(
    ("content", "is_valid"),
    [
        ("Hello", True),
        ("Hi {{1}}!", True),
        ("{{1}} and {{2}} and {{1}}!", True),
        ("{{2}} and {{1}}!", True),
        ("Hi {{2}}!", False),
        ("Hi {{0}}!", False),
        ("Hi {{01}}!", False),
        ("Hi {{ 1 }}!", False),
        ("Hi {{name}}!", False),
        ("Hi {{}}!", False),
        ("Hi {{1}!", False),
        ("Hi {1}}!", False),
        ("Hi {1}!", True),
        ("Hi {{\u0661}}!", False),
        ("Hi {{99999}}!", False),
    ],
)
def test_variables_are_numbered_from_1_without_a_gap(content: str, is_valid: bool) -> None:
    text = f"Dear friends of ours, {content} Goodbye to all of you."

    explanation = violation(content=text, example=text)

    is_about_content = (explanation or "").startswith("content")
    assert is_about_content is not is_valid


@pytest.mark.parametrize(
    ("label", "is_valid"),
    [
        ("Yes", True),
        ("Order #12, 10% & more", True),
        ("© Acme™", True),
        ("snake_case_name", True),
        ("5 * 3", True),
        ("Yes \U0001f44d", False),
        ("Yes ✅", False),
        ("1\ufe0f\u20e3", False),
        ("a\nb", False),
        ("a\tb", False),
        ("*bold*", False),
        ("_it_", False),
        ("~x~", False),
        ("```x```", False),
        ("Hi {{1}}", False),
    ],
)
def test_label_is_one_line_of_plain_text(label: str, is_valid: bool) -> None:
    otp = TemplateButton(ButtonKind.OTP, "Copy code", otp_type="COPY_CODE")
    drafts = (
        sale(TemplateButton(REPLY, label)),
        sale(replace(URL, text=label)),
        sale(replace(CALL, text=label)),
        code(buttons=(replace(otp, text=label),)),
        code(buttons=(replace(tap(APPS[0]), autofill_text=label),)),
        carousel(*[card(buttons=(replace(URL, text=label),))] * 2),
    )

    for fields in drafts:
        assert (violation(**fields) is None) is is_valid, fields


def test_labels_of_one_message_differ() -> None:
    both = TemplateButton(REPLY, "Yes"), replace(URL, text="Yes")

    assert violation(**sale(*both)) == "buttons[1].text must be different from the texts of the other buttons."
    assert "must be different" in (violation(**carousel(*[card(buttons=both)] * 2)) or "")
    assert violation(**carousel(*[card(buttons=(both[0],))] * 2)) is None


@pytest.mark.parametrize(
    ("url", "is_valid"),
    [
        ("https://wa.me/15550001111", False),
        ("https://chat.whatsapp.com/x", False),
        ("https://wa.me/pay/x", True),
        ("https://wa.me.acme.test/", True),
        ("https://acme.test/wa.me", True),
    ],
)
def test_button_leads_to_no_page_of_the_operator(url: str, is_valid: bool) -> None:
    assert (violation(**sale(replace(URL, url=url))) is None) is is_valid
    assert (violation(**carousel(*[card(buttons=(replace(URL, url=url),))] * 2)) is None) is is_valid


def test_app_of_a_code_is_named_once() -> None:
    assert (
        violation(**code(buttons=(tap(APPS[0], APPS[0]),))) == "buttons[0].supported_apps must not hold an app twice."
    )


@pytest.mark.parametrize(
    ("order", "is_valid"), [("QQU", True), ("UQQ", True), ("QUQ", False), ("UQU", False), ("Q", True)]
)
def test_quick_replies_are_grouped_together(order: str, is_valid: bool) -> None:
    buttons = tuple(
        replace(URL if letter == "U" else TemplateButton(REPLY), text=f"B{n}") for n, letter in enumerate(order)
    )

    assert (violation(buttons=buttons) is None) is is_valid


@pytest.mark.parametrize(
    ("url", "is_valid"),
    [
        ("https://acme.test", True),
        ("http://acme.test/a?b=c#d", True),
        ("https://acme.test/{{1}}", True),
        ("https://acme.test/?id={{1}}", True),
        ("https://acme.test/{{2}}", False),
        ("https://acme.test/{{1}}/x", False),
        ("https://{{1}}", False),
        ("https://acme.test/a b", False),
        ("ftp://acme.test", False),
        ("acme.test", False),
        ("javascript:alert(1)", False),
        ("https:///x", False),
    ],
)
def test_url_is_absolute_and_its_variable_is_at_the_end(url: str, is_valid: bool) -> None:
    button = TemplateButton(ButtonKind.URL, "Look", url=url, example=("7",))

    assert (violation(buttons=(button,)) is None) is is_valid


@pytest.mark.parametrize(
    ("number", "is_valid"),
    [
        ("+15550001111", True),
        ("15550001111", True),
        ("+1 (555) 000-1111", True),
        ("12345", True),
        ("1234", False),
        ("1" * 20, True),
        ("1" * 21, False),
        ("++1555000", False),
        ("call me", False),
    ],
)
def test_number_to_call_is_a_phone_number(number: str, is_valid: bool) -> None:
    button = TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number=number)

    assert (violation(buttons=(button,)) is None) is is_valid


def test_operators_rules_are_left_to_the_review_unless_the_service_is_strict() -> None:
    assert violation(strict=False, buttons=replies(11)) is None
    assert violation(strict=True, buttons=replies(11)) is not None


def test_unknown_category_has_an_error_code_of_its_own() -> None:
    with pytest.raises(ApiError) as raised:
        check_draft(draft(category="PROMO"))

    assert raised.value.code is ErrorCode.INVALID_CATEGORY


@pytest.mark.parametrize(
    ("line", "is_valid"),
    [
        ("{{1}} is your verification code.", True),
        ("*{{1}}* is your verification code.", True),
        ("  {{1}} is your verification code.  ", True),
        ("{{1}} is your verification code. For your security, do not share this code.", True),
        ("{{1}} is your verification code.\nFor your security, do not share this code.", True),
        ("{{1}} is your verification code. This code expires in 5 minutes.", True),
        ("*{{1}} is your verification code.", False),
        ("{{1}}* is your verification code.", False),
        ("{{2}} is your verification code.", False),
        ("{{1}} is your verification code", False),
        ("{{1}} is your verification code. Buy our shoes!", False),
        ("Your code is {{1}}.", False),
    ],
)
def test_first_line_of_authentication_is_the_operators(line: str, is_valid: bool) -> None:
    assert (violation(strict=False, **code(content=line)) is None) is is_valid


@pytest.mark.parametrize(
    ("content", "is_valid"),
    [
        ("Hi {{1}}, hello there.", True),
        ("Hi {{1}}, hello.", False),
        ("One {{1}} two {{2}} three four five.", True),
        ("One {{1}} two {{2}} three four.", False),
        ("One {{1}} two {{1}} three four.", True),
        ("您好{{1}}您的订单", True),
        ("สวัสดี {{1}} คำสั่งซื้อของคุณพร้อมแล้ว", True),
        ("ສະບາຍດີ {{1}} ຄໍາສັ່ງຊື້ຂອງທ່ານພ້ອມແລ້ວ", True),
        ("你好{{1}}", False),
        ("สวัสดี {{1}} คุณ", False),
        ("Hi {{1}} - - - ok", True),
        ("Hi {{1}} https://a.example/x/y", False),
        ("{{1}}, your order is ready.", False),
        ("Your order is ready, {{1}}", False),
        ("Your order is ready, {{1}}.", True),
        ("Your order {{1}}{{2}} is ready for you now.", False),
        ("Your order {{1}} {{2}} is ready for you now.", False),
        ("Your order {{1}}-{{2}} is ready for you now.", True),
    ],
)
def test_body_has_text_around_its_variables(content: str, is_valid: bool) -> None:
    filled = content.replace("{{1}}", "a").replace("{{2}}", "b")

    assert (violation(content=content, example=filled) is None) is is_valid


@pytest.mark.parametrize(
    ("order", "is_valid"), [("CU", True), ("CUQ", True), ("UC", False), ("C", False), ("U", False), ("CQU", False)]
)
def test_offer_that_expires_begins_with_copy_code_and_url(order: str, is_valid: bool) -> None:
    kinds = {"C": copy_code("SAVE20"), "U": URL, "Q": TemplateButton(REPLY, "Yes")}
    buttons = tuple(kinds[letter] for letter in order)

    assert (violation(**offer(buttons=buttons)) is None) is is_valid


@pytest.mark.parametrize("template_type", ["IMAGE", "VIDEO", "DOCUMENT"])
@pytest.mark.parametrize("sample", ["example_media", "media_id", "media_url"])
def test_any_sample_serves_a_medium(template_type: str, sample: str) -> None:
    fields: dict[str, Any] = {"template_type": template_type, "enable_sample": True}

    assert violation(**fields) is not None
    fields[sample] = "x"
    assert violation(**fields) is None


def test_features_that_on_premises_hosting_lacks_are_rejected_there_only() -> None:
    for fields in (offer(), carousel(CARD, CARD), sale() | {"template_type": "CATALOG"}):
        check_draft(draft(**fields))
        with pytest.raises(ApiError, match="on-premises"):
            check_draft(draft(**fields), hosting=Hosting.ON_PREMISES)


def test_first_different_card_is_named() -> None:
    cards = (CARD, CARD, card(header_type="VIDEO"))

    assert violation(**carousel(*cards)) == "cards[2].headerType must be the same in all cards."


def test_languages_are_found_in_any_case_and_spelled_as_the_operator_does() -> None:
    assert len(set(LANGUAGES)) == len(LANGUAGES) == 114
    assert canonical_language("PT_br") == "pt_BR"
    assert canonical_language("es_cri") == "es_CRI"
    assert canonical_language("klingon") == "klingon"
