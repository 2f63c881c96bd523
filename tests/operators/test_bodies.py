"""What the adapter says to the operator: messages and templates as its documentation wants them."""

from typing import Any

import pytest

from tests.support.builders import ANN, draft, id_number, message, template
from waypost.domain.buttons import Button, ButtonKind
from waypost.domain.message import SessionText, TemplateSend
from waypost.domain.postback import payload_of
from waypost.domain.template import Category
from waypost.operators.cloud.messages import message_body
from waypost.operators.cloud.templates import template_body

REPLY = Button(ButtonKind.QUICK_REPLY, "Yes")
PLAIN_URL = Button(ButtonKind.URL, "Look", url="https://acme.test")
URL = Button(ButtonKind.URL, "Track", url="https://acme.test/{{1}}", example=("7",))
CALL = Button(ButtonKind.PHONE_NUMBER, "Call", phone_number="+15550001111")
FULL = template(
    of=draft(
        header="Order {{1}}",
        content="Hi {{1}}, {{2}} is ready, {{1}}.",
        buttons=(CALL, URL, REPLY, Button(ButtonKind.QUICK_REPLY, "No")),
        language_code="de",
    )
)


def test_text_is_sent_with_our_id_as_callback_data() -> None:
    body = message_body(message(content=SessionText("Hello", preview_url=True)), None, None)

    assert body == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": f"+{ANN}",
        "biz_opaque_callback_data": id_number(1),
        "type": "text",
        "text": {"body": "Hello", "preview_url": True},
    }


def test_text_in_reply_names_the_operators_id() -> None:
    body = message_body(message(content=SessionText("Hello")), None, "wamid.1")

    assert body["context"] == {"message_id": "wamid.1"}


def components(*params: str, **more: Any) -> list[dict[str, Any]]:
    send = TemplateSend(FULL.id, params, **more)
    return message_body(message(content=send), FULL, None)["template"]["components"]


def texts(*values: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


def button(sub_type: str, index: str, **parameter: str) -> dict[str, Any]:
    return {"type": "button", "sub_type": sub_type, "index": index, "parameters": [parameter]}


def test_template_is_named_in_its_language() -> None:
    sent = message_body(message(content=TemplateSend(FULL.id)), FULL, None)["template"]

    assert sent["name"] == "order_ready"
    assert sent["language"] == {"code": "de", "policy": "deterministic"}


def test_parameters_go_to_header_body_and_buttons_in_this_order() -> None:
    assert components("4711", "Ann", "It", "track-7") == [
        {"type": "header", "parameters": texts("4711")},
        {"type": "body", "parameters": texts("Ann", "It")},
        button("url", "1", type="text", text="track-7"),
    ]


def test_parameters_that_are_missing_are_left_out_for_the_operator_to_count() -> None:
    assert components("4711", "Ann") == [
        {"type": "header", "parameters": texts("4711")},
        {"type": "body", "parameters": texts("Ann")},
    ]


def test_parameters_that_are_too_many_go_to_the_body() -> None:
    assert components("4711", "Ann", "It", "extra", "track-7") == [
        {"type": "header", "parameters": texts("4711")},
        {"type": "body", "parameters": texts("Ann", "It", "extra")},
        button("url", "1", type="text", text="track-7"),
    ]


def test_postback_texts_travel_as_payloads_of_their_buttons() -> None:
    sent = components("1", "2", "3", "4", postback_texts={2: "yes-1", 3: "no-1"})

    assert sent[2:] == [
        button("url", "1", type="text", text="4"),
        button("quick_reply", "2", type="payload", payload="yes-1"),
        button("quick_reply", "3", type="payload", payload="no-1"),
    ]


def test_postback_texts_of_other_buttons_are_left_out() -> None:
    sent = components("1", "2", "3", "4", postback_texts={0: "call", 1: "look", 9: "nowhere"})

    assert [one.get("sub_type") for one in sent] == [None, None, "url"]


@pytest.mark.parametrize(("length", "is_whole"), [(256, True), (257, False)])
def test_postback_text_too_long_to_travel_goes_as_a_reference(length: int, is_whole: bool) -> None:
    text = "x" * length

    payload = payload_of(id_number(1), 3, text)

    assert (payload == text) is is_whole
    assert len(payload) <= 256
    assert is_whole or payload == f"waypost-postback:{id_number(1)}:3"


def test_template_that_was_deleted_meanwhile_is_sent_for_the_operator_to_refuse() -> None:
    sent = message_body(message(content=TemplateSend("gone")), None, None)["template"]

    assert sent == {"name": "gone", "language": {"code": "en_US"}}


def test_template_is_handed_in_with_the_values_of_its_examples() -> None:
    one = template(
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

    assert template_body(one) == {
        "name": "order_ready",
        "language": "en_US",
        "category": "MARKETING",
        "allow_category_change": True,
        "components": [
            {
                "type": "HEADER",
                "format": "TEXT",
                "text": "Order {{1}}",
                "example": {"header_text": ["4711"]},
            },
            {
                "type": "BODY",
                "text": "Hi {{1}}, {{2}} is ready.",
                "example": {"body_text": [["Ann", "the cake"]]},
            },
            {"type": "FOOTER", "text": "Acme"},
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
                    {
                        "type": "URL",
                        "text": "Track",
                        "url": "https://acme.test/{{1}}",
                        "example": ["7"],
                    },
                    {"type": "QUICK_REPLY", "text": "Yes"},
                ],
            },
        ],
    }


def test_template_without_variables_is_handed_in_without_examples() -> None:
    one = template(of=draft(content="Hello.", example="Hello.", buttons=(PLAIN_URL,)))

    assert template_body(one)["components"] == [
        {"type": "BODY", "text": "Hello."},
        {
            "type": "BUTTONS",
            "buttons": [{"type": "URL", "text": "Look", "url": "https://acme.test"}],
        },
    ]


def test_example_that_does_not_fit_is_handed_in_for_the_review_to_judge() -> None:
    one = template(of=draft(example="Something else"))

    [body] = template_body(one)["components"]

    assert body["example"] == {"body_text": [["Something else"]]}
