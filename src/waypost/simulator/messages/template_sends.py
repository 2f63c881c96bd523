"""Template messages, checked against their template and rendered as the phone will show them."""

from dataclasses import dataclass, field
from typing import Any, Final

from waypost.base.json_values import (
    integer_or_none,
    list_of,
    list_or_none,
    number_or_none,
    object_of,
    object_or_none,
    objects_in,
    text_or_none,
)
from waypost.simulator.apis.errors import message_error
from waypost.simulator.media.references import HEADER_TYPE_PREFIXES, KnownReferences, render_media
from waypost.simulator.messages.template_buttons import check_code, check_count, fill_text, render_button
from waypost.simulator.state.script_steps import RenderedMessage
from waypost.simulator.templates.template import SimulatedTemplate

_MAX_HEADER_TEXT_CHARS: Final = 60  # Source: facts 2.3; also after the variables are filled
_HEADER_FORMATS: Final = (*HEADER_TYPE_PREFIXES, "LOCATION", "PRODUCT", "TEXT")
_MAX_BODY_CHARS: Final = 1024  # Source: facts 2.3: also after the variables are filled
_MAX_OFFER_BODY_CHARS: Final = 600  # Source: facts 2.3
_MAX_TEMPLATE_CARD_BODY_CHARS: Final = 160  # Source: facts 2.3


@dataclass
class _SentComponents:
    """The components of a template message, or of one of its cards, by type."""

    header: list[Any] = field(default_factory=list[Any])
    body: list[Any] = field(default_factory=list[Any])
    buttons: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    offer: dict[str, Any] | None = None
    cards: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def render_template(
    template: SimulatedTemplate, components: Any, *, now_ms: int, references: KnownReferences | None
) -> RenderedMessage:
    """Check the components of a template message, and return the filled template.

    Returns:
        `template` (name, language, category), `text`, and if the template has them `header`,
        `limited_time_offer`, `footer`, `buttons`, `cards` (each with `index`, `header`, `text`,
        `buttons`).

    Raises:
        GraphApiError: for the first component that does not match the template.

    Source: facts 4.2, 5.2.
    """
    sent = _read_components("", template, components)
    offer = object_or_none(template.components_by_type.get("LIMITED_TIME_OFFER", {}).get("limited_time_offer"))
    rendered: RenderedMessage = {
        "template": {"name": template.name, "language": template.language, "category": template.category}
    }
    at_most = _MAX_BODY_CHARS if offer is None else _MAX_OFFER_BODY_CHARS
    rendered |= _render_content("", template, sent, references, at_most)
    if offer is None:
        check_count("limited_time_offer", int(sent.offer is not None), 0)
    else:
        rendered["limited_time_offer"] = _render_offer(offer, sent.offer, now_ms)
    if footer := template.text("FOOTER"):
        rendered["footer"] = footer
    if len(sent.cards) != len(template.cards):
        found = f"number of cards ({len(sent.cards)}) does not match the template's ({len(template.cards)})"
        raise message_error(132012, f"carousel: {found}")
    if sent.cards:
        rendered["cards"] = _render_cards(template, sent.cards, references)
    return rendered


def _read_components(card_prefix: str, template: SimulatedTemplate, components: Any) -> _SentComponents:
    sent, raw_list = _SentComponents(), [] if components is None else list_or_none(components)
    if raw_list is None or len(objects_in(raw_list)) != len(raw_list):
        raise message_error(131009, "components: must be an array of objects")
    for component in objects_in(raw_list):
        kind = str(component.get("type", "")).lower()
        parameters = list_of(component.get("parameters"))
        match kind:
            case "header":
                sent.header = parameters
            case "body":
                sent.body = parameters
            case "button":
                index = integer_or_none(component.get("index"))
                if index is None or not 0 <= index < len(template.buttons):
                    raise message_error(
                        131009, f"{card_prefix}buttons: Button at index {component.get('index')} does not exist"
                    )
                sent.buttons[index] = component
            case "carousel" if not card_prefix:
                sent.cards = objects_in(component.get("cards"))
            case "limited_time_offer" if not card_prefix:
                parameter = next(iter(objects_in(parameters)), dict[str, Any]())
                sent.offer = object_or_none(parameter.get("limited_time_offer"))
            case "footer" | "order_status":
                pass
            case _:
                raise message_error(131009, f"components: unknown type {kind!r}")
    return sent


def _render_content(
    card_prefix: str,
    template: SimulatedTemplate,
    sent: _SentComponents,
    references: KnownReferences | None,
    max_body_chars: int,
) -> RenderedMessage:
    """Return header, text and buttons of the message, or of a card."""
    rendered: RenderedMessage = {}
    if not template.header_format:
        check_count(f"{card_prefix}header", len(sent.header), 0)
    else:
        rendered["header"] = _render_header(f"{card_prefix}header", template, sent.header, references)
    is_named = template.parameter_format == "NAMED"
    rendered["text"] = fill_text(f"{card_prefix}body", template.text("BODY"), sent.body, is_named=is_named)
    if len(rendered["text"]) > max_body_chars:
        raise message_error(132005, f"{card_prefix}body: longer than {max_body_chars} characters")
    if template.category == "AUTHENTICATION":
        for parameter in objects_in(sent.body):
            check_code("body", str(parameter.get("text", "")))
    if template.buttons:
        rendered["buttons"] = [
            render_button(card_prefix, index, button, sent.buttons.get(index))
            for index, button in enumerate(template.buttons)
        ]
    return rendered


def _render_header(
    component: str, template: SimulatedTemplate, parameters: list[Any], references: KnownReferences | None
) -> dict[str, Any]:
    """Return the header as the phone shows it: `format`, and `text` or the member of that format.

    A header other than text always needs a parameter, although the template has an example.

    Raises:
        GraphApiError: 132012 for another format, 132000 for more than one parameter, 132005 for a text that is too
            long once filled, 131008, 131009 or 131053 for its content.

    Source: facts 4.2, 5.2.
    """
    expected = template.header_format
    if expected == "TEXT":
        is_named = template.parameter_format == "NAMED"
        text = fill_text(component, template.text("HEADER"), parameters, is_named=is_named)
        if len(text) > _MAX_HEADER_TEXT_CHARS:
            raise message_error(132005, f"{component}: longer than {_MAX_HEADER_TEXT_CHARS} characters")
        return {"format": "TEXT", "text": text}
    if len(parameters) > 1:
        check_count(component, len(parameters), 1)
    parameter = object_of(parameters[0]) if parameters else {}
    received = str(parameter.get("type", "UNKNOWN")).upper()
    if received != expected:
        shown = received if received in _HEADER_FORMATS else "UNKNOWN"
        raise message_error(132012, f"{component}: Format mismatch, expected {expected}, received {shown}")
    member = received.lower()
    content = object_or_none(parameter.get(member))
    if not content:
        raise message_error(131008, f"{component}: Parameter of type {member} is missing its value")
    match expected:
        case "LOCATION":
            _check_location(component, content)
        case "PRODUCT":
            if not text_or_none(content.get("product_retailer_id")):
                raise message_error(131008, f"{component}: the product is missing its product_retailer_id")
        case _:
            if "caption" in content:  # Source: facts 4.2
                raise message_error(131009, f"{component}: a header's media has no caption")
            content = render_media(member, content, references, HEADER_TYPE_PREFIXES[expected])
    return {"format": expected, member: content}


def _check_location(component: str, content: dict[str, Any]) -> None:
    """Check a location: latitude and longitude are numbers, or texts that contain numbers. Source: facts 4.1."""
    for name, at_most in (("latitude", 90), ("longitude", 180)):
        if content.get(name) in (None, ""):
            raise message_error(131008, f"{component}: the location is missing its {name}")
        degrees = number_or_none(content[name])
        if degrees is None:
            raise message_error(131009, f"{component}: {name} is not a number")
        if not -at_most <= degrees <= at_most:
            raise message_error(131009, f"{component}: {name} is beyond {at_most} degrees")


def _render_offer(offer: dict[str, Any], parameter: dict[str, Any] | None, now_ms: int) -> RenderedMessage:
    """Return the offer; its expiry must be in the future, and in milliseconds, not seconds.

    Source: facts 4.2: Unix milliseconds.
    """
    rendered: RenderedMessage = {"text": text_or_none(offer.get("text")) or ""}
    if not offer.get("has_expiration"):
        return rendered
    if parameter is None or parameter.get("expiration_time_ms") is None:
        raise message_error(131008, "limited_time_offer: Parameter of type limited_time_offer is missing its value")
    until_ms = parameter["expiration_time_ms"]
    if isinstance(until_ms, str) and until_ms.isascii() and until_ms.isdigit():
        until_ms = int(until_ms[:20])
    if not isinstance(until_ms, int) or isinstance(until_ms, bool) or until_ms <= now_ms:
        raise message_error(131009, "limited_time_offer: expiration_time_ms must be milliseconds in the future")
    return rendered | {"expiration_time_ms": until_ms}


def _render_cards(
    template: SimulatedTemplate, raw_cards: list[dict[str, Any]], references: KnownReferences | None
) -> list[dict[str, Any]]:
    """Return the cards in the template's order, whatever their order in the request."""
    by_index: dict[int, dict[str, Any]] = {}
    for default_index, card in enumerate(raw_cards):
        index = integer_or_none(card.get("card_index", default_index))
        if index is None or not 0 <= index < len(template.cards) or index in by_index:
            raise message_error(131009, f"carousel: card_index {card.get('card_index')} does not fit the template")
        by_index[index] = card
    cards: list[dict[str, Any]] = []
    for index, face in enumerate(template.cards):
        card_prefix = f"card {index}: "
        sent = _read_components(card_prefix, face, by_index[index].get("components"))
        rendered = _render_content(card_prefix, face, sent, references, _MAX_TEMPLATE_CARD_BODY_CHARS)
        cards.append({"index": index, **rendered})
    return cards
