"""Any send form is rejected, or its content can be stored, read back, and encoded for the operator."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import draft, message, template
from waypost.domain.errors import ApiError
from waypost.domain.message import Content, Passthrough, TemplateSend, media_references, reply_target_id
from waypost.domain.send_rules import operator_limit_error, template_send_error
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.templates.buttons import VIEW_ITEMS_BUTTON, ButtonKind, Card, TemplateButton
from waypost.operators.cloud.messages import message_body
from waypost.store.encoding import content_kind, decode_content
from waypost.wire.calling import CallEvent
from waypost.wire.forms import Form
from waypost.wire.message_forms import is_about_products, read_session_message, read_template_send
from waypost.wire.passthrough import PassthroughSend, read_event, read_passthrough

FULL_TEMPLATE = template(
    of=draft(
        header="{{1}}",
        content="{{1}} {{2}}",
        buttons=(
            TemplateButton(ButtonKind.URL, "Go", url="https://a.test/{{1}}"),
            TemplateButton(ButtonKind.QUICK_REPLY, "Yes"),
            TemplateButton(ButtonKind.COPY_CODE, "Copy"),
            VIEW_ITEMS_BUTTON,
        ),
        is_lto=True,
        cards=(Card("IMAGE", body="{{1}}", buttons=(TemplateButton(ButtonKind.QUICK_REPLY, "Yes"),)),),
    )
)
TYPES = [
    *(wire_type for kind in SESSION_KINDS for wire_type in kind.wire_types),
    *("carousel", "gif", "LOCATION", "contacts", "interactive", "template", "read"),
]
NAMES = [
    "type",
    "text",
    "id",
    "url",
    "originalUrl",
    "previewUrl",
    "caption",
    "latitude",
    "longitude",
    "name",
    "address",
    "contact",
    "title",
    "body",
    "header",
    "footer",
    "globalButtons",
    "items",
    "options",
    "content",
    "subType",
    "catalogId",
    "productId",
    "sections",
    "productList",
    "thumbnailId",
    "context",
    "msgId",
    "msgid",
    "link",
    "image",
    "video",
    "location",
    "cards",
    "cardHeaderType",
    "postbackTexts",
    "index",
    "params",
    "expiration",
    "mpm",
    "products",
    "message_id",
    "emoji",
    "status",
    "message",
]

leaves: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([*TYPES, "1", "1.0", "true", "https://a.test/a.png", "product", "IMAGE"])
)
values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=15,
)


def _typed(kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, **rest}


objects: st.SearchStrategy[Any] = st.builds(
    _typed, st.sampled_from(TYPES), st.dictionaries(st.sampled_from(NAMES), values, max_size=8)
)
texts: st.SearchStrategy[str] = (objects | values).map(json.dumps) | st.text(max_size=30)


def check_content(content: Content) -> None:
    """Store the content, read it back, and encode it for the operator."""
    stored = decode_content(content_kind(content), msgspec.json.encode(content))
    template_of_send = FULL_TEMPLATE if isinstance(content, TemplateSend) else None
    body: dict[str, Any] = message_body(message(content=stored), template_of_send, reply_target_id(stored), {"1": "2"})

    assert stored == content
    assert msgspec.json.encode(body)
    assert all(isinstance(reference, str) for reference in media_references(stored))
    assert operator_limit_error(stored) is None or operator_limit_error(stored)


@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_any_session_message_is_rejected_or_can_be_sent(text: str) -> None:
    form = Form([("message", text)])

    try:
        content = read_session_message(form)
    except ApiError:
        return

    check_content(content)
    assert is_about_products(form) in (True, False)


@settings(max_examples=60, deadline=None)
@given(given_template=values, more=objects | values, own=texts)
def test_any_template_message_is_rejected_or_can_be_sent(given_template: Any, more: Any, own: str) -> None:
    template_json: dict[str, Any] = {"id": "t"}
    if isinstance(given_template, dict):
        template_json |= given_template
    form = Form([("template", json.dumps(template_json)), ("message", json.dumps(more)), ("postbackTexts", own)])

    try:
        content = read_template_send(form)
    except ApiError:
        return

    check_content(content)
    assert template_send_error(content, FULL_TEMPLATE.draft, now_ms=0)


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(TYPES), text=texts, context=texts, to=st.text(max_size=12))
def test_any_passthrough_is_rejected_or_can_be_sent(kind: str, text: str, context: str, to: str) -> None:
    form = Form([("to", to), ("type", kind), (kind, text), ("context", context)])
    valid = Form([("to", "15551234567"), ("type", kind), (kind, text)])

    for fields in (form, valid):
        try:
            read = read_passthrough(fields)
        except ApiError:
            continue
        assert isinstance(read, PassthroughSend)
        assert isinstance(read.content, Passthrough)
        check_content(read.content)


@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=60) | texts.map(lambda text: text.encode("utf-8", "replace")))
def test_any_event_is_rejected_or_names_a_message_or_a_call(body: bytes) -> None:
    try:
        event = read_event(body)
    except ApiError:
        return

    assert event.call_id if isinstance(event, CallEvent) else event.message_id
