"""Redaction of callbacks' bodies: what no table allows is hidden."""

import json
from typing import Any, Final

import pytest

from waypost.wire.redaction import (
    HIDDEN_SECRET,
    TextVisibility,
    mask_logged_request,
    mask_logged_response,
    redact_body,
    request_without_codes,
)

TEXT: Final = "Zinnia"


def change(field: str, value: Any) -> dict[str, Any]:
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": "1", "changes": [{"field": field, "value": value}]}],
    }


def v2(type: str, payload: Any) -> dict[str, Any]:
    return {"app": "A", "phone": "1555", "timestamp": 1, "version": 2, "type": type, "payload": payload}


# fmt: off
HIDDEN: Final[tuple[Any, ...]] = (
    v2("message", {"id": "wamid.1", "type": "text", "payload": {"text": TEXT}}),
    v2("message", {"id": "wamid.1", "type": "location", "payload": {"latitude": TEXT}, "referral": {"headline": TEXT}}),
    v2("an-event-of-the-future", {"words": TEXT}),
    change("messages", {"messages": [{"from": "1555", "type": "text", "text": {"body": TEXT}}]}),
    change("messages", {"messages": [{"type": "an-unknown-type", "an-unknown-type": [TEXT, {"deep": [TEXT]}]}]}),
    change("messages", {"member_of_the_future": {"text": TEXT}}),
    change("smb_message_echoes", {"message_echoes": [{"type": "text", "text": {"body": TEXT}}]}),
    change("history", {"history": [{"threads": [{"messages": [{"text": {"body": TEXT}}]}]}]}),
    change("a_field_of_the_future", {"value": TEXT}),
    change("a_field_of_the_future", TEXT),
    {"field": "no entry", "text": TEXT}, [TEXT], TEXT,
)
SHOWN: Final[tuple[Any, ...]] = (
    v2("message-event", {"id": "a", "type": "failed", "payload": {"code": 1, "reason": "Because"}}),
    v2("template-event", {"id": "a", "type": "status-update", "reason": "INVALID_FORMAT"}),
    change("messages", {"statuses": [{"id": "wamid.1", "status": "failed", "errors": [{"title": "Because"}]}]}),
    change("message_template_status_update", {"event": "REJECTED", "reason": "Because"}),
)
# fmt: on


@pytest.mark.parametrize("body", HIDDEN)
def test_text_that_people_write_is_hidden_and_the_body_stays_json(body: Any) -> None:
    text = json.dumps(body)

    shown = redact_body(text, TextVisibility(text=False))

    assert TEXT not in shown.text
    assert TEXT in shown.hidden
    assert type(json.loads(shown.text)) is type(body)
    assert redact_body(text, TextVisibility(text=True)).text == text
    assert TEXT not in redact_body(text, TextVisibility(text=True, holds_code=True)).text


@pytest.mark.parametrize("body", SHOWN)
def test_body_without_text_of_people_is_shown_byte_for_byte(body: Any) -> None:
    text = json.dumps(body, indent=1)

    assert redact_body(text, TextVisibility(text=False, holds_code=True)).text == text


def test_template_that_somebody_else_sent_is_hidden_though_text_is_shown() -> None:
    sent = {"type": "template", "template": {"name": "code", "values": ["730519", 730519]}}
    body = json.dumps(change("smb_message_echoes", {"message_echoes": [sent, {"text": {"body": TEXT}}]}))

    shown = redact_body(body, TextVisibility(text=True)).text

    assert "730519" not in shown
    assert TEXT in shown


@pytest.mark.parametrize("text", ["no JSON", "[" * 100_000, '{"a":' * 3000 + "1" + "}" * 3000])
def test_body_that_cannot_be_read_is_shown_as_a_length(text: str) -> None:
    shown = redact_body(text, TextVisibility(text=False))

    assert json.loads(shown.text) == f"({len(text)} characters)"


@pytest.mark.parametrize("response", [f"You said {TEXT}", json.dumps({"echo": TEXT})])
def test_response_that_repeats_hidden_text_is_shown_as_a_length(response: str) -> None:
    body = redact_body(json.dumps(HIDDEN[0]), TextVisibility(text=False))

    assert TEXT not in body.redact_response(response)
    assert body.redact_response("thank you") == "thank you"


@pytest.mark.parametrize(
    "request_text",
    ['template={"id":"a","params":["730519"]}', '{"template":{"name":"a","x":[{"text":730519}]}}', "730519"],
)
def test_request_without_codes_keeps_its_form(request_text: str) -> None:
    shown = request_without_codes(request_text)

    assert "730519" not in shown
    assert shown.startswith(request_text[:1]) or shown == ""


@pytest.mark.parametrize(
    ("body", "shown", "hidden"),
    [
        ({"messageId": "m-1", "status": "submitted"}, {"messageId": "m-1", "status": "submitted"}, None),
        ({"status": "success", "link": f"https://a.test/{TEXT}"}, {"status": "success"}, "link"),
        ({"invite_link": TEXT}, {}, "invite_link"),
        ({"oauth_url": TEXT, "expiration": 7}, {}, "oauth_url"),
        ({"token": {"token": TEXT, "active": True}}, {}, "token"),
        ({"preview": {"preview_url": TEXT}}, {}, None),
    ],
)
@pytest.mark.parametrize("show_text", [False, True])
def test_no_secret_of_a_response_is_logged(
    body: dict[str, Any], shown: dict[str, Any], hidden: str | None, show_text: bool
) -> None:
    logged = mask_logged_response(json.dumps(body), TextVisibility(show_text))

    assert TEXT not in json.dumps(logged)
    assert shown.items() <= logged.items()
    assert hidden is None or logged[hidden] == HIDDEN_SECRET


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        (TextVisibility(False), {"message": "(6 characters)", "template": {"id": "t-1", "params": ["(6 characters)"]}}),
        (TextVisibility(True, holds_code=True), {"message": TEXT, "template": {"id": "t-1", "params": ["(6 characters)"]}}),
        (TextVisibility(True), {"message": TEXT, "template": {"id": "t-1", "params": [TEXT]}}),
    ],
)  # fmt: skip
def test_values_of_a_template_are_logged_only_if_they_hold_no_code(
    visibility: TextVisibility, expected: dict[str, Any]
) -> None:
    body = {"message": TEXT, "template": {"id": "t-1", "params": [TEXT]}, "password": "secret"}

    assert mask_logged_request(json.dumps(body), visibility) == expected | {"password": HIDDEN_SECRET}


def test_lists_and_what_is_no_json_are_logged_too() -> None:
    assert mask_logged_response(json.dumps([{"id": "1", "name": TEXT}]), TextVisibility(False)) == [
        {"id": "1", "name": "(6 characters)"}
    ]
    assert mask_logged_response(TEXT, TextVisibility(True)) == "(6 characters)"
