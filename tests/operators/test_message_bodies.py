"""What the adapter says to the operator of messages, as its documentation wants it."""

import json
from typing import Any

import pytest

from tests.support.builders import ANN, draft, id_number, message, template
from tests.support.session_samples import MESSAGE_ID, SESSION_SAMPLES
from waypost.domain.message import CardSend, Content, Passthrough, TemplateSend, media_references, reply_target_id
from waypost.domain.postback import button_payload
from waypost.domain.session_messages.buttons import SessionUrlButton
from waypost.domain.session_messages.choices import ListSection, SessionList, SessionQuickReply, choice_reference
from waypost.domain.session_messages.content import Choice, Location, MediaKind, MediaRef, ProductSection
from waypost.domain.session_messages.plain import SessionLocation, SessionMedia, SessionReaction, SessionText
from waypost.domain.templates.buttons import VIEW_CATALOG_BUTTON, VIEW_ITEMS_BUTTON, ButtonKind, TemplateButton
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.operators.cloud.messages.bodies import message_body
from waypost.wire.forms import Form
from waypost.wire.messages.session_forms import read_session_message

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


def sent(content: Content, of: TemplateDraft | None = None, reply_to: str | None = None) -> dict[str, Any]:
    """The body without what every body has."""
    stored = None if of is None else template(of=of)
    body = message_body(message(content=content), stored, reply_to, COPIES)
    return {
        name: member
        for name, member in body.items()
        if name not in ("messaging_product", "recipient_type", "to", "biz_opaque_callback_data")
    }


def components(of: TemplateDraft, *params: str, **more: Any) -> list[dict[str, Any]]:
    return sent(TemplateSend("t", params, **more), of)["template"]["components"]


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
    one = message(content=SessionText("Hello"), destination="US.1349")

    body = message_body(one, None, None, {})

    assert body["recipient"] == "US.1349"
    assert "to" not in body


def test_any_content_in_reply_names_the_operators_id() -> None:
    body = sent(SessionLocation(Location(1.5, 2)), reply_to="wamid.1")

    assert body["context"] == {"message_id": "wamid.1"}


@pytest.mark.parametrize("name", SESSION_SAMPLES)
def test_session_message_is_sent_as_the_operator_wants_it(name: str) -> None:
    given, (kind, expected), _ = SESSION_SAMPLES[name]
    content = read_session_message(Form([("message", json.dumps(given))]))

    assert sent(content) == {"type": kind, kind: expected}


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
    assert sent(content) == {"type": kind, kind: expected}


def test_section_without_a_title_has_none() -> None:
    content = SessionList("Choose", "Menu", (ListSection("", "", (Choice("None"),)),))

    sections = sent(content)["interactive"]["action"]["sections"]

    assert sections == [{"rows": [{"id": choice_reference(MESSAGE_ID, 1), "title": "None"}]}]


@pytest.mark.parametrize("kind", [MediaKind.IMAGE, MediaKind.VIDEO])
def test_medium_over_a_button_has_the_operators_id(kind: MediaKind) -> None:
    header = {"type": kind.value, kind.value: {"id": "77"}}

    for content in (
        SessionUrlButton("See.", "Open", "https://a.test", "Acme", kind, PICTURE),
        SessionQuickReply("Sure?", (Choice("Yes"),), media_kind=kind, media=PICTURE),
    ):
        assert sent(content)["interactive"]["header"] == header


@pytest.mark.parametrize("emoji", ["👍", ""])
def test_reaction_names_the_operators_id_and_is_no_reply(emoji: str) -> None:
    content = SessionReaction(emoji, id_number(7))

    body = sent(content, reply_to="wamid.7")

    assert body == {"type": "reaction", "reaction": {"message_id": "wamid.7", "emoji": emoji}}
    assert reply_target_id(content) == id_number(7)


def test_medium_above_a_url_button_is_one_that_the_message_holds() -> None:
    content = SessionUrlButton("See.", "Open", "https://a.test", "", MediaKind.IMAGE, PICTURE)

    assert media_references(content) == (PICTURE.id,)


def test_template_is_named_in_its_language() -> None:
    told = sent(TemplateSend("t"), FULL)["template"]

    assert told["name"] == "order_ready"
    assert told["language"] == {"code": "de", "policy": "deterministic"}


def test_parameters_go_to_header_body_and_buttons_in_this_order() -> None:
    assert components(FULL, "4711", "Ann", "It", "track-7") == [
        {"type": "header", "parameters": texts("4711")},
        {"type": "body", "parameters": texts("Ann", "It")},
        button("url", "1", type="text", text="track-7"),
    ]


def test_named_parameters_go_under_their_names() -> None:
    of = draft(content="Hi {{name}}, {{thing}} for {{name}}.", parameter_format="NAMED")

    [body] = components(of, "Ann", "cake")

    assert body["parameters"] == [
        {"type": "text", "text": "Ann", "parameter_name": "name"},
        {"type": "text", "text": "cake", "parameter_name": "thing"},
    ]


def test_postback_texts_travel_as_payloads_of_their_buttons() -> None:
    told = components(FULL, "1", "2", "3", "4", postback_texts={2: "yes-1", 3: "no-1"})

    assert told[2:] == [
        button("url", "1", type="text", text="4"),
        button("quick_reply", "2", type="payload", payload="yes-1"),
        button("quick_reply", "3", type="payload", payload="no-1"),
    ]


def test_postback_texts_of_other_buttons_are_left_out() -> None:
    told = components(FULL, "1", "2", "3", "4", postback_texts={0: "call", 1: "look", 9: "nowhere"})

    assert [one.get("sub_type") for one in told] == [None, None, "url"]


@pytest.mark.parametrize(("length", "is_whole"), [(256, True), (257, False)])
def test_postback_text_too_long_to_travel_goes_as_a_reference(length: int, is_whole: bool) -> None:
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
def test_medium_or_place_goes_into_the_header(more: dict[str, Any], expected: dict[str, Any]) -> None:
    told = components(draft(content="Hi {{1}}, look.", template_type="IMAGE"), "Ann", **more)

    assert told == [header(**expected), {"type": "body", "parameters": texts("Ann")}]


def test_offer_goes_with_its_end_and_its_code() -> None:
    of = draft(content="Hi {{1}}, buy.", is_lto=True, has_expiration=True, buttons=(COPY, URL, REPLY))

    told = components(of, "Ann", "p-7", "SAVE20", expiration_ms=1_767_225_600_000)

    assert told == [
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
def test_one_time_code_goes_to_the_body_and_to_the_button(params: tuple[str, ...]) -> None:
    of = draft(content="{{1}} is your verification code.", buttons=(OTP,))

    assert components(of, *params) == [
        {"type": "body", "parameters": texts("123")},
        button("url", "0", type="text", text="123"),
    ]


def test_catalogue_goes_with_its_thumbnail_when_there_is_one() -> None:
    of = draft(content="Hi {{1}}, look.", buttons=(VIEW_CATALOG_BUTTON,))
    action = {"thumbnail_product_retailer_id": "sku"}

    assert components(of, "Ann") == [{"type": "body", "parameters": texts("Ann")}]
    assert components(of, "Ann", "sku")[1:] == [button("catalog", "0", type="action", action=action)]


def test_products_go_with_their_sections_and_the_thumbnail() -> None:
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


def test_cards_go_with_their_media_parameters_and_postback_texts() -> None:
    cards = (CardSend(PICTURE, {0: "more-1"}), CardSend(MediaRef(link="https://a.test/b.mp4")))

    told = components(CAROUSEL, "Ann", "A", "a-1", "B", "b-1", cards=cards)

    payload = button_payload(MESSAGE_ID, 0, "more-1", card=0)
    assert told == [
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


def test_as_many_cards_go_as_were_sent_for_the_operator_to_count() -> None:
    cards = (CardSend(PICTURE), CardSend(PICTURE), CardSend(PICTURE))

    [told] = components(CAROUSEL, cards=cards, card_media_kind=MediaKind.IMAGE)

    assert told["cards"] == [card(at, "image", {"id": "77"}) for at in range(3)]


def test_template_that_was_deleted_meanwhile_is_sent_for_the_operator_to_refuse() -> None:
    told = sent(TemplateSend("gone"))["template"]

    assert told == {"name": "gone", "language": {"code": "en_US"}}


def test_passthrough_goes_as_it_is_but_for_our_ids() -> None:
    body = {
        "name": "n",
        "components": [
            {"type": "header", "parameters": [{"type": "image", "image": {"id": PICTURE.id}}]},
            {"type": "button", "parameters": [{"action": {"flow_token": "t"}}]},
        ],
    }

    told = sent(Passthrough("template", body), reply_to="wamid.1")

    assert told == {
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


def test_reaction_names_the_operators_id_of_what_it_reacts_to() -> None:
    content = Passthrough("reaction", {"message_id": id_number(9), "emoji": "+"})

    assert reply_target_id(content) == id_number(9)
    assert sent(content, reply_to="wamid.1") == {
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
