"""Payloads of buttons and choices: how they are sent, and what a returned one means.

The operator returns the payload of a tapped button, or the button's label where it had none. A
choice of a session message, a button of a carousel's card and a text that is too long are sent as a
reference to our message; every other text is sent as it is (decision 0028).
"""

from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.domain.event import InboundEvent
from waypost.domain.message import Content, Passthrough, TemplateSend
from waypost.domain.session_messages.choices import SessionList, SessionQuickReply, is_choice_reference
from waypost.domain.templates.template import Template

MAX_PAYLOAD_CHARS: Final = 256  # Source: operator's facts 4.2, quick_reply payload length
_POSTBACK: Final = "waypost-postback"


@dataclass(frozen=True, slots=True)
class ChoiceReply:
    """The choice that a recipient made in a session message."""

    sender_id: str  # the partner's `msgid` of the message; empty: it gave none
    number: int | None  # of the choice, from 1; None: the message is not known
    postback_text: str | None  # of the choice; None: the partner gave none


def button_payload(message_id: str, index: int, postback_text: str, card: int | None = None) -> str:
    """Return the payload of a template's button: the text, or a reference of at most 64 characters.

    Args:
        message_id: ours.
        index: of the button, as in the content's `postback_texts`; on a card as in the card's.
        postback_text: of the button, from the partner.
        card: the card's index from 0; None outside a carousel. Cards may have the same labels and
            texts, so only a reference identifies the button.
    """
    if card is not None:
        return f"{_POSTBACK}:{message_id}:{card}.{index}"
    if len(postback_text) <= MAX_PAYLOAD_CHARS and not postback_text.startswith(_POSTBACK):
        return postback_text
    return f"{_POSTBACK}:{message_id}:{index}"


def is_reference(text: str) -> bool:
    """True if a returned payload is a reference of ours, which partners never see."""
    return text.partition(":")[0] == _POSTBACK or is_choice_reference(text)


def referenced_message_id(event: InboundEvent) -> str | None:
    """Return our message id from a returned reference of ours; None: the payload is not one."""
    for name in ("payload", "id"):
        text = event.text(name)
        if is_reference(text):
            return text.partition(":")[2].rpartition(":")[0] or None
    return None


def find_postback_text(event: InboundEvent, replied_to: Content | None, template: Template | None) -> str | None:
    """Return the postback text that the sender gave for the tapped button; None: it gave none.

    The operator returns the button's label where there was no payload, so only the message with the
    button shows whether a returned text is a payload.

    Args:
        replied_to: content of the message with the button; None: not known.
        template: of that message.

    Source: decision 0028.
    """
    if not event.is_tap:
        return None
    payload, label = event.text("payload"), event.text("text")
    kind, _, reference = payload.partition(":")
    if kind == _POSTBACK:
        return _referenced_text(reference.rpartition(":")[2], replied_to)
    if not isinstance(replied_to, TemplateSend):
        # The payload of a passthrough, or of a message that we do not know, is the partner's own.
        return payload if payload != label else None
    texts = replied_to.postback_texts or {}
    buttons = template.draft.buttons if template else ()
    tapped = [index for index, button in enumerate(buttons) if button.text == label]
    indexes = tapped or list(texts)
    return payload if any(texts.get(index) == payload for index in indexes) else None


def find_choice(event: InboundEvent, replied_to: Content | None) -> ChoiceReply:
    """Return the choice of a `button_reply` or a `list_reply`.

    Args:
        replied_to: content of the message with the choices; None: not known.

    Returns:
        For a passthrough, or a message that we do not know, the returned id is the partner's own: it
        is both `sender_id` and `postback_text`.

    Source: facts 6.4, `button_reply`, `list_reply`.
    """
    returned_id = event.text("id")
    if not is_choice_reference(returned_id):
        ids: list[str] = []  # of an interactive passthrough's buttons and rows, in order. Source: facts 9.3
        if isinstance(replied_to, Passthrough):
            action = _member(replied_to.body, "action")
            buttons = [_member(button, "reply") for button in _items(action, "buttons")]
            rows = [row for section in _items(action, "sections") for row in _items(section, "rows")]
            ids = [str(_member(choice, "id")) for choice in (*buttons, *rows)]
        number = ids.index(returned_id) + 1 if returned_id in ids else None
        return ChoiceReply(returned_id, number, returned_id or None)
    number = _parse_index(returned_id.rpartition(":")[2])
    if not isinstance(replied_to, SessionQuickReply | SessionList):
        return ChoiceReply("", number, None)
    choices = replied_to.numbered_choices()
    if number is None or not 1 <= number <= len(choices):
        return ChoiceReply(replied_to.sender_id, None, None)
    return ChoiceReply(replied_to.sender_id, number, choices[number - 1].postback_text)


def _member(value: Any, name: str) -> Any:
    return cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None


def _items(value: Any, name: str) -> list[Any]:
    items = _member(value, name)
    return cast(list[Any], items) if isinstance(items, list) else []


def _referenced_text(reference: str, replied_to: Content | None) -> str | None:
    if not isinstance(replied_to, TemplateSend):
        return None
    card, dot, button = reference.rpartition(".")
    card_index, index = _parse_index(card), _parse_index(button)
    if index is None:
        return None
    if not dot:
        return (replied_to.postback_texts or {}).get(index)
    if card_index is None or card_index >= len(replied_to.cards):
        return None
    return replied_to.cards[card_index].postback_texts.get(index)


def _parse_index(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


@dataclass(frozen=True, slots=True)
class MediaLink:
    """The URL of a medium that a recipient has sent."""

    url: str  # of our media endpoint; served without a token, so the URL itself is the secret
    until_ms: int  # expiry; milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class InboundContext:
    """Our data about a recipient's message."""

    reply_target_id: str | None = None  # our id of the message that it replies or reacts to; None: not known
    postback_text: str | None = None  # of the tapped button; None: the sender gave none
    reply: ChoiceReply | None = None  # the choice that was made in a session message; None: it is not a choice
    media: MediaLink | None = None  # the medium; None: it has none
