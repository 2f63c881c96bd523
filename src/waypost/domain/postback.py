"""What travels behind buttons and choices: how it goes, and whose it was when it comes back.

The operator returns what travelled behind a button, or the button's label where nothing did. A
choice of a session message, a button of a carousel's card and a text too long to travel go as a
reference to our message; everything else travels as it is (decision 0028).
"""

from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.domain.event import InboundEvent
from waypost.domain.message import Content, Passthrough, TemplateSend
from waypost.domain.session_messages.choices import SessionList, SessionQuickReply, is_choice_reference
from waypost.domain.templates.template import Template

LONGEST_PAYLOAD: Final = 256  # Source: operator's facts 4.2, quick_reply payload length
_POSTBACK: Final = "waypost-postback"


@dataclass(frozen=True, slots=True)
class Reply:
    """A choice of a session message that was made.

    Attributes:
        sender_id: the `msgid` that the partner gave the message; empty where it gave none.
        number: of the choice, from 1; None where the answered message is not known.
        postback_text: what the partner gave for the choice; None where it gave none.
    """

    sender_id: str
    number: int | None
    postback_text: str | None


def payload_of(message_id: str, index: int, postback_text: str, card: int | None = None) -> str:
    """What travels behind a template's button: the text, or a reference of at most 64 characters.

    Args:
        message_id: ours.
        index: of the button, as in the content's `postback_texts`; on a card as in the card's.
        postback_text: what the partner gave for it.
        card: the card's index from 0; None outside a carousel. Cards may carry the same labels and
            texts, so that only a reference tells which was tapped.
    """
    if card is not None:
        return f"{_POSTBACK}:{message_id}:{card}.{index}"
    if len(postback_text) <= LONGEST_PAYLOAD and not postback_text.startswith(_POSTBACK):
        return postback_text
    return f"{_POSTBACK}:{message_id}:{index}"


def is_reference(text: str) -> bool:
    """Whether what came back is a reference of ours, which no partner is shown."""
    return text.partition(":")[0] == _POSTBACK or is_choice_reference(text)


def answered_id_of(event: InboundEvent) -> str | None:
    """Our id of the answered message where what came back is a reference of ours."""
    for name in ("payload", "id"):
        text = event.text(name)
        if is_reference(text):
            return text.partition(":")[2].rpartition(":")[0] or None
    return None


def postback_text_of(event: InboundEvent, answered: Content | None, template: Template | None) -> str | None:
    """The postback text that the sender gave for the tapped button; None where it gave none.

    The operator returns the button's label where no payload was given, so a payload alone does not
    tell; the message that was answered does.

    Args:
        event: the tap.
        answered: what the answered message said; None when it is not known.
        template: of the answered message.

    Source: decision 0028.
    """
    if not event.is_tap:
        return None
    payload, label = event.text("payload"), event.text("text")
    kind, _, place = payload.partition(":")
    if kind == _POSTBACK:
        return _referred(place.rpartition(":")[2], answered)
    if not isinstance(answered, TemplateSend):
        # A passthrough's payload is the partner's own, and so is that of a message unknown to us.
        return payload if payload != label else None
    given = answered.postback_texts or {}
    buttons = template.draft.buttons if template else ()
    tapped = [index for index, button in enumerate(buttons) if button.text == label]
    indexes = tapped or list(given)
    return payload if any(given.get(index) == payload for index in indexes) else None


def reply_of(event: InboundEvent, answered: Content | None) -> Reply:
    """The choice that was made, of a `button_reply` or a `list_reply`.

    Args:
        event: the reply.
        answered: what the answered message said; None when it is not known.

    Returns:
        Of a passthrough, and of a message unknown to us, the id that came back is the partner's own:
        it is both `sender_id` and `postback_text`.

    Source: facts 6.4, `button_reply`, `list_reply`.
    """
    came_back = event.text("id")
    if not is_choice_reference(came_back):
        ids = _ids_in(answered.body) if isinstance(answered, Passthrough) else []
        number = ids.index(came_back) + 1 if came_back in ids else None
        return Reply(came_back, number, came_back or None)
    number = _index(came_back.rpartition(":")[2])
    if not isinstance(answered, SessionQuickReply | SessionList):
        return Reply("", number, None)
    choices = answered.numbered_choices()
    if number is None or not 1 <= number <= len(choices):
        return Reply(answered.sender_id, None, None)
    return Reply(answered.sender_id, number, choices[number - 1].postback_text)


def _ids_in(body: Any) -> list[str]:
    """The ids of an interactive passthrough's buttons and rows, in their order. Source: facts 9.3."""
    action = _member(body, "action")
    buttons = [_member(button, "reply") for button in _items(action, "buttons")]
    rows = [row for section in _items(action, "sections") for row in _items(section, "rows")]
    return [str(_member(one, "id")) for one in (*buttons, *rows)]


def _member(value: Any, name: str) -> Any:
    return cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None


def _items(value: Any, name: str) -> list[Any]:
    found = _member(value, name)
    return cast(list[Any], found) if isinstance(found, list) else []


def _referred(place: str, answered: Content | None) -> str | None:
    if not isinstance(answered, TemplateSend):
        return None
    card, dot, button = place.rpartition(".")
    at, index = _index(card), _index(button)
    if index is None:
        return None
    if not dot:
        return (answered.postback_texts or {}).get(index)
    if at is None or at >= len(answered.cards):
        return None
    return answered.cards[at].postback_texts.get(index)


def _index(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None
