"""Interactive messages: a table of types, the content each requires, and the buttons and cards it shows."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.apis.errors import message_error
from waypost.simulator.flows.model import find_flow, find_flow_by_name
from waypost.simulator.media.references import KnownReferences
from waypost.simulator.messages.interactive_fields import (
    check_distinct,
    check_reply_buttons,
    invalid_error,
    missing_error,
    read_text,
    render_interactive_header,
    require_text,
    require_url,
)
from waypost.simulator.messages.orders import order_details_buttons, order_status_buttons
from waypost.simulator.messages.template_buttons import check_sections
from waypost.simulator.templates.text_variables import has_emoji

_CARDS: Final = (2, 10)  # Source: facts 2.3, "Carousel cards"; a free-form one has the same
_MAX_CARD_BODY_CHARS: Final = 160
_MAX_CARD_LABEL_CHARS: Final = 20
_CARD_HEADERS: Final = ("image", "video")
_PATH: Final = "action']['cards"

Card = dict[str, Any]
Action = dict[str, Any]
Buttons = list[dict[str, Any]]


def render_cards(action: dict[str, Any], references: KnownReferences | None) -> list[Card]:
    """Check the cards, and return them as the phone shows them: `index`, `text`, `header`, `buttons`.

    Every card has an image or a video and the same kinds of buttons, or is a product of a catalog.

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
        return _product_button(action, path=path)
    if action.get("name") == "cta_url":
        parameters = object_or_none(action.get("parameters")) or {}
        path = f"{path}']['parameters"
        label = require_text(parameters, "display_text", path, _MAX_CARD_LABEL_CHARS)
        return [{"type": "URL", "text": label, "url": require_url(parameters, "url", path)}]
    path, buttons = f"{path}']['buttons", objects_in(action.get("buttons"))
    if not buttons:
        raise missing_error(path)
    if len(buttons) > 3 or any(text_or_none(button.get("type")) != "quick_reply" for button in buttons):
        raise invalid_error(path, "has 1 to 3 buttons of the type quick_reply")
    return _build_replies(buttons, "quick_reply", path)


def _product_button(action: Action, _references: KnownReferences | None = None, path: str = "action") -> Buttons:
    return [
        {
            "type": "PRODUCT",
            "text": "View",
            "catalog_id": require_text(action, "catalog_id", path, 64),
            "product_retailer_id": require_text(action, "product_retailer_id", path, 256),
        }
    ]


def _build_replies(buttons: list[dict[str, Any]], member: str, path: str) -> list[dict[str, Any]]:
    """Return reply buttons; titles of 20 characters, ids of 256. Source: facts 4.1."""
    replies = [object_or_none(button.get(member)) or {} for button in buttons]
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


_MAX_INTERACTIVE_BODY_CHARS: Final = 1024
_MAX_LIST_BODY_CHARS: Final = 4096  # Source: the operator's page "Interactive list messages"
_MAX_INTERACTIVE_FOOTER_CHARS: Final = 60  # Source: facts 4.1
_MAX_INTERACTIVE_LABEL_CHARS: Final = 20
_MAX_CALL_MINUTES: Final = 43_200
_MEDIA: Final = ("image", "video", "document")
ANY_HEADER: Final = ("text", *_MEDIA)


class InteractiveType(NamedTuple):
    """One row."""

    needs_body: bool
    headers: tuple[str, ...]  # the types of header that it may have
    needs_header: bool
    build_buttons: Callable[[Action, KnownReferences | None], Buttons]  # checks the action, and returns the buttons
    build_cards: Callable[[Action, KnownReferences | None], list[dict[str, Any]]] | None = None  # likewise
    max_body_chars: int = _MAX_INTERACTIVE_BODY_CHARS


def render_interactive(
    content: dict[str, Any], references: KnownReferences | None, types: Mapping[str, InteractiveType] | None = None
) -> dict[str, Any]:
    """Check an interactive message, and return it as the phone will show it.

    Returns:
        `text`, `interactive` (as it was sent), and if present `header`, `footer`, `buttons` (each with `index`, `type`,
        `text`, and its action) and `cards`.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.

    Source: facts 4.1.
    """
    kind = text_or_none(content.get("type"))
    action = object_or_none(content.get("action"))
    if not kind:
        raise missing_error("type")
    types = INTERACTIVE_TYPES if types is None else types
    rules = types.get(kind)
    if rules is None:
        raise invalid_error("type", f"must be one of {', '.join(types)}")
    if action is None:
        raise missing_error("action")
    rendered: dict[str, Any] = {"text": read_text(content, "body", rules.max_body_chars)}
    if rules.needs_body and not rendered["text"].strip():
        raise missing_error("body']['text")
    header = object_or_none(content.get("header"))
    if header is not None:
        rendered["header"] = render_interactive_header(header, rules.headers, references)
    elif rules.needs_header:
        raise missing_error("header")
    footer = read_text(content, "footer", _MAX_INTERACTIVE_FOOTER_CHARS)
    if footer:
        rendered["footer"] = footer
    rendered["interactive"] = content
    buttons = rules.build_buttons(action, references)
    if buttons:
        rendered["buttons"] = [{"index": index, **button} for index, button in enumerate(buttons)]
    if rules.build_cards is not None:
        rendered["cards"] = rules.build_cards(action, references)
    return rendered


def _reply_buttons(action: Action, _references: KnownReferences | None) -> Buttons:
    path, buttons = "action']['buttons", objects_in(action.get("buttons"))
    if not buttons:
        raise missing_error(path)
    if len(buttons) > 3:
        raise invalid_error(path, "has 1 to 3 buttons")
    return _build_replies(buttons, "reply", path)


def _list_rows(action: Action, _references: KnownReferences | None) -> Buttons:
    """Return the rows: up to 10 sections and 10 rows; titles of 24 characters, descriptions of 72.

    Source: facts 4.1.
    """
    require_text(action, "button", "action", _MAX_INTERACTIVE_LABEL_CHARS)
    sections = objects_in(action.get("sections"))
    path = "action']['sections"
    if not sections:
        raise missing_error(path)
    buttons: Buttons = []
    for section in sections:
        title = text_or_none(section.get("title")) or ""
        if len(sections) > 1 and not title.strip():
            raise missing_error(f"{path}']['title")
        if len(title) > 24:
            raise invalid_error(f"{path}']['title", "has at most 24 characters")
        for row in objects_in(section.get("rows")):
            button = {
                "type": "LIST_ROW",
                "text": require_text(row, "title", f"{path}']['rows", 24),
                "payload": require_text(row, "id", f"{path}']['rows", 200),
            }
            description = text_or_none(row.get("description")) or ""
            if len(description) > 72:
                raise invalid_error(f"{path}']['rows']['description", "has at most 72 characters")
            buttons.append(
                button | ({"description": description} if description else {}) | ({"section": title} if title else {})
            )
    if not buttons:
        raise missing_error(f"{path}']['rows")
    if len(sections) > 10 or len(buttons) > 10:
        raise invalid_error(path, "has at most 10 sections and 10 rows")
    check_distinct(path, [button["payload"] for button in buttons])
    return buttons


def _parameters(action: Action) -> dict[str, Any]:
    parameters = object_or_none(action.get("parameters"))
    if parameters is None:
        raise missing_error("action']['parameters")
    return parameters


def link_button(action: Action, _references: KnownReferences | None) -> Buttons:
    """Return the button that opens a URL."""
    parameters = _parameters(action)
    path = "action']['parameters"
    url = require_url(parameters, "url", path)
    label = require_text(parameters, "display_text", path, _MAX_INTERACTIVE_LABEL_CHARS)
    return [{"type": "URL", "text": label, "url": url}]


def _product_list_button(action: Action, _references: KnownReferences | None) -> Buttons:
    sections = check_sections("interactive", objects_in(action.get("sections")))
    catalog_id = require_text(action, "catalog_id", "action", 64)
    return [{"type": "MPM", "text": "View items", "catalog_id": catalog_id, "sections": sections}]


def _catalog_button(action: Action, _references: KnownReferences | None) -> Buttons:
    parameters = object_or_none(action.get("parameters")) or {}
    thumbnail = text_or_none(parameters.get("thumbnail_product_retailer_id"))
    details = {"thumbnail_product_retailer_id": thumbnail} if thumbnail else {}
    return [{"type": "CATALOG", "text": "View catalog", **details}]


def _flow_button(action: Action, references: KnownReferences | None) -> Buttons:
    """Return the button of a flow: published, or a draft in the mode `draft`. Source: facts 4.1."""
    parameters = _parameters(action)
    path = "action']['parameters"
    label = require_text(parameters, "flow_cta", path, 30)
    if has_emoji(label):  # Source: the operator's page "Messages API"
        raise invalid_error(f"{path}']['flow_cta", "has no emoji")
    mode = (text_or_none(parameters.get("mode")) or "published").lower()
    if mode not in ("published", "draft"):
        raise invalid_error(f"{path}']['mode", "must be one of draft, published")
    button: dict[str, Any] = {"type": "FLOW", "text": label, "mode": mode}
    if parameters.get("flow_name") and parameters.get("flow_id"):
        raise invalid_error(f"{path}']['flow_name", "cannot be used with flow_id")
    if parameters.get("flow_name"):
        name = button["flow_name"] = require_text(parameters, "flow_name", path, 256)
        flow = references and find_flow_by_name(references.state, name, references.waba_id)
    else:
        name = button["flow_id"] = str(parameters.get("flow_id") or "")
        flow = references and find_flow(references.state, name, references.waba_id)
    if not name:
        raise missing_error(f"{path}']['flow_id")
    if references is not None:
        path = f"{path}']['{'flow_name' if 'flow_name' in button else 'flow_id'}"
        if flow is None:
            raise invalid_error(path, f"{name} is no flow of this account")
        if flow.status == "BLOCKED":
            raise message_error(132068, f"the flow {name} is blocked")
        if (flow.status == "DRAFT") != (mode == "draft"):
            raise invalid_error(path, f"{name} is {flow.status.lower()}, which the mode {mode} cannot open")
    button["flow_token"] = text_or_none(parameters.get("flow_token")) or "unused"
    button["flow_action"] = text_or_none(parameters.get("flow_action")) or "navigate"
    payload = object_or_none(parameters.get("flow_action_payload")) or {}
    if screen := text_or_none(payload.get("screen")):
        button["screen"] = screen
    if data := object_or_none(payload.get("data")):
        button["flow_action_data"] = data
    return [button]


def _named_action_button(name: str, kind: str, label: str) -> Callable[[Action, KnownReferences | None], Buttons]:
    def buttons(action: Action, _known: KnownReferences | None) -> Buttons:
        if action.get("name") != name:
            raise invalid_error("action']['name", f"must be {name}")
        if kind != "ADDRESS":
            return [{"type": kind, "text": label}]
        country = require_text(_parameters(action), "country", "action']['parameters", 2)
        return [{"type": kind, "text": label, "country": country}]

    return buttons


def voice_call_button(action: Action, _references: KnownReferences | None) -> Buttons:
    """Return the button that calls the business. Source: the operator's page "Call button messages"."""
    parameters = object_or_none(action.get("parameters")) or {}
    path = "action']['parameters"
    label = "Call now"
    if parameters.get("display_text"):
        label = require_text(parameters, "display_text", path, _MAX_INTERACTIVE_LABEL_CHARS)
    minutes = parameters.get("ttl_minutes", _MAX_CALL_MINUTES)
    if not isinstance(minutes, int | float) or not 1 <= minutes <= _MAX_CALL_MINUTES:
        raise invalid_error(f"{path}']['ttl_minutes", f"must be 1 to {_MAX_CALL_MINUTES}")
    return [{"type": "VOICE_CALL", "text": label, "ttl_minutes": int(minutes)}]


def _no_buttons(_action: Action, _references: KnownReferences | None) -> Buttons:
    return []


# fmt: off
_LOCATION = _named_action_button("send_location",           "LOCATION_REQUEST", "Send location")
_ADDRESS  = _named_action_button("address_message",         "ADDRESS",          "Provide address")
_CALLING  = _named_action_button("call_permission_request", "CALL_PERMISSION",  "Choose preference")
_CONTACT  = _named_action_button("request_contact_info",    "REQUEST_CONTACT_INFO", "Share Contact Info")

INTERACTIVE_TYPES: Final = {  # Source: facts 4.1, and the operator's own pages for the last seven
    #                                        needs body  headers    needs header  buttons
    "button":                   InteractiveType(True,  ANY_HEADER, False, _reply_buttons),
    "list":                     InteractiveType(True,  ("text",),   False, _list_rows, None, _MAX_LIST_BODY_CHARS),
    "cta_url":                  InteractiveType(True,  ANY_HEADER, False, link_button),
    "product":                  InteractiveType(False, (),          False, _product_button),
    "product_list":             InteractiveType(True,  ("text",),   True,  _product_list_button),
    "catalog_message":          InteractiveType(True,  (),          False, _catalog_button),
    "flow":                     InteractiveType(True,  ANY_HEADER, False, _flow_button),
    "location_request_message": InteractiveType(True,  (),          False, _LOCATION),
    "order_details":            InteractiveType(True,  ANY_HEADER, False, order_details_buttons),
    "order_status":             InteractiveType(True,  ANY_HEADER, False, order_status_buttons),
    "address_message":          InteractiveType(True,  ANY_HEADER, False, _ADDRESS),
    "call_permission_request":  InteractiveType(False, (),          False, _CALLING),
    "request_contact_info":     InteractiveType(True,  (),          False, _CONTACT),
    "voice_call":               InteractiveType(True,  (),          False, voice_call_button),
    "carousel":                 InteractiveType(True,  (),          False, _no_buttons, render_cards),
}
# fmt: on
