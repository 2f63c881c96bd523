"""Junk in place of any one member: the request is accepted or gets an operator error, never a 5xx."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from tests.simulator.conftest import ANN, NUMBER_ID, WABA

PostJunk = Callable[[str, bytes], tuple[int, Any]]
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


def member_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every member of a document."""
    if isinstance(value, dict):
        for name, member in cast("dict[str, Any]", value).items():
            yield (*path, name)
            yield from member_paths(member, (*path, name))
    if isinstance(value, list):
        for index, member in enumerate(cast("list[Any]", value)):
            yield (*path, index)
            yield from member_paths(member, (*path, index))


def replace_members(document: Any) -> Iterator[Any]:
    """Yield the document with one member replaced, for every member and every kind of junk."""
    for path in member_paths(document):
        for junk in JUNK:
            other = copy.deepcopy(document)
            inner = other
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = junk
            yield other


def assert_not_5xx(post_junk: PostJunk, path: str, document: dict[str, Any]) -> None:
    status, response = post_junk(path, json.dumps(document).encode())
    assert status == 200 or (400 <= status < 500 and response["error"]["code"]), document


@pytest.mark.parametrize("components", DRAFTS, ids=range(len(DRAFTS)))
def test_template_with_one_invalid_member_never_returns_5xx(post_junk: PostJunk, components: list[Any]) -> None:
    for category in ("MARKETING", "AUTHENTICATION"):
        for number, other in enumerate(replace_members(components)):
            draft = {"name": f"n{number}", "language": "en_US", "category": category}
            assert_not_5xx(
                post_junk, f"{WABA}/message_templates", {**draft, "components": other}
            )  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_message_with_one_invalid_member_never_returns_5xx(post_junk: PostJunk, message: dict[str, Any]) -> None:
    for other in replace_members(message):
        envelope = {"messaging_product": "whatsapp", "to": f"+{ANN}"}
        assert_not_5xx(post_junk, f"{NUMBER_ID}/messages", {**envelope, **other})
