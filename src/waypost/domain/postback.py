"""Postback texts behind quick-reply buttons: how one travels, and whose it was."""

from typing import Final

from waypost.domain.event import InboundEvent
from waypost.domain.message import Content, TemplateSend
from waypost.domain.template import Template

LONGEST_PAYLOAD: Final = 256  # Source: operator's facts 4.2, quick_reply payload length
_REFERENCE: Final = "waypost-postback"


def payload_of(message_id: str, index: int, postback_text: str) -> str:
    """What travels behind a button: the postback text, or a reference to one too long to travel."""
    if len(postback_text) <= LONGEST_PAYLOAD:
        return postback_text
    return f"{_REFERENCE}:{message_id}:{index}"


def postback_text_of(
    event: InboundEvent, answered: Content | None, template: Template | None
) -> str | None:
    """The postback text that the sender gave for the tapped button; None where it gave none.

    The operator returns the button's label where no payload was given, so a payload alone does not
    tell; the message that was answered does.

    Args:
        event: the tap.
        answered: what the answered message said; None when it is not known.
        template: of the answered message.

    Source: design, section 5, "Fidelity".
    """
    if event.kind != "quick_reply":
        return None
    if answered is None:
        return event.payload if event.payload != event.text else None
    given = (answered.postback_texts if isinstance(answered, TemplateSend) else None) or {}
    kind, _, place = event.payload.partition(":")
    if kind == _REFERENCE:
        index = place.rpartition(":")[2]
        return given.get(int(index)) if index.isdecimal() else None
    buttons = template.draft.buttons if template else ()
    tapped = [index for index, button in enumerate(buttons) if button.text == event.text]
    indexes = tapped or list(given)
    return event.payload if any(given.get(index) == event.payload for index in indexes) else None
