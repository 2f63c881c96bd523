"""Interactive messages: a table of types, the content each requires, and the buttons and cards it shows."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from waypost.base.json_values import objects_in
from waypost.simulator.apis.errors import message_error
from waypost.simulator.flows.model import find_flow, find_flow_by_name
from waypost.simulator.media.references import KnownReferences
from waypost.simulator.messages.interactive_fields import (
    MAX_LABEL_CHARS,
    Buttons,
    InteractiveObject,
    link_button,
    read_text,
    render_interactive_header,
    reply_button,
)
from waypost.simulator.messages.orders import order_details_buttons, order_status_buttons
from waypost.simulator.messages.template_buttons import check_sections
from waypost.simulator.templates.text_variables import has_emoji

_CARDS: Final = (2, 10)  # Source: facts 2.3, "Carousel cards"; a free-form one has the same
_MAX_CARD_BODY_CHARS: Final = 160
_MAX_INTERACTIVE_BODY_CHARS: Final = 1024
_MAX_LIST_BODY_CHARS: Final = 4096  # Source: the operator's page "Interactive list messages"
_MAX_INTERACTIVE_FOOTER_CHARS: Final = 60  # Source: facts 4.1
_MAX_CALL_MINUTES: Final = 43_200
_CARD_HEADERS: Final = ("image", "video")
ANY_HEADER: Final = ("text", "image", "video", "document")


class InteractiveType(NamedTuple):
    """One row."""

    needs_body: bool
    headers: tuple[str, ...]  # the types of header that it may have
    needs_header: bool
    build_buttons: Callable[[InteractiveObject], Buttons]  # checks the action, and returns the buttons
    build_cards: Callable[[InteractiveObject], list[dict[str, Any]]] | None = None  # likewise
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
    message = InteractiveObject("interactive", content, references)
    kind = message.text("type")
    if not kind:
        raise message.missing("type")
    types = INTERACTIVE_TYPES if types is None else types
    rules = types.get(kind)
    if rules is None:
        raise message.invalid("type", f"must be one of {', '.join(types)}")
    action = message.require_object("action")
    rendered: dict[str, Any] = {"text": read_text(content, "body", rules.max_body_chars)}
    if rules.needs_body and not rendered["text"].strip():
        raise message.object("body").missing("text")
    header = message.find_object("header")
    if header is not None:
        rendered["header"] = render_interactive_header(header, rules.headers)
    elif rules.needs_header:
        raise message.missing("header")
    footer = read_text(content, "footer", _MAX_INTERACTIVE_FOOTER_CHARS)
    if footer:
        rendered["footer"] = footer
    rendered["interactive"] = content
    buttons = rules.build_buttons(action)
    if buttons:
        rendered["buttons"] = _number_buttons(buttons)
    if rules.build_cards is not None:
        rendered["cards"] = rules.build_cards(action)
    return rendered


def _number_buttons(buttons: Buttons) -> Buttons:
    return [{"index": index, **button} for index, button in enumerate(buttons)]


def _render_cards(action: InteractiveObject) -> list[dict[str, Any]]:
    """Check the cards, and return them as the phone shows them: `index`, `text`, `header`, `buttons`.

    Every card has an image or a video and the same kinds of buttons, or is a product of a catalog.

    Source: the operator's page "Interactive media carousel messages".
    """
    raw_cards = action.require_objects("cards")
    min_cards, max_cards = _CARDS
    if not min_cards <= len(raw_cards) <= max_cards:
        raise action.invalid("cards", f"has {min_cards} to {max_cards} cards")
    if [card.members.get("card_index") for card in raw_cards] != list(range(len(raw_cards))):
        raise action.invalid("cards", "are numbered by card_index, from 0")
    cards = [_render_card(index, card) for index, card in enumerate(raw_cards)]
    if len({tuple(button["type"] for button in card["buttons"]) for card in cards}) > 1:
        raise action.invalid("cards", "must all have the same kinds of buttons")
    ids = [button["payload"] for card in cards for button in card["buttons"] if "payload" in button]
    action.check_distinct("cards", ids)
    return cards


def _render_card(index: int, listed: InteractiveObject) -> dict[str, Any]:
    card = InteractiveObject(f"{listed.name}[{index}]", listed.members, listed.references)
    action = card.require_object("action")
    rendered: dict[str, Any] = {"index": index, "text": read_text(card.members, "body", _MAX_CARD_BODY_CHARS)}
    header = card.find_object("header")
    if header is not None:
        rendered["header"] = render_interactive_header(header, _CARD_HEADERS)
    elif "product_retailer_id" not in action.members:
        raise card.missing("header")
    return {**rendered, "buttons": _number_buttons(_card_buttons(action))}


def _card_buttons(action: InteractiveObject) -> Buttons:
    if "product_retailer_id" in action.members:
        return _product_button(action)
    if action.members.get("name") == "cta_url":
        parameters = action.object("parameters")
        label = parameters.require_text("display_text", MAX_LABEL_CHARS)
        return [{"type": "URL", "text": label, "url": parameters.require_url("url")}]
    buttons = action.require_objects("buttons")
    if len(buttons) > 3 or any(button.text("type") != "quick_reply" for button in buttons):
        raise action.invalid("buttons", "has 1 to 3 buttons of the type quick_reply")
    return _build_replies(action, buttons, "quick_reply")


def _product_button(action: InteractiveObject) -> Buttons:
    ids = {name: action.require_text(name, max_chars) for name, max_chars in _PRODUCT_IDS.items()}
    return [{"type": "PRODUCT", "text": "View", **ids}]


_PRODUCT_IDS: Final = {"catalog_id": 64, "product_retailer_id": 256}
"""The members that name a product, and how long each may be."""


def _reply_buttons(action: InteractiveObject) -> Buttons:
    buttons = action.require_objects("buttons")
    if len(buttons) > 3:
        raise action.invalid("buttons", "has 1 to 3 buttons")
    return _build_replies(action, buttons, "reply")


def _build_replies(action: InteractiveObject, buttons: list[InteractiveObject], member: str) -> Buttons:
    """Return the reply buttons of one bubble.

    Source: the operator's pages "Interactive reply buttons messages" (unique titles and ids),
    "Messages API" (no space at either end of an id).
    """
    replies = [reply_button(button, member, "REPLY") for button in buttons]
    action.check_distinct("buttons", [reply["payload"] for reply in replies])
    action.check_distinct("buttons", [reply["text"] for reply in replies], "a title, which must be unique,")
    if any(reply["payload"] != reply["payload"].strip() for reply in replies):
        raise action.invalid("buttons", "has an id with a space at its beginning or end")
    return replies


def _list_rows(action: InteractiveObject) -> Buttons:
    """Return the rows: up to 10 sections and 10 rows; titles of 24 characters, descriptions of 72.

    Source: facts 4.1.
    """
    action.require_text("button", MAX_LABEL_CHARS)
    sections = action.require_objects("sections")
    buttons: Buttons = []
    for section in sections:
        title = section.text("title")
        if len(sections) > 1 and not title.strip():
            raise section.missing("title")
        if len(title) > 24:
            raise section.invalid("title", "has at most 24 characters")
        rows = section.require_objects("rows") if objects_in(section.members.get("rows")) else []
        for row in rows:
            button = {
                "type": "LIST_ROW", "text": row.require_text("title", 24), "payload": row.require_text("id", 200),
            }  # fmt: skip
            description = row.text("description")
            if len(description) > 72:
                raise row.invalid("description", "has at most 72 characters")
            buttons.append(
                button | ({"description": description} if description else {}) | ({"section": title} if title else {})
            )
    if not buttons:
        raise sections[0].missing("rows")
    if len(sections) > 10 or len(buttons) > 10:
        raise action.invalid("sections", "has at most 10 sections and 10 rows")
    action.check_distinct("sections", [button["payload"] for button in buttons])
    return buttons


def _link_buttons(action: InteractiveObject) -> Buttons:
    return [link_button(action.require_object("parameters"))]


def _product_list_button(action: InteractiveObject) -> Buttons:
    sections = check_sections("interactive", objects_in(action.members.get("sections")))
    catalog_id = action.require_text("catalog_id", 64)
    return [{"type": "MPM", "text": "View items", "catalog_id": catalog_id, "sections": sections}]


def _catalog_button(action: InteractiveObject) -> Buttons:
    thumbnail = action.object("parameters").text("thumbnail_product_retailer_id")
    details = {"thumbnail_product_retailer_id": thumbnail} if thumbnail else {}
    return [{"type": "CATALOG", "text": "View catalog", **details}]


def _flow_button(action: InteractiveObject) -> Buttons:
    """Return the button of a flow: published, or a draft in the mode `draft`. Source: facts 4.1."""
    parameters, references = action.require_object("parameters"), action.references
    label = parameters.require_text("flow_cta", 30)
    if has_emoji(label):  # Source: the operator's page "Messages API"
        raise parameters.invalid("flow_cta", "has no emoji")
    mode = (parameters.text("mode") or "published").lower()
    if mode not in ("published", "draft"):
        raise parameters.invalid("mode", "must be one of draft, published")
    if parameters.members.get("flow_name") and parameters.members.get("flow_id"):
        raise parameters.invalid("flow_name", "cannot be used with flow_id")
    if parameters.members.get("flow_name"):
        member, name = "flow_name", parameters.require_text("flow_name", 256)
        flow = references and find_flow_by_name(references.state, name, references.waba_id)
    else:
        member, name = "flow_id", str(parameters.members.get("flow_id") or "")
        flow = references and find_flow(references.state, name, references.waba_id)
    if not name:
        raise parameters.missing("flow_id")
    if references is not None:
        if flow is None:
            raise parameters.invalid(member, f"{name} is no flow of this account")
        if flow.status == "BLOCKED":
            raise message_error(132068, f"the flow {name} is blocked")
        if not (flow.status == "DRAFT" if mode == "draft" else flow.is_sendable):
            raise parameters.invalid(member, f"{name} is {flow.status.lower()}, which the mode {mode} cannot open")
    payload = parameters.object("flow_action_payload")
    optional_members = {"screen": payload.text("screen"), "flow_action_data": payload.object("data").members}
    return [
        {
            "type": "FLOW",
            "text": label,
            "mode": mode,
            member: name,
            "flow_token": parameters.text("flow_token") or "unused",
            "flow_action": parameters.text("flow_action") or "navigate",
            **{name: value for name, value in optional_members.items() if value},
        }
    ]


def _named_action_button(name: str, kind: str, label: str) -> Callable[[InteractiveObject], Buttons]:
    def buttons(action: InteractiveObject) -> Buttons:
        if action.members.get("name") != name:
            raise action.invalid("name", f"must be {name}")
        if kind != "ADDRESS":
            return [{"type": kind, "text": label}]
        country = action.require_object("parameters").require_text("country", 2)
        return [{"type": kind, "text": label, "country": country}]

    return buttons


def _voice_call_button(action: InteractiveObject) -> Buttons:
    """Return the button that calls the business. Source: the operator's page "Call button messages"."""
    parameters, label = action.object("parameters"), "Call now"
    if parameters.members.get("display_text"):
        label = parameters.require_text("display_text", MAX_LABEL_CHARS)
    minutes = parameters.members.get("ttl_minutes", _MAX_CALL_MINUTES)
    if not isinstance(minutes, int | float) or not 1 <= minutes <= _MAX_CALL_MINUTES:
        raise parameters.invalid("ttl_minutes", f"must be 1 to {_MAX_CALL_MINUTES}")
    return [{"type": "VOICE_CALL", "text": label, "ttl_minutes": int(minutes)}]


def _no_buttons(_action: InteractiveObject) -> Buttons:
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
    "cta_url":                  InteractiveType(True,  ANY_HEADER, False, _link_buttons),
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
    "voice_call":               InteractiveType(True,  (),          False, _voice_call_button),
    "carousel":                 InteractiveType(True,  (),          False, _no_buttons, _render_cards),
}
# fmt: on
