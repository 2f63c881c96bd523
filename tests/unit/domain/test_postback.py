"""Payloads of buttons and choices are returned as the partner gave them, for their own message only."""

import pytest

from tests.support.builders import draft, id_number, template
from waypost.domain.event import InboundEvent
from waypost.domain.message import CardSend, Content, Passthrough, TemplateSend
from waypost.domain.postback import (
    MAX_PAYLOAD_CHARS,
    ChoiceReply,
    button_payload,
    find_choice,
    find_postback_text,
    is_reference,
    referenced_message_id,
)
from waypost.domain.session_messages.choices import ListSection, SessionList, SessionQuickReply, choice_reference
from waypost.domain.session_messages.content import Choice, MediaRef
from waypost.domain.templates.buttons import ButtonKind, TemplateButton

MESSAGE = id_number(1)
YES_AND_NO = template(
    of=draft(buttons=(TemplateButton(ButtonKind.QUICK_REPLY, "Yes"), TemplateButton(ButtonKind.QUICK_REPLY, "No")))
)
QUESTION = SessionQuickReply(
    "Shall we come?", (Choice("Yes", "same"), Choice("No", "same"), Choice("Later")), sender_id="q-1"
)
LIST = SessionList(
    "Choose.",
    "Open",
    (
        ListSection("One", "", (Choice("A", "pick-a"), Choice("B", "pick-b"))),
        ListSection("Two", "", (Choice("C", "pick-c"),)),
    ),
    sender_id="l-1",
)
ROWS = {"sections": [{"rows": [{"id": "r-1"}, {"id": "r-2"}]}, {"rows": [{"id": "r-3"}]}]}
BUTTONS = {"buttons": [{"type": "reply", "reply": {"id": "b-1"}}, {"reply": {"id": "b-2"}}]}


def event(kind: str, **content: str) -> InboundEvent:
    return InboundEvent(kind, "wamid.1", "2", "1555", None, "Ann", 1, content=content)


def tap(payload: str, text: str = "Yes") -> InboundEvent:
    return event("button", payload=payload, text=text)


@pytest.mark.parametrize("length", [1, MAX_PAYLOAD_CHARS])
def test_text_that_fits_is_sent_as_it_is(length: int) -> None:
    sent = TemplateSend("t", postback_texts={0: "x" * length})

    payload = button_payload(MESSAGE, 0, "x" * length)

    assert payload == "x" * length
    assert find_postback_text(tap(payload), sent, YES_AND_NO) == payload


def test_text_that_is_too_long_is_sent_as_a_reference() -> None:
    text = "x" * (MAX_PAYLOAD_CHARS + 1)
    sent = TemplateSend("t", postback_texts={1: text})

    payload = button_payload(MESSAGE, 1, text)

    assert is_reference(payload)
    assert len(payload) <= 64
    assert find_postback_text(tap(payload, "No"), sent, YES_AND_NO) == text


def test_text_that_looks_like_a_reference_is_sent_as_one() -> None:
    text = button_payload(id_number(9), 0, "x" * 300)
    sent = TemplateSend("t", postback_texts={0: text})

    payload = button_payload(MESSAGE, 0, text)

    assert payload != text
    assert find_postback_text(tap(payload), sent, YES_AND_NO) == text


def test_card_that_was_tapped_is_found_by_its_reference() -> None:
    cards = tuple(CardSend(MediaRef("1"), {0: f"buy-{card}"}) for card in range(3))
    sent = TemplateSend("t", cards=cards)

    texts = [find_postback_text(tap(button_payload(MESSAGE, 0, f"buy-{card}", card)), sent, None) for card in range(3)]

    assert texts == ["buy-0", "buy-1", "buy-2"]


def test_label_alone_is_no_postback_text() -> None:
    assert find_postback_text(tap("Yes"), TemplateSend("t"), YES_AND_NO) is None
    assert find_postback_text(tap("Yes"), None, None) is None


def test_text_given_for_another_button_is_not_this_ones() -> None:
    sent = TemplateSend("t", postback_texts={1: "Yes"})

    assert find_postback_text(tap("Yes"), sent, YES_AND_NO) is None


def test_payload_of_a_passthrough_is_the_partners_own() -> None:
    sent = Passthrough("template", {"name": "greeting"})

    assert find_postback_text(tap("own-1"), sent, None) == "own-1"


@pytest.mark.parametrize(
    "payload",
    ["waypost-postback:x", "waypost-postback:x:", "waypost-postback:x:9", "waypost-postback:x:7.0",
     "waypost-postback:x:0.7", "waypost-postback:x:.0", "waypost-postback:x:²"],
)  # fmt: skip
def test_reference_that_cannot_be_resolved_has_no_text(payload: str) -> None:
    sent = TemplateSend("t", postback_texts={0: "a"}, cards=(CardSend(MediaRef("1"), {0: "b"}),))

    assert find_postback_text(tap(payload), sent, YES_AND_NO) is None
    assert find_postback_text(tap(payload), None, None) is None


@pytest.mark.parametrize(("number", "postback"), [(1, "same"), (2, "same"), (3, None)])
def test_choice_is_found_by_its_number_although_texts_are_the_same(number: int, postback: str | None) -> None:
    reference = choice_reference(MESSAGE, number)

    assert len(reference) <= 64
    assert find_choice(event("button_reply", id=reference), QUESTION) == ChoiceReply("q-1", number, postback)


@pytest.mark.parametrize(("number", "postback"), [(1, "pick-a"), (2, "pick-b"), (3, "pick-c")])
def test_rows_are_numbered_through_all_sections(number: int, postback: str) -> None:
    reference = choice_reference(MESSAGE, number)

    assert find_choice(event("list_reply", id=reference), LIST) == ChoiceReply("l-1", number, postback)


@pytest.mark.parametrize("number", [0, 4])
def test_number_that_no_choice_has_is_no_choice(number: int) -> None:
    reference = choice_reference(MESSAGE, number)

    assert find_choice(event("button_reply", id=reference), QUESTION) == ChoiceReply("q-1", None, None)


@pytest.mark.parametrize(
    ("body", "id", "number"),
    [({"action": BUTTONS}, "b-2", 2), ({"action": ROWS}, "r-3", 3), ({"action": ROWS}, "r-9", None),
     ({}, "b-1", None), ("odd", "b-1", None), ({"action": {"buttons": [7]}}, "b-1", None)],
)  # fmt: skip
def test_choice_of_a_passthrough_is_found_by_the_partners_own_id(body: object, id: str, number: int | None) -> None:
    sent = Passthrough("interactive", body)

    assert find_choice(event("button_reply", id=id), sent) == ChoiceReply(id, number, id)


@pytest.mark.parametrize("content", [None, TemplateSend("t")])
def test_choice_of_a_message_that_is_not_known_keeps_its_number(content: Content | None) -> None:
    reference = choice_reference(MESSAGE, 2)

    assert find_choice(event("list_reply", id=reference), content) == ChoiceReply("", 2, None)


def test_reference_names_the_message_that_it_came_with() -> None:
    assert referenced_message_id(event("button_reply", id=choice_reference(MESSAGE, 1))) == MESSAGE
    assert referenced_message_id(tap(button_payload(MESSAGE, 0, "a", card=2))) == MESSAGE
    assert referenced_message_id(tap("own-1")) is None
    assert referenced_message_id(event("text", body="waypost-reply:x:1")) is None
