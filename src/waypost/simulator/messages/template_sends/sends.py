"""Template messages, checked against their template and rendered as the phone will show them."""

from dataclasses import dataclass, field
from typing import Any, Final

from waypost.base.json_values import integer_or_none, list_or_none, object_or_none, objects_in, text_or_none
from waypost.simulator.errors import message_refused
from waypost.simulator.media.references import HEADER_KINDS, Known, shown_media
from waypost.simulator.messages.template_sends.buttons import check_code, shown_button
from waypost.simulator.messages.template_sends.plans import FacePlan, OfferPlan, TemplatePlan
from waypost.simulator.messages.template_sends.texts import filled

_TEXT_AT_MOST: Final = 60  # Source: facts 2.3; also after the variables are filled
_SPOKEN: Final = (*HEADER_KINDS, "LOCATION", "PRODUCT", "TEXT")


def shown_header(
    place: str, plan: FacePlan, given: list[Any], known: Known | None, *, is_named: bool
) -> dict[str, Any]:
    """Return the header as the phone shows it: `format`, and `text` or the member of that format.

    Args:
        place: empty, or the card, for error texts.
        plan: the template's content.
        given: the parameters. A header other than text always needs one, although the template has
            an example.
        known: what the sender may refer to.
        is_named: whether parameters have names.

    Raises:
        GraphApiError: 132012 for another format, 132005 for a text that is too long once filled,
            131008, 131009 or 131053 for its content.

    Source: facts 4.2, 5.2.
    """
    component = f"{place}header"
    expected = plan.header_format
    if expected == "TEXT":
        text = filled(component, plan.header, given, is_named=is_named)
        if len(text) > _TEXT_AT_MOST:
            raise message_refused(132005, f"{component}: longer than {_TEXT_AT_MOST} characters")
        return {"format": "TEXT", "text": text}
    parameter = object_or_none(given[0]) if given else None
    received = str((parameter or {}).get("type", "UNKNOWN")).upper()
    if parameter is None or received != expected:
        raise message_refused(
            132012,
            f"{component}: Format mismatch, expected {expected}, "
            f"received {received if received in _SPOKEN else 'UNKNOWN'}",
        )
    member = received.lower()
    content = object_or_none(parameter.get(member))
    if not content:
        raise message_refused(131008, f"{component}: Parameter of type {member} is missing its value")
    return {"format": expected, member: _content(component, expected, content, known)}


def _content(component: str, wished: str, content: dict[str, Any], known: Known | None) -> dict[str, Any]:
    match wished:
        case "LOCATION":
            return location_of(component, content)
        case "PRODUCT":
            if not text_or_none(content.get("product_retailer_id")):
                raise message_refused(131008, f"{component}: the product is missing its product_retailer_id")
            return content
        case _:
            if "caption" in content:  # Source: facts 4.2
                raise message_refused(131009, f"{component}: a header's media has no caption")
            kind = wished.lower()
            return shown_media(kind, content, known, HEADER_KINDS[wished])


def location_of(component: str, content: dict[str, Any]) -> dict[str, Any]:
    """Check a location: latitude and longitude are numbers, or texts that contain numbers.

    Raises:
        GraphApiError: 131008 or 131009.

    Source: facts 4.1.
    """
    for name, at_most in (("latitude", 90), ("longitude", 180)):
        if content.get(name) in (None, ""):
            raise message_refused(131008, f"{component}: the location is missing its {name}")
        try:
            degrees = float(content[name])
        except (TypeError, ValueError, OverflowError) as error:
            raise message_refused(131009, f"{component}: {name} is not a number") from error
        if not -at_most <= degrees <= at_most:
            raise message_refused(131009, f"{component}: {name} is beyond {at_most} degrees")
    return content


_BODY_AT_MOST: Final = 1024  # Source: facts 2.3: also after the variables are filled
_OFFER_BODY_AT_MOST: Final = 600  # Source: facts 2.3
_CARD_BODY_AT_MOST: Final = 160  # Source: facts 2.3

Shown = dict[str, Any]
"""A message as a phone shows it: `text`, and if present `header`, `footer`, `buttons`, `cards`, … ."""


@dataclass
class _Carried:
    """The components of a template message, or of one of its cards, by type."""

    header: list[Any] = field(default_factory=list[Any])
    body: list[Any] = field(default_factory=list[Any])
    buttons: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    offer: dict[str, Any] | None = None
    cards: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def shown_template(plan: TemplatePlan, given: Any, *, now_ms: int, known: Known | None) -> Shown:
    """Check the components of a template message, and return the filled template.

    Args:
        plan: the template.
        given: the request's `components`; may be absent.
        now_ms: the time after which an offer must expire.
        known: what the sender may refer to; None: references are not checked.

    Returns:
        `template` (name, language, category), `text`, and if the template has them `header`,
        `limited_time_offer`, `footer`, `buttons`, `cards` (each with `index`, `header`, `text`,
        `buttons`).

    Raises:
        GraphApiError: for the first component that does not match the template.

    Source: facts 4.2, 5.2.
    """
    sent = _read("", plan.face, given)
    template = plan.template
    rendered: Shown = {
        "template": {"name": template.name, "language": template.language, "category": template.category}
    }
    at_most = _BODY_AT_MOST if plan.offer is None else _OFFER_BODY_AT_MOST
    rendered |= _face("", plan, plan.face, sent, known, at_most)
    if plan.offer is not None:
        rendered["limited_time_offer"] = _offer(plan.offer, sent.offer, now_ms)
    if plan.footer:
        rendered["footer"] = plan.footer
    if len(sent.cards) != len(plan.cards):
        raise message_refused(
            132012, f"carousel: number of cards ({len(sent.cards)}) does not match the template's ({len(plan.cards)})"
        )
    if plan.cards:
        rendered["cards"] = _cards(plan, sent.cards, known)
    return rendered


def _read(place: str, plan: FacePlan, given: Any) -> _Carried:
    sent = _Carried()
    for component in _components(given):
        kind = str(component.get("type", "")).lower()
        parameters = list_or_none(component.get("parameters")) or []
        match kind:
            case "header":
                sent.header = parameters
            case "body":
                sent.body = parameters
            case "button":
                index = integer_or_none(component.get("index"))
                if index is None or not 0 <= index < len(plan.buttons):
                    raise message_refused(
                        131009, f"{place}buttons: Button at index {component.get('index')} does not exist"
                    )
                sent.buttons[index] = component
            case "carousel" if not place:
                sent.cards = objects_in(component.get("cards"))
            case "limited_time_offer" if not place:
                parameter = next(iter(objects_in(parameters)), dict[str, Any]())
                sent.offer = object_or_none(parameter.get("limited_time_offer"))
            case "footer" | "order_status":
                pass
            case _:
                raise message_refused(131009, f"components: unknown type {kind!r}")
    return sent


def _components(given: Any) -> list[dict[str, Any]]:
    if given is None:
        return []
    raw_list = list_or_none(given)
    components = objects_in(given)
    if raw_list is None or len(components) != len(raw_list):
        raise message_refused(131009, "components: must be an array of objects")
    return components


def _face(
    place: str, plan: TemplatePlan, face: FacePlan, carried: _Carried, known: Known | None, body_at_most: int
) -> Shown:
    """Return header, text and buttons of the message, or of a card."""
    rendered: Shown = {}
    if face.header_format:
        rendered["header"] = shown_header(place, face, carried.header, known, is_named=plan.is_named)
    rendered["text"] = filled(f"{place}body", face.body, carried.body, is_named=plan.is_named)
    if len(rendered["text"]) > body_at_most:
        raise message_refused(132005, f"{place}body: longer than {body_at_most} characters")
    if plan.is_authentication:
        for parameter in objects_in(carried.body):
            check_code("body", str(parameter.get("text", "")))
    if face.buttons:
        rendered["buttons"] = [
            shown_button(place, index, button, carried.buttons.get(index)) for index, button in enumerate(face.buttons)
        ]
    return rendered


def _offer(plan: OfferPlan, given: dict[str, Any] | None, now_ms: int) -> Shown:
    """Return the offer; its expiry must be in the future, and in milliseconds, not seconds.

    Source: facts 4.2: Unix milliseconds.
    """
    rendered: Shown = {"text": plan.text}
    if not plan.has_expiration:
        return rendered
    if given is None or given.get("expiration_time_ms") is None:
        raise message_refused(131008, "limited_time_offer: Parameter of type limited_time_offer is missing its value")
    until_ms = given["expiration_time_ms"]
    if isinstance(until_ms, str) and until_ms.isascii() and until_ms.isdigit():
        until_ms = int(until_ms[:20])
    if not isinstance(until_ms, int) or isinstance(until_ms, bool) or until_ms <= now_ms:
        raise message_refused(131009, "limited_time_offer: expiration_time_ms must be milliseconds in the future")
    return rendered | {"expiration_time_ms": until_ms}


def _cards(plan: TemplatePlan, given: list[dict[str, Any]], known: Known | None) -> list[dict[str, Any]]:
    """Return the cards in the template's order, whatever their order in the request."""
    by_index: dict[int, dict[str, Any]] = {}
    for default_index, card in enumerate(given):
        index = integer_or_none(card.get("card_index", default_index))
        if index is None or not 0 <= index < len(plan.cards) or index in by_index:
            raise message_refused(131009, f"carousel: card_index {card.get('card_index')} does not fit the template")
        by_index[index] = card
    cards: list[dict[str, Any]] = []
    for index, face in enumerate(plan.cards):
        card_prefix = f"card {index}: "
        sent = _read(card_prefix, face, by_index[index].get("components"))
        rendered = _face(card_prefix, plan, face, sent, known, _CARD_BODY_AT_MOST)
        cards.append({"index": index, **rendered})
    return cards
