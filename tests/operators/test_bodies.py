"""The template bodies that the adapter sends to the operator, as its documentation requires."""

from typing import Any

import pytest

from tests.support.builders import draft, template
from waypost.domain.templates.buttons import (
    VIEW_CATALOG_BUTTON,
    VIEW_ITEMS_BUTTON,
    ButtonKind,
    Card,
    SupportedApp,
    TemplateButton,
)
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rules import check_draft
from waypost.domain.templates.template import Category, add_type_button, sample_references
from waypost.operators.cloud.templates import template_body
from waypost.simulator.templates.checks import check_draft as check_operator_draft

REPLY = TemplateButton(ButtonKind.QUICK_REPLY, "Yes")
PLAIN_URL = TemplateButton(ButtonKind.URL, "Look", url="https://acme.test")
URL = TemplateButton(ButtonKind.URL, "Track", url="https://acme.test/{{1}}", example=("7",))
CALL = TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number="+15550001111")


def test_template_is_submitted_with_the_values_of_its_examples() -> None:
    submitted = template(
        of=draft(
            header="Order {{1}}",
            example_header="Order 4711",
            content="Hi {{1}}, {{2}} is ready.",
            example="Hi [Ann], the cake is ready.",
            footer="Acme",
            buttons=(CALL, URL, REPLY),
            allow_template_category_change=True,
        ),
        category=Category.MARKETING,
    )

    assert template_body(submitted, {}) == {
        "name": "order_ready",
        "language": "en_US",
        "category": "MARKETING",
        "allow_category_change": True,
        "components": [
            {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}", "example": {"header_text": ["4711"]}},
            {"type": "BODY", "text": "Hi {{1}}, {{2}} is ready.", "example": {"body_text": [["Ann", "the cake"]]}},
            {"type": "FOOTER", "text": "Acme"},
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
                    {"type": "URL", "text": "Track", "url": "https://acme.test/{{1}}", "example": ["7"]},
                    {"type": "QUICK_REPLY", "text": "Yes"},
                ],
            },
        ],
    }


def test_template_without_variables_is_submitted_without_examples() -> None:
    submitted = template(of=draft(content="Hello.", example="Hello.", buttons=(PLAIN_URL,)))

    assert template_body(submitted, {})["components"] == [
        {"type": "BODY", "text": "Hello."},
        {"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Look", "url": "https://acme.test"}]},
    ]


def test_example_that_does_not_match_the_text_is_submitted_unchanged() -> None:
    submitted = template(of=draft(example="Something else"))

    [body] = template_body(submitted, {})["components"]

    assert body["example"] == {"body_text": [["Something else"]]}


HANDLE = "4::aW1hZ2UvanBlZw==:ours:e:1790000000:7:9:here"
COPIES = {HANDLE: "4::theirs\n4::more", "1234567890123456": "4::of the id"}
APP = SupportedApp("com.acme.shop", "AbC/def1234")
COPY = TemplateButton(ButtonKind.COPY_CODE, example=("SAVE20",))
FLOW = TemplateButton(ButtonKind.FLOW, "Book", flow_id="12", flow_action="NAVIGATE", navigate_screen="FIRST")
OTP = TemplateButton(ButtonKind.OTP, "Copy code", otp_type="COPY_CODE")
ONE_TAP = TemplateButton(
    ButtonKind.OTP, "Copy code", otp_type="ONE_TAP", autofill_text="Autofill", supported_apps=(APP,), is_flat=True
)
ZERO_TAP = TemplateButton(
    ButtonKind.OTP, "Copy code", otp_type="ZERO_TAP", supported_apps=(APP,), zero_tap_terms_accepted=True
)
SALE: dict[str, Any] = {"category": "MARKETING", "content": "See what is new.", "example": "x"}
CODE: dict[str, Any] = {
    "category": "AUTHENTICATION",
    "content": "{{1}} is your verification code.",
    "add_security_recommendation": True,
    "code_expiration_minutes": 5,
}
CARDS = (
    Card("IMAGE", example_media=HANDLE, body="For {{1}} only.", sample_text="For Ann only.",
         buttons=(REPLY, URL)),
    Card("IMAGE", media_id="1234567890123456", body="For all.", buttons=(REPLY, URL)),
)  # fmt: skip

# fmt: off
DRAFTS: dict[str, TemplateDraft] = {
    "text":       draft(),
    "image":      draft(template_type="IMAGE", example_media=HANDLE),
    "video":      draft(template_type="VIDEO", media_id="1234567890123456"),
    "document":   draft(template_type="DOCUMENT", example_media="4::unknown"),
    "location":   draft(template_type="LOCATION"),
    "product":    add_type_button(draft(**SALE, template_type="PRODUCT")),
    "catalog":    add_type_button(draft(**SALE, template_type="CATALOG")),
    "carousel":   draft(**SALE, template_type="CAROUSEL", cards=CARDS),
    "lto":        draft(**SALE, is_lto=True, limited_offer_text="Ends soon", has_expiration=True, buttons=(COPY, URL)),
    "copy code":  draft(**CODE, buttons=(OTP,)),
    "one tap":    draft(**CODE, buttons=(ONE_TAP,)),
    "zero tap":   draft(**CODE, buttons=(ZERO_TAP,)),
    "flow":       draft(**SALE, buttons=(FLOW,)),
    "named":      draft(content="Hi {{who}}, your order is ready.", parameter_format="NAMED"),
    "call":       draft(is_call_permission_request=True, message_validity_s=600),
}
# fmt: on


def components(name: str) -> list[dict[str, Any]]:
    return template_body(template(of=DRAFTS[name]), COPIES)["components"]


def component(name: str, type: str) -> dict[str, Any]:
    [matching] = [component for component in components(name) if component["type"] == type]
    return matching


@pytest.mark.parametrize("name", DRAFTS)
def test_draft_that_satisfies_every_rule_is_accepted_by_the_operator(name: str) -> None:
    check_draft(DRAFTS[name], strict=True)

    check_operator_draft(template_body(template(of=DRAFTS[name]), COPIES))


@pytest.mark.parametrize(
    ("name", "format", "handle"),
    [
        ("image", "IMAGE", "4::theirs\n4::more"),
        ("video", "VIDEO", "4::of the id"),
        ("document", "DOCUMENT", "4::unknown"),
    ],
)
def test_sample_is_sent_as_the_operators_copy_or_unchanged(name: str, format: str, handle: str) -> None:
    assert component(name, "HEADER") == {"type": "HEADER", "format": format, "example": {"header_handle": [handle]}}


def test_medium_without_a_sample_has_no_example() -> None:
    without_sample = template(of=draft(template_type="IMAGE"))

    assert template_body(without_sample, {})["components"][0] == {"type": "HEADER", "format": "IMAGE"}


def test_location_has_a_header_without_an_example() -> None:
    assert component("location", "HEADER") == {"type": "HEADER", "format": "LOCATION"}


def test_products_have_a_header_made_of_the_body() -> None:
    assert components("product") == [
        {"type": "HEADER", "format": "TEXT", "text": "See what is new."},
        {"type": "BODY", "text": "See what is new."},
        {"type": "BUTTONS", "buttons": [{"type": "MPM", "text": "View items"}]},
    ]


def test_catalog_has_its_button_and_no_header() -> None:
    assert components("catalog") == [
        {"type": "BODY", "text": "See what is new."},
        {"type": "BUTTONS", "buttons": [{"type": "CATALOG", "text": "View catalog"}]},
    ]


def test_limited_time_offer_has_its_own_component() -> None:
    assert components("lto")[1:] == [
        {"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Ends soon", "has_expiration": True}},
        {
            "type": "BUTTONS",
            "buttons": [
                {"type": "COPY_CODE", "example": "SAVE20"},
                {"type": "URL", "text": "Track", "url": "https://acme.test/{{1}}", "example": ["7"]},
            ],
        },
    ]


def test_authentication_template_has_no_text_but_flags_for_the_operator() -> None:
    assert components("copy code") == [
        {"type": "BODY", "add_security_recommendation": True},
        {"type": "FOOTER", "code_expiration_minutes": 5},
        {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy code"}]},
    ]


def test_flat_fields_of_one_tap_are_sent_in_supported_apps() -> None:
    assert component("one tap", "BUTTONS")["buttons"] == [
        {
            "type": "OTP",
            "otp_type": "ONE_TAP",
            "text": "Copy code",
            "autofill_text": "Autofill",
            "supported_apps": [{"package_name": "com.acme.shop", "signature_hash": "AbC/def1234"}],
        }
    ]


def test_zero_tap_button_states_that_its_terms_are_accepted() -> None:
    [button] = component("zero tap", "BUTTONS")["buttons"]

    assert button["zero_tap_terms_accepted"] is True
    assert "autofill_text" not in button


def test_action_of_a_flow_is_sent_in_lower_case() -> None:
    assert component("flow", "BUTTONS")["buttons"] == [
        {"type": "FLOW", "text": "Book", "flow_id": "12", "flow_action": "navigate", "navigate_screen": "FIRST"}
    ]


def test_named_variables_have_named_examples() -> None:
    assert template_body(template(of=DRAFTS["named"]), {})["parameter_format"] == "NAMED"
    assert component("named", "BODY")["example"] == {
        "body_text_named_params": [{"param_name": "who", "example": "Ann"}]
    }


def test_message_validity_and_call_permission_are_members_of_the_body() -> None:
    body = template_body(template(of=DRAFTS["call"]), {})

    assert body["message_send_ttl_seconds"] == 600
    assert body["sub_category"] == "CALL_PERMISSIONS_REQUEST"


def test_each_card_has_its_own_components() -> None:
    [first, second] = component("carousel", "CAROUSEL")["cards"]

    assert [component["type"] for component in first["components"]] == ["HEADER", "BODY", "BUTTONS"]
    assert first["components"][0]["example"] == {"header_handle": ["4::theirs\n4::more"]}
    assert first["components"][1]["example"] == {"body_text": [["Ann"]]}
    assert second["components"][0]["example"] == {"header_handle": ["4::of the id"]}
    assert second["components"][1] == {"type": "BODY", "text": "For all."}


def test_samples_that_a_draft_needs_are_listed_once() -> None:
    assert sample_references(DRAFTS["image"]) == (HANDLE,)
    assert sample_references(DRAFTS["video"]) == ("1234567890123456",)
    assert sample_references(DRAFTS["carousel"]) == (HANDLE, "1234567890123456")
    assert sample_references(draft(**SALE, template_type="CAROUSEL", cards=(CARDS[0],) * 2)) == (HANDLE,)
    assert sample_references(draft(example_media=HANDLE)) == ()


def test_button_of_products_and_catalog_is_added_once() -> None:
    sent = TemplateButton(ButtonKind.MPM)

    assert DRAFTS["product"].buttons == (VIEW_ITEMS_BUTTON,)
    assert DRAFTS["catalog"].buttons == (VIEW_CATALOG_BUTTON,)
    assert add_type_button(draft(template_type="PRODUCT", buttons=(sent, REPLY))).buttons == (REPLY, VIEW_ITEMS_BUTTON)
    assert add_type_button(draft(buttons=(REPLY,))).buttons == (REPLY,)
