"""A template flattened into the one text of its record."""

import pytest

from tests.support.builders import draft
from waypost.domain.templates.buttons import ButtonKind, SupportedApp, TemplateButton, button_codes
from waypost.domain.templates.rendering import flatten_template, product_header, render_button

REPLY = TemplateButton(ButtonKind.QUICK_REPLY, "Yes")
URL = TemplateButton(ButtonKind.URL, "Look", url="https://acme.test/{{1}}", example=("7",))
CALL = TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number="+1555")


def test_parts_are_on_separate_lines() -> None:
    text = flatten_template(draft(header="Head", content="Body\nof two lines", footer="Foot"))

    assert text == "Head\nBody\nof two lines\nFoot"


def test_absent_parts_leave_no_lines() -> None:
    assert flatten_template(draft(content="Body")) == "Body"
    assert flatten_template(draft(content="Body", footer="Foot")) == "Body\nFoot"


def test_buttons_are_separated_by_bars_and_shown_with_their_targets() -> None:
    text = flatten_template(draft(content="Body", footer="Foot", buttons=(CALL, URL, REPLY)))

    assert text == "Body\nFoot | [Call,+1555] | [Look,https://acme.test/{{1}}] | [Yes]"


def test_codes_of_the_buttons_are_alphabetical_and_unique() -> None:
    assert button_codes((URL, REPLY, REPLY, CALL)) == "PN,QR,URL"
    assert button_codes((REPLY,)) == "QR"
    assert button_codes(()) is None


def test_offer_is_on_the_line_between_body_and_footer() -> None:
    code = TemplateButton(ButtonKind.COPY_CODE, example=("SAVE20",))
    offer = {"is_lto": True, "limited_offer_text": "Ends soon"}

    text = flatten_template(draft(content="Body", has_expiration=True, buttons=(code, URL), **offer))

    assert text == ("Body\nEnds soon | true | [Copy offer code,{{1}}] | [Look,https://acme.test/{{1}}]")
    assert flatten_template(draft(content="Body", **offer)) == "Body\nEnds soon | false"


def test_code_is_shown_in_the_operators_text_whatever_was_sent() -> None:
    authentication = draft(
        category="AUTHENTICATION",
        content="{{1}} is your verification code.\nAnd more.",
        add_security_recommendation=True,
        code_expiration_minutes=5,
    )

    assert flatten_template(authentication) == (
        "*{{1}}* is your verification code. For your security, do not share this code.\nThis code expires in 5 minutes."
    )


def test_code_button_is_shown_as_the_url_it_becomes() -> None:
    tap = TemplateButton(
        ButtonKind.OTP,
        "Copy",
        otp_type="ONE_TAP",
        autofill_text="Fill in",
        supported_apps=(SupportedApp("com.acme", "a+b/c=d1234"),),
    )

    assert render_button(tap) == (
        "[Copy,https://www.whatsapp.com/otp/code/?otp_type=ONE_TAP&cta_display_name=Fill%20in"
        "&package_name=com.acme&signature_hash=a%2Bb%2Fc%3Dd1234&code=otp{{1}}]"
    )


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("Hello all.\nSee what is new.", "Hello all."),
        ("Hi {{1}}, see *what* is new", "Hi, see what is new"),
        ("{{1}}", "Items"),
        ("Hi \U0001f44b all", "Hi all"),
        ("\u2764\ufe0f", "Items"),
        ("x" * 61, "x" * 60),
        ("  \n\nLate", "Late"),
    ],
)
def test_header_of_products_is_the_first_line_without_variables(content: str, header: str) -> None:
    assert product_header(content) == header
