"""Whatever stands in the place of one member, the answer is the operator's: taken or refused."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA

Desk = Callable[[str, bytes], tuple[int, Any]]
JUNK: list[Any] = [None, True, 7, -1.5, "", "x", "{{1}}", [], {}, [[]], [{}], {"type": {}}]
HEADER = {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4::x"]}}
BODY = {"type": "BODY", "text": "Hello {{1}}, how are you", "example": {"body_text": [["A"]]}}
LINK = {"type": "URL", "text": "A", "url": "https://x.example/{{1}}", "example": ["a"]}
REPLIES = {"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Yes"}, LINK]}
CARD = {"components": [HEADER, BODY, REPLIES]}
APPS = [{"package_name": "com.shop.app", "signature_hash": "AbC/def1234"}]
ONE_TAP = {"type": "OTP", "otp_type": "ONE_TAP", "text": "A", "supported_apps": APPS}
OFFER = {"text": "Ends soon!", "has_expiration": True}
CODE = {"type": "COPY_CODE", "example": "SAVE20"}
ROW = {"id": "a", "title": "A", "description": "d"}
REPLY = {"type": "reply", "reply": {"id": "a", "title": "Yes"}}
FLOW: Any = {"flow_id": "1", "flow_cta": "Go", "flow_token": "t", "flow_action_payload": {"data": {}}}

DRAFTS: list[list[Any]] = [
    [HEADER, BODY, {"type": "FOOTER", "text": "Bye"}, REPLIES],
    [BODY, {"type": "CAROUSEL", "cards": [CARD, CARD]}],
    [BODY, {"type": "LIMITED_TIME_OFFER", "limited_time_offer": OFFER}, {"type": "BUTTONS", "buttons": [CODE, LINK]}],
    [
        {"type": "BODY", "add_security_recommendation": True},
        {"type": "FOOTER", "code_expiration_minutes": 5},
        {"type": "BUTTONS", "buttons": [ONE_TAP]},
    ],
    [BODY, {"type": "BUTTONS", "buttons": [{"type": "FLOW", "text": "A", "flow_id": "1"}]}],
]
BUBBLE: Any = {"body": {"text": "Well?"}}
INTERACTIVE: list[Any] = [
    {
        "type": "button",
        "header": {"type": "text", "text": "H"},
        "footer": {"text": "F"},
        "action": {"buttons": [REPLY]},
    },
    {"type": "list", "action": {"button": "A", "sections": [{"title": "S", "rows": [ROW]}]}},
    {"type": "cta_url", "action": {"parameters": {"display_text": "A", "url": "http://x"}}},
    {"type": "flow", "action": {"name": "flow", "parameters": FLOW}},
    {"type": "address_message", "action": {"name": "address_message", "parameters": {"country": "IN"}}},
]
MESSAGES: list[dict[str, Any]] = [
    {"type": "text", "text": {"body": "Hi"}, "context": {"message_id": "x"}},
    {"type": "image", "image": {"id": "1", "caption": "c"}},
    {"type": "location", "location": {"latitude": 1, "longitude": 2, "name": "n"}},
    {"type": "contacts", "contacts": [{"name": {"formatted_name": "Bo"}}]},
    {"type": "reaction", "reaction": {"message_id": "x", "emoji": "y"}},
    {"status": "read", "message_id": "x", "typing_indicator": {"type": "text"}},
    *({"type": "interactive", "interactive": {**BUBBLE, **content}} for content in INTERACTIVE),
    {
        "type": "template",
        "template": {
            "name": "seeded",
            "language": {"code": "en_US"},
            "components": [
                {"type": "body", "parameters": [{"type": "text", "text": "A"}]},
                {
                    "type": "button",
                    "sub_type": "quick_reply",
                    "index": "0",
                    "parameters": [{"type": "payload", "payload": "p"}],
                },
                {"type": "carousel", "cards": [{"card_index": 0, "components": []}]},
            ],
        },
    },
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every member of a document."""
    if isinstance(value, dict):
        for name, member in cast("dict[str, Any]", value).items():
            yield (*path, name)
            yield from places(member, (*path, name))
    if isinstance(value, list):
        for place, member in enumerate(cast("list[Any]", value)):
            yield (*path, place)
            yield from places(member, (*path, place))


def spoiled(document: Any) -> Iterator[Any]:
    """The document with one member spoiled, for every member and every kind of junk."""
    for path in places(document):
        for junk in JUNK:
            other = copy.deepcopy(document)
            inner = other
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = junk
            yield other


def assert_answered(desk: Desk, path: str, document: dict[str, Any]) -> None:
    status, answer = desk(path, json.dumps(document).encode())
    assert status == 200 or (400 <= status < 500 and answer["error"]["code"]), document


@pytest.mark.parametrize("components", DRAFTS, ids=range(len(DRAFTS)))
def test_spoiled_template_gets_an_answer(junk_desk: Desk, components: list[Any]) -> None:
    for category in ("MARKETING", "AUTHENTICATION"):
        for number, other in enumerate(spoiled(components)):
            draft = {"name": f"n{number}", "language": "en_US", "category": category}
            assert_answered(
                junk_desk, f"{WABA}/message_templates", {**draft, "components": other}
            )  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_spoiled_message_gets_an_answer(junk_desk: Desk, message: dict[str, Any]) -> None:
    for other in spoiled(message):
        envelope = {"messaging_product": "whatsapp", "to": f"+{ANN}"}
        assert_answered(junk_desk, f"{NUMBER_ID}/messages", {**envelope, **other})
