"""Interactive messages: a table of types, the content each requires, and the buttons it shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.simulator.errors import message_refused
from waypost.simulator.media.references import Known
from waypost.simulator.messages.interactive.cards import shown_cards
from waypost.simulator.messages.interactive.orders import order_details_buttons, order_status_buttons
from waypost.simulator.messages.interactive.parts import checked_header, distinct, missing, sized, text_of, wrong
from waypost.simulator.messages.template_sends.buttons import checked_sections

_BODY_AT_MOST: Final = 1024
_FOOTER_AT_MOST: Final = 60  # Source: facts 4.1
_LABEL_AT_MOST: Final = 20
_CALL_MINUTES_AT_MOST: Final = 43_200
_MEDIA: Final = ("image", "video", "document")
_ANY: Final = ("text", *_MEDIA)

Action = dict[str, Any]
Buttons = list[dict[str, Any]]


@dataclass(frozen=True)
class Interactive:
    """One row.

    Args:
        needs_body: whether a body text is required.
        headers: the header types it may have.
        needs_header: whether one of them is required.
        buttons: checks the action, and returns the buttons.
        cards: checks the action, and returns the cards, for a type that has cards.
    """

    needs_body: bool
    headers: tuple[str, ...]
    needs_header: bool
    buttons: Callable[[Action, Known | None], Buttons]
    cards: Callable[[Action, Known | None], list[dict[str, Any]]] | None = None


def shown_interactive(content: dict[str, Any], known: Known | None) -> dict[str, Any]:
    """Check an interactive message, and return it as the phone will show it.

    Args:
        content: the request's `interactive`.
        known: what the sender may refer to; None: references are not checked.

    Returns:
        `text`, `interactive` (as it was sent), and if present `header`, `footer`,
        `buttons` (each with `index`, `type`, `text`, and its action) and `cards`.

    Raises:
        GraphApiError: 100 for a missing member, 131009 for a wrong or too long one.

    Source: facts 4.1.
    """
    kind = text_or_none(content.get("type"))
    action = object_or_none(content.get("action"))
    if not kind:
        raise missing("type")
    rules = TYPES.get(kind)
    if rules is None:
        raise wrong("type", f"must be one of {', '.join(TYPES)}")
    if action is None:
        raise missing("action")
    rendered: dict[str, Any] = {"text": text_of(content, "body", _BODY_AT_MOST)}
    if rules.needs_body and not rendered["text"]:
        raise missing("body']['text")
    header = object_or_none(content.get("header"))
    if header is not None:
        rendered["header"] = checked_header(header, rules.headers, known)
    elif rules.needs_header:
        raise missing("header")
    footer = text_of(content, "footer", _FOOTER_AT_MOST)
    if footer:
        rendered["footer"] = footer
    rendered["interactive"] = content
    buttons = rules.buttons(action, known)
    if buttons:
        rendered["buttons"] = [{"index": index, **button} for index, button in enumerate(buttons)]
    if rules.cards is not None:
        rendered["cards"] = rules.cards(action, known)
    return rendered


def _replies(action: Action, _known: Known | None) -> Buttons:
    """Return 1 to 3 reply buttons; titles of 20 characters, ids of 256. Source: facts 4.1."""
    raw_buttons = objects_in(action.get("buttons"))
    path = "action']['buttons"
    if not raw_buttons:
        raise missing(path)
    if len(raw_buttons) > 3:
        raise wrong(path, "has 1 to 3 buttons")
    replies = [object_or_none(button.get("reply")) or {} for button in raw_buttons]
    buttons: Buttons = [
        {"type": "REPLY", "text": sized(reply, "title", path, _LABEL_AT_MOST), "payload": sized(reply, "id", path, 256)}
        for reply in replies
    ]
    distinct(path, [button["payload"] for button in buttons])
    return buttons


def _rows(action: Action, _known: Known | None) -> Buttons:
    """Return the rows: up to 10 sections and 10 rows; titles of 24 characters, descriptions of 72. Source: facts 4.1."""
    sized(action, "button", "action", _LABEL_AT_MOST)
    sections = objects_in(action.get("sections"))
    path = "action']['sections"
    if not sections:
        raise missing(path)
    buttons: Buttons = []
    for section in sections:
        title = text_or_none(section.get("title")) or ""
        if len(sections) > 1 and not title:
            raise missing(f"{path}']['title")
        if len(title) > 24:
            raise wrong(f"{path}']['title", "has at most 24 characters")
        for row in objects_in(section.get("rows")):
            button = {
                "type": "LIST_ROW",
                "text": sized(row, "title", f"{path}']['rows", 24),
                "payload": sized(row, "id", f"{path}']['rows", 200),
            }
            description = text_or_none(row.get("description")) or ""
            if len(description) > 72:
                raise wrong(f"{path}']['rows']['description", "has at most 72 characters")
            buttons.append(
                button | ({"description": description} if description else {}) | ({"section": title} if title else {})
            )
    if not buttons:
        raise missing(f"{path}']['rows")
    if len(sections) > 10 or len(buttons) > 10:
        raise wrong(path, "has at most 10 sections and 10 rows")
    distinct(path, [button["payload"] for button in buttons])
    return buttons


def _parameters(action: Action) -> dict[str, Any]:
    parameters = object_or_none(action.get("parameters"))
    if parameters is None:
        raise missing("action']['parameters")
    return parameters


def _link(action: Action, _known: Known | None) -> Buttons:
    parameters = _parameters(action)
    path = "action']['parameters"
    url = sized(parameters, "url", path, 2000)
    if not url.startswith(("http://", "https://")):
        raise wrong(f"{path}']['url", "must begin with http:// or https://")
    label = sized(parameters, "display_text", path, _LABEL_AT_MOST)
    return [{"type": "URL", "text": label, "url": url}]


def _product(action: Action, _known: Known | None) -> Buttons:
    return [
        {
            "type": "PRODUCT",
            "text": "View",
            "catalog_id": sized(action, "catalog_id", "action", 64),
            "product_retailer_id": sized(action, "product_retailer_id", "action", 256),
        }
    ]


def _product_list(action: Action, _known: Known | None) -> Buttons:
    sections = checked_sections("interactive", objects_in(action.get("sections")))
    catalog_id = sized(action, "catalog_id", "action", 64)
    return [
        {"type": "MPM", "text": "View items", "catalog_id": catalog_id, "sections": sections}
    ]  # fmt: skip


def _catalog(action: Action, _known: Known | None) -> Buttons:
    parameters = object_or_none(action.get("parameters")) or {}
    thumbnail = text_or_none(parameters.get("thumbnail_product_retailer_id"))
    details = {"thumbnail_product_retailer_id": thumbnail} if thumbnail else {}
    return [{"type": "CATALOG", "text": "View catalog", **details}]


def _flow(action: Action, known: Known | None) -> Buttons:
    """Return the button of a flow: published, or a draft in the mode `draft`. Source: facts 4.1."""
    parameters = _parameters(action)
    path = "action']['parameters"
    label = sized(parameters, "flow_cta", path, 30)
    mode = (text_or_none(parameters.get("mode")) or "published").lower()
    if mode not in ("published", "draft"):
        raise wrong(f"{path}']['mode", "must be one of draft, published")
    button: dict[str, Any] = {"type": "FLOW", "text": label, "mode": mode}
    if parameters.get("flow_name") and not parameters.get("flow_id"):
        button["flow_name"] = sized(parameters, "flow_name", path, 256)
    else:
        button["flow_id"] = _known_flow(str(parameters.get("flow_id") or ""), mode, known)
    button["flow_token"] = text_or_none(parameters.get("flow_token")) or "unused"
    button["flow_action"] = text_or_none(parameters.get("flow_action")) or "navigate"
    payload = object_or_none(parameters.get("flow_action_payload")) or {}
    navigation = {
        "screen": text_or_none(payload.get("screen")),
        "flow_action_data": object_or_none(payload.get("data")),
    }
    button |= {name: value for name, value in navigation.items() if value}
    return [button]


def _known_flow(flow_id: str, mode: str, known: Known | None) -> str:
    if not flow_id:
        raise missing("action']['parameters']['flow_id")
    if known is None:
        return flow_id
    flow = known.flow(flow_id)
    path = "action']['parameters']['flow_id"
    if flow is None:
        raise wrong(path, f"{flow_id} is no flow of this account")
    if flow.status == "BLOCKED":
        raise message_refused(132068, f"the flow {flow_id} is blocked")
    if (flow.status == "DRAFT") != (mode == "draft"):
        raise wrong(path, f"{flow_id} is {flow.status.lower()}, which the mode {mode} cannot open")
    return flow_id


def _named(name: str, kind: str, label: str) -> Callable[[Action, Known | None], Buttons]:
    def buttons(action: Action, _known: Known | None) -> Buttons:
        if action.get("name") != name:
            raise wrong("action']['name", f"must be {name}")
        details: dict[str, Any] = {}
        if kind == "ADDRESS":
            country = sized(_parameters(action), "country", "action']['parameters", 2)
            details["country"] = country
        return [{"type": kind, "text": label, **details}]

    return buttons


def _voice_call(action: Action, _known: Known | None) -> Buttons:
    """Return the button that calls the business. Source: the operator's page "Call button messages"."""
    parameters = object_or_none(action.get("parameters")) or {}
    path = "action']['parameters"
    label = "Call now"
    if parameters.get("display_text"):
        label = sized(parameters, "display_text", path, _LABEL_AT_MOST)
    minutes = parameters.get("ttl_minutes", _CALL_MINUTES_AT_MOST)
    if not isinstance(minutes, int | float) or not 1 <= minutes <= _CALL_MINUTES_AT_MOST:
        raise wrong(f"{path}']['ttl_minutes", f"must be 1 to {_CALL_MINUTES_AT_MOST}")
    return [{"type": "VOICE_CALL", "text": label, "ttl_minutes": int(minutes)}]


def _nothing(_action: Action, _known: Known | None) -> Buttons:
    return []


# fmt: off
_LOCATION = _named("send_location",           "LOCATION_REQUEST", "Send location")
_ADDRESS  = _named("address_message",         "ADDRESS",          "Provide address")
_CALLING  = _named("call_permission_request", "CALL_PERMISSION",  "Choose preference")
_CONTACT  = _named("request_contact_info",    "REQUEST_CONTACT_INFO", "Share Contact Info")

TYPES: Final = {  # Source: facts 4.1, and the operator's own pages for the last seven
    #                                        needs body  headers    needs header  buttons
    "button":                   Interactive(True,        _ANY,      False,        _replies),
    "list":                     Interactive(True,        ("text",), False,        _rows),
    "cta_url":                  Interactive(True,        _ANY,      False,        _link),
    "product":                  Interactive(False,       (),        False,        _product),
    "product_list":             Interactive(True,        ("text",), True,         _product_list),
    "catalog_message":          Interactive(True,        (),        False,        _catalog),
    "flow":                     Interactive(True,        _ANY,      False,        _flow),
    "location_request_message": Interactive(True,        (),        False,        _LOCATION),
    "order_details":            Interactive(True,        _ANY,      False,        order_details_buttons),
    "order_status":             Interactive(True,        _ANY,      False,        order_status_buttons),
    "address_message":          Interactive(True,        _ANY,      False,        _ADDRESS),
    "call_permission_request":  Interactive(False,       (),        False,        _CALLING),
    "request_contact_info":     Interactive(True,        (),        False,        _CONTACT),
    "voice_call":               Interactive(True,        (),        False,        _voice_call),
    "carousel":                 Interactive(True,        (),        False,        _nothing, shown_cards),
}
# fmt: on
