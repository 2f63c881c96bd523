"""Buttons and cards in the partner's format: as submitted, for the copy in a record, and made from a draft."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from waypost.domain.templates.buttons import ButtonKind, Card, TemplateButton

_CARD_MEDIA: Final = ("headerType", "mediaUrl", "mediaId", "exampleMedia")
_NO_TEXT: Final = msgspec.Raw(b"null")
_EMPTY_TEXTS: Final = (_NO_TEXT, msgspec.Raw(b'""'))
_read_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def copy_buttons(buttons: tuple[TemplateButton, ...]) -> list[Any]:
    """Return the copy in `containerMeta`: buttons as they were sent; those that nobody sent, from the draft."""
    made = submitted_buttons(buttons)
    return [
        msgspec.Raw(button.submitted.encode()) if button.submitted else members
        for button, members in zip(buttons, made, strict=True)
    ]


def copy_cards(cards: tuple[Card, ...]) -> list[Any]:
    """Return the copy in `containerMeta`: cards as they were sent, with the handles that were made of their media."""
    return [_copy_card(card, members) for card, members in zip(cards, submitted_cards(cards), strict=True)]


def _copy_card(card: Card, made: dict[str, Any]) -> dict[str, Any]:
    if not card.submitted:
        return made
    sent = _read_members(card.submitted)
    media = {name: made[name] for name in _CARD_MEDIA if name in made and sent.get(name, _NO_TEXT) in _EMPTY_TEXTS}
    return {**sent, **media}


def submitted_buttons(buttons: tuple[TemplateButton, ...]) -> list[dict[str, Any]]:
    """Return buttons of a draft in the partner's format."""
    return [_present(_button_members(button)) for button in buttons]


def submitted_cards(cards: tuple[Card, ...]) -> list[dict[str, Any]]:
    """Return cards of a draft in the partner's format."""
    return [
        _present(
            {
                "headerType": card.header_type,
                "mediaUrl": card.media_url,
                "mediaId": card.media_id,
                "exampleMedia": card.example_media,
                "body": card.body,
                "sampleText": card.sample_text,
                "buttons": submitted_buttons(card.buttons),
            }
        )
        for card in cards
    ]


def _button_members(button: TemplateButton) -> dict[str, Any]:
    members: dict[str, Any] = {"type": button.kind.value, "text": button.text}
    match button.kind:
        case ButtonKind.URL:
            members |= {
                "url": button.url,
                "buttonValue": button.button_value,
                "suffix": button.suffix,
                "example": list(button.example),
                "paymentLinkPreview": button.payment_link_preview,
            }
        case ButtonKind.PHONE_NUMBER:
            members["phone_number"] = button.phone_number
        case ButtonKind.COPY_CODE:
            members["example"] = next(iter(button.example), "")
        case ButtonKind.OTP:
            members = {"type": button.kind.value, "otp_type": button.otp_type, "text": button.text}
            members["autofill_text"] = button.autofill_text
            members["zero_tap_terms_accepted"] = button.zero_tap_terms_accepted
            apps = [
                {"package_name": app.package_name, "signature_hash": app.signature_hash}
                for app in button.supported_apps
            ]
            members |= apps[0] if button.is_flat else {"supported_apps": apps}
        case ButtonKind.FLOW:
            members |= {
                "flow_id": button.flow_id,
                "flow_action": button.flow_action,
                "navigate_screen": button.navigate_screen,
                "icon": button.icon,
            }
        case ButtonKind.QUICK_REPLY | ButtonKind.MPM | ButtonKind.CATALOG:
            pass
    return members


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value not in (None, "", [])}
