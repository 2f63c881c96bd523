"""The header of a template send, or of one of its cards: held against its format, and shown."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.errors import message_refused
from waypost.simulator.media.references import HEADER_KINDS, Known, shown_media
from waypost.simulator.messages.send_texts import filled
from waypost.simulator.messages.template_plans import FacePlan

_TEXT_AT_MOST: Final = 60  # Source: facts 2.3; also after the variables are filled
_SPOKEN: Final = (*HEADER_KINDS, "LOCATION", "PRODUCT", "TEXT")


def shown_header(
    place: str, plan: FacePlan, given: list[Any], known: Known | None, *, is_named: bool
) -> dict[str, Any]:
    """What the phone shows above the body: `format`, and `text` or the member of that format.

    Args:
        place: empty, or the card, for the operator's words.
        plan: what the template has there.
        given: the parameters. A header other than text always needs one, though the template has
            an example.
        known: what the sender may refer to.
        is_named: whether parameters go by their names.

    Raises:
        GraphRefused: 132012 for another format, 132005 for a text that has become too long, 131008, 131009 or 131053 for what is in it.

    Source: facts 4.2, 5.2.
    """
    component = f"{place}header"
    wished = plan.header_format
    if wished == "TEXT":
        text = filled(component, plan.header, given, is_named=is_named)
        if len(text) > _TEXT_AT_MOST:
            raise message_refused(132005, f"{component}: longer than {_TEXT_AT_MOST} characters")
        return {"format": "TEXT", "text": text}
    first = object_or_none(given[0]) if given else None
    received = str((first or {}).get("type", "UNKNOWN")).upper()
    if first is None or received != wished:
        raise message_refused(
            132012,
            f"{component}: Format mismatch, expected {wished}, "
            f"received {received if received in _SPOKEN else 'UNKNOWN'}",
        )
    member = received.lower()
    content = object_or_none(first.get(member))
    if not content:
        raise message_refused(131008, f"{component}: Parameter of type {member} is missing its value")
    return {"format": wished, member: _content(component, wished, content, known)}


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
    """A place whose latitude and longitude are numbers, or texts that spell them.

    Raises:
        GraphRefused: 131008 or 131009.

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
