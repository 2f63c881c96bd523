"""The cards of an interactive carousel: the content each requires, and its rendering on the phone."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.media.references import KnownReferences
from waypost.simulator.messages.interactive.fields import (
    check_distinct,
    check_reply_buttons,
    invalid_error,
    missing_error,
    read_text,
    render_interactive_header,
    require_text,
    require_url,
)

_CARDS: Final = (2, 10)  # Source: facts 2.3, "Carousel cards"; a free-form one has the same
_MAX_CARD_BODY_CHARS: Final = 160
_MAX_CARD_LABEL_CHARS: Final = 20
_CARD_HEADERS: Final = ("image", "video")
_PATH: Final = "action']['cards"

Card = dict[str, Any]


def render_cards(action: dict[str, Any], references: KnownReferences | None) -> list[Card]:
    """Check the cards, and return them as the phone shows them: `index`, `text`, `header`, `buttons`.

    Every card has an image or a video and the same kinds of buttons, or is a product of a catalog.

    Args:
        action: the request's `interactive.action`.
        references: what the sender may refer to; None: references are not checked.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.

    Source: the operator's page "Interactive media carousel messages".
    """
    raw_cards = objects_in(action.get("cards"))
    if not raw_cards:
        raise missing_error(_PATH)
    min_cards, max_cards = _CARDS
    if not min_cards <= len(raw_cards) <= max_cards:
        raise invalid_error(_PATH, f"has {min_cards} to {max_cards} cards")
    if [card.get("card_index") for card in raw_cards] != list(range(len(raw_cards))):
        raise invalid_error(_PATH, "are numbered by card_index, from 0")
    cards = [_render_card(index, card, references) for index, card in enumerate(raw_cards)]
    if len({tuple(button["type"] for button in card["buttons"]) for card in cards}) > 1:
        raise invalid_error(_PATH, "must all have the same kinds of buttons")
    ids = [button["payload"] for card in cards for button in card["buttons"] if "payload" in button]
    check_distinct(_PATH, ids)
    return cards


def _render_card(index: int, card: Card, references: KnownReferences | None) -> Card:
    path = f"{_PATH}'][{index}"
    action = object_or_none(card.get("action"))
    if action is None:
        raise missing_error(f"{path}]['action")
    rendered: Card = {"index": index, "text": read_text(card, "body", _MAX_CARD_BODY_CHARS)}
    header = object_or_none(card.get("header"))
    if header is not None:
        rendered["header"] = render_interactive_header(header, _CARD_HEADERS, references, f"{path}]['header")
    elif "product_retailer_id" not in action:
        raise missing_error(f"{path}]['header")
    buttons = _build_buttons(action, f"{path}]['action")
    return {**rendered, "buttons": [{"index": button_index, **button} for button_index, button in enumerate(buttons)]}


def _build_buttons(action: dict[str, Any], path: str) -> list[dict[str, Any]]:
    if "product_retailer_id" in action:
        return [
            {
                "type": "PRODUCT",
                "text": "View",
                "catalog_id": require_text(action, "catalog_id", path, 64),
                "product_retailer_id": require_text(action, "product_retailer_id", path, 256),
            }
        ]
    if action.get("name") == "cta_url":
        parameters = object_or_none(action.get("parameters")) or {}
        path = f"{path}']['parameters"
        label = require_text(parameters, "display_text", path, _MAX_CARD_LABEL_CHARS)
        return [{"type": "URL", "text": label, "url": require_url(parameters, "url", path)}]
    return _build_reply_buttons(action, f"{path}']['buttons")


def _build_reply_buttons(action: dict[str, Any], path: str) -> list[dict[str, Any]]:
    buttons = objects_in(action.get("buttons"))
    if not buttons:
        raise missing_error(path)
    if len(buttons) > 3 or any(text_or_none(button.get("type")) != "quick_reply" for button in buttons):
        raise invalid_error(path, "has 1 to 3 buttons of the type quick_reply")
    replies = [object_or_none(button.get("quick_reply")) or {} for button in buttons]
    rendered = [
        {
            "type": "REPLY",
            "text": require_text(reply, "title", path, _MAX_CARD_LABEL_CHARS),
            "payload": require_text(reply, "id", path, 256),
        }
        for reply in replies
    ]
    check_reply_buttons(path, rendered)
    return rendered
