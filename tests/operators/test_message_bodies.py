"""The message bodies that the adapter sends to the operator, as its documentation requires."""

import json
from typing import Any

import pytest

from tests.support.builders import ANN, draft, id_number, message, template
from tests.support.session_samples import MESSAGE_ID, SESSION_SAMPLES
from waypost.domain.message import CardSend, Content, Passthrough, TemplateSend, media_references, reply_target_id
from waypost.domain.postback import button_payload
from waypost.domain.session_messages.choices import (
    ListSection,
    SessionList,
    SessionQuickReply,
    SessionUrlButton,
    choice_reference,
)
from waypost.domain.session_messages.content import Choice, Location, MediaKind, MediaRef, ProductSection
from waypost.domain.session_messages.plain import SessionLocation, SessionMedia, SessionReaction, SessionText
from waypost.domain.templates.buttons import VIEW_CATALOG_BUTTON, VIEW_ITEMS_BUTTON, ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.operators.cloud.messages import message_body
from waypost.wire.forms import Form
from waypost.wire.message_forms import read_session_message

REPLY = TemplateButton(ButtonKind.QUICK_REPLY, "Yes")
URL = TemplateButton(ButtonKind.URL, "Track", url="https://acme.test/{{1}}", example=("7",))
CALL = TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number="+15550001111")
COPY = TemplateButton(ButtonKind.COPY_CODE, "Copy offer code", example=("SAVE20",))
OTP = TemplateButton(ButtonKind.OTP, "Copy code", otp_type="COPY_CODE")
FULL = draft(
    header="Order {{1}}",
    content="Hi {{1}}, {{2}} is ready, {{1}}.",
    buttons=(CALL, URL, REPLY, TemplateButton(ButtonKind.QUICK_REPLY, "No")),
    language_code="de",
)
PRODUCTS = (ProductSection("Cakes", ("a", "b")),)
PICTURE = MediaRef(id="1000000000000001")
COPIES = {"1000000000000001": "77"}


def content_body(content: Content, of: TemplateDraft | None = None, reply_to: str | None = None) -> dict[str, Any]:
    """Return the body without the members that every body has."""
    stored = None if of is None else template(of=of)
    body = message_body(message(content=content), stored, reply_to, COPIES)
    return {
        name: member
        for name, member in body.items()
        if name not in ("messaging_product", "recipient_type", "to", "biz_opaque_callback_data")
    }


def components(of: TemplateDraft, *params: str, **more: Any) -> list[dict[str, Any]]:
    return content_body(TemplateSend("t", params, **more), of)["template"]["components"]


def texts(*values: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


def button(sub_type: str, index: str, **parameter: Any) -> dict[str, Any]:
    return {"type": "button", "sub_type": sub_type, "index": index, "parameters": [parameter]}


def header(**parameter: Any) -> dict[str, Any]:
    return {"type": "header", "parameters": [parameter]}


def test_text_is_sent_with_our_id_as_callback_data() -> None:
    body = message_body(message(content=SessionText("Hello", preview_url=True)), None, None, {})

    assert body == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": f"+{ANN}",
        "biz_opaque_callback_data": MESSAGE_ID,
        "type": "text",
        "text": {"body": "Hello", "preview_url": True},
    }


def test_user_id_is_sent_as_recipient_and_not_as_a_number() -> None:
    outbound = message(content=SessionText("Hello"), destination="US.1349")

    body = message_body(outbound, None, None, {})

    assert body["recipient"] == "US.1349"
    assert "to" not in body


def test_reply_of_any_type_names_the_operators_id() -> None:
    body = content_body(SessionLocation(Location(1.5, 2)), reply_to="wamid.1")

    assert body["context"] == {"message_id": "wamid.1"}


@pytest.mark.parametrize("name", SESSION_SAMPLES)
def test_session_message_is_sent_in_the_operators_format(name: str) -> None:
    request, (kind, expected), _ = SESSION_SAMPLES[name]
    content = read_session_message(Form([("message", json.dumps(request))]))

    assert content_body(content) == {"type": kind, kind: expected}


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (SessionMedia(MediaKind.VIDEO, PICTURE), "video", {"id": "77"}),
        (SessionMedia(MediaKind.AUDIO, MediaRef(id="88")), "audio", {"id": "88"}),
        (SessionLocation(Location(0, -7)), "location", {"latitude": 0, "longitude": -7}),
    ],
)
def test_optional_members_are_left_out_and_media_have_the_operators_ids(
    content: Content, kind: str, expected: Any
) -> None:
    assert content_body(content) == {"type": kind, kind: expected}


def test_section_without_a_title_has_none() -> None:
    content = SessionList("Choose", "Menu", (ListSection("", "", (Choice("None"),)),))

    sections = content_body(content)["interactive"]["action"]["sections"]

    assert sections == [{"rows": [{"id": choice_reference(MESSAGE_ID, 1), "title": "None"}]}]


@pytest.mark.parametrize("kind", [MediaKind.IMAGE, MediaKind.VIDEO])
def test_medium_above_buttons_has_the_operators_id(kind: MediaKind) -> None:
    header = {"type": kind.value, kind.value: {"id": "77"}}

    for content in (
        SessionUrlButton("See.", "Open", "https://a.test", "Acme", kind, PICTURE),
        SessionQuickReply("Sure?", (Choice("Yes"),), media_kind=kind, media=PICTURE),
    ):
        assert content_body(content)["interactive"]["header"] == header


@pytest.mark.parametrize("emoji", ["👍", ""])
def test_reaction_names_the_operators_id_and_is_not_a_reply(emoji: str) -> None:
    content = SessionReaction(emoji, id_number(7))

    body = content_body(content, reply_to="wamid.7")

    assert body == {"type": "reaction", "reaction": {"message_id": "wamid.7", "emoji": emoji}}
    assert reply_target_id(content) == id_number(7)


def test_medium_above_a_url_button_is_a_media_reference_of_the_message() -> None:
    content = SessionUrlButton("See.", "Open", "https://a.test", "", MediaKind.IMAGE, PICTURE)

    assert media_references(content) == (PICTURE.id,)


def test_template_is_sent_with_its_name_and_its_language() -> None:
    reference = content_body(TemplateSend("t"), FULL)["template"]

    assert reference["name"] == "order_ready"
    assert reference["language"] == {"code": "de", "policy": "deterministic"}


def test_parameters_are_assigned_to_header_body_and_buttons_in_this_order() -> None:
    assert components(FULL, "4711", "Ann", "It", "track-7") == [
        {"type": "header", "parameters": texts("4711")},
        {"type": "body", "parameters": texts("Ann", "It")},
        button("url", "1", type="text", text="track-7"),
    ]


def test_named_parameters_are_sent_with_their_names() -> None:
    of = draft(content="Hi {{name}}, {{thing}} for {{name}}.", parameter_format="NAMED")

    [body] = components(of, "Ann", "cake")

    assert body["parameters"] == [
        {"type": "text", "text": "Ann", "parameter_name": "name"},
        {"type": "text", "text": "cake", "parameter_name": "thing"},
    ]


def test_postback_texts_are_sent_as_payloads_of_their_buttons() -> None:
    sent_components = components(FULL, "1", "2", "3", "4", postback_texts={2: "yes-1", 3: "no-1"})

    assert sent_components[2:] == [
        button("url", "1", type="text", text="4"),
        button("quick_reply", "2", type="payload", payload="yes-1"),
        button("quick_reply", "3", type="payload", payload="no-1"),
    ]


def test_postback_texts_of_other_buttons_are_left_out() -> None:
    sent_components = components(FULL, "1", "2", "3", "4", postback_texts={0: "call", 1: "look", 9: "nowhere"})

    assert [component.get("sub_type") for component in sent_components] == [None, None, "url"]


@pytest.mark.parametrize(("length", "is_whole"), [(256, True), (257, False)])
def test_postback_text_too_long_for_a_payload_is_sent_as_a_reference(length: int, is_whole: bool) -> None:
    text = "x" * length

    payload = button_payload(MESSAGE_ID, 3, text)

    assert (payload == text) is is_whole
    assert len(payload) <= 256


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"media_kind": MediaKind.IMAGE, "media": PICTURE}, {"type": "image", "image": {"id": "77"}}),
        (
            {"media_kind": MediaKind.VIDEO, "media": MediaRef(link="https://a.test/a.mp4")},
            {"type": "video", "video": {"link": "https://a.test/a.mp4"}},
        ),
        (
            {"media_kind": MediaKind.DOCUMENT, "media": PICTURE, "file_name": "a.pdf"},
            {"type": "document", "document": {"id": "77", "filename": "a.pdf"}},
        ),
        (
            {"place": Location(1, 2, "Shop")},
            {"type": "location", "location": {"latitude": 1, "longitude": 2, "name": "Shop"}},
        ),
    ],
)
def test_medium_or_location_is_sent_in_the_header(more: dict[str, Any], expected: dict[str, Any]) -> None:
    sent_components = components(draft(content="Hi {{1}}, look.", template_type="IMAGE"), "Ann", **more)

    assert sent_components == [header(**expected), {"type": "body", "parameters": texts("Ann")}]


def test_offer_is_sent_with_its_expiration_and_its_code() -> None:
    of = draft(content="Hi {{1}}, buy.", is_lto=True, has_expiration=True, buttons=(COPY, URL, REPLY))

    sent_components = components(of, "Ann", "p-7", "SAVE20", expiration_ms=1_767_225_600_000)

    assert sent_components == [
        {"type": "body", "parameters": texts("Ann")},
        {
            "type": "limited_time_offer",
            "parameters": [
                {"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": 1_767_225_600_000}}
            ],
        },
        button("copy_code", "0", type="coupon_code", coupon_code="SAVE20"),
        button("url", "1", type="text", text="p-7"),
    ]


@pytest.mark.parametrize("params", [("123",), ("123", "123")])
def test_one_time_code_is_sent_in_the_body_and_in_the_button(params: tuple[str, ...]) -> None:
    of = draft(content="{{1}} is your verification code.", buttons=(OTP,))

    assert components(of, *params) == [
        {"type": "body", "parameters": texts("123")},
        button("url", "0", type="text", text="123"),
    ]


def test_catalogue_is_sent_with_its_thumbnail_if_it_has_one() -> None:
    of = draft(content="Hi {{1}}, look.", buttons=(VIEW_CATALOG_BUTTON,))
    action = {"thumbnail_product_retailer_id": "sku"}

    assert components(of, "Ann") == [{"type": "body", "parameters": texts("Ann")}]
    assert components(of, "Ann", "sku")[1:] == [button("catalog", "0", type="action", action=action)]


def test_products_are_sent_with_their_sections_and_the_thumbnail() -> None:
    of = draft(content="Look.", buttons=(VIEW_ITEMS_BUTTON,))

    assert components(of, "a", sections=PRODUCTS) == [
        button(
            "mpm",
            "0",
            type="action",
            action={
                "thumbnail_product_retailer_id": "a",
                "sections": [
                    {"title": "Cakes", "product_items": [{"product_retailer_id": "a"}, {"product_retailer_id": "b"}]}
                ],
            },
        )
    ]


CAROUSEL = draft(
    content="Hi {{1}}, look.",
    template_type="CAROUSEL",
    cards=(
        Card("VIDEO", body="Cake {{1}}", buttons=(REPLY, URL)),
        Card("VIDEO", body="Pie {{1}}", buttons=(REPLY, URL)),
    ),
)


def card(index: int, kind: str, medium: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    return {"card_index": index, "components": [header(**{"type": kind, kind: medium}), *more]}


def test_cards_are_sent_with_their_media_parameters_and_postback_texts() -> None:
    cards = (CardSend(PICTURE, {0: "more-1"}), CardSend(MediaRef(link="https://a.test/b.mp4")))

    sent_components = components(CAROUSEL, "Ann", "A", "a-1", "B", "b-1", cards=cards)

    payload = button_payload(MESSAGE_ID, 0, "more-1", card=0)
    assert sent_components == [
        {"type": "body", "parameters": texts("Ann")},
        {
            "type": "carousel",
            "cards": [
                card(
                    0,
                    "video",
                    {"id": "77"},
                    {"type": "body", "parameters": texts("A")},
                    button("quick_reply", "0", type="payload", payload=payload),
                    button("url", "1", type="text", text="a-1"),
                ),
                card(
                    1,
                    "video",
                    {"link": "https://a.test/b.mp4"},
                    {"type": "body", "parameters": texts("B")},
                    button("url", "1", type="text", text="b-1"),
                ),
            ],
        },
    ]


def test_cards_are_sent_uncounted_for_the_operator_to_check() -> None:
    cards = (CardSend(PICTURE), CardSend(PICTURE), CardSend(PICTURE))

    [carousel] = components(CAROUSEL, cards=cards, card_media_kind=MediaKind.IMAGE)

    assert carousel["cards"] == [card(index, "image", {"id": "77"}) for index in range(3)]


def test_template_that_was_deleted_meanwhile_is_sent_for_the_operator_to_reject() -> None:
    reference = content_body(TemplateSend("gone"))["template"]

    assert reference == {"name": "gone", "language": {"code": "en_US"}}


def test_passthrough_is_sent_unchanged_except_for_our_ids() -> None:
    body = {
        "name": "n",
        "components": [
            {"type": "header", "parameters": [{"type": "image", "image": {"id": PICTURE.id}}]},
            {"type": "button", "parameters": [{"action": {"flow_token": "t"}}]},
        ],
    }

    sent_body = content_body(Passthrough("template", body), reply_to="wamid.1")

    assert sent_body == {
        "type": "template",
        "template": {
            "name": "n",
            "components": [
                {"type": "header", "parameters": [{"type": "image", "image": {"id": "77"}}]},
                body["components"][1],
            ],
        },
        "context": {"message_id": "wamid.1"},
    }


def test_passthrough_reaction_names_the_operators_id_of_its_message() -> None:
    content = Passthrough("reaction", {"message_id": id_number(9), "emoji": "+"})

    assert reply_target_id(content) == id_number(9)
    assert content_body(content, reply_to="wamid.1") == {
        "type": "reaction",
        "reaction": {"message_id": "wamid.1", "emoji": "+"},
    }


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (SessionText("a"), ()),
        (SessionMedia(MediaKind.IMAGE, PICTURE), (PICTURE.id,)),
        (SessionMedia(MediaKind.IMAGE, MediaRef(link="https://a.test")), ()),
        (SessionQuickReply("a", (), media_kind=MediaKind.IMAGE, media=PICTURE), (PICTURE.id,)),
        (TemplateSend("t", media=MediaRef(id="1"), cards=(CardSend(MediaRef(id="2")),)), ("1", "2")),
        (Passthrough("image", {"id": "5"}), ("5",)),
        (Passthrough("image", {"id": 5}), ("5",)),
        (Passthrough("contacts", [{"image": {"id": ["5"]}}]), ()),
        (
            Passthrough(
                "interactive",
                {
                    "header": {"type": "video", "video": {"id": "6"}},
                    "action": {"parameters": {"flow_action_payload": {"image": {"id": "7"}}}},
                },
            ),
            ("6",),
        ),
    ],
)
def test_media_references_are_every_id_of_a_medium(content: Content, ids: tuple[str, ...]) -> None:
    assert media_references(content) == ids
