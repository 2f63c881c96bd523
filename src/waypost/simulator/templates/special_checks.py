"""Checks of the special templates: offers, carousels, catalogs, products, flows."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none, texts_in
from waypost.simulator.apis.errors import template_error
from waypost.simulator.flows.model import find_flow, find_flow_by_name
from waypost.simulator.media.references import HEADER_TYPE_PREFIXES, KnownReferences
from waypost.simulator.templates.template import SimulatedTemplate

_MAX_GIF_BYTES: Final = 3_500_000  # Source: facts 2.2, "HEADER medium"
_UNKNOWN_HANDLE: Final = "The header_handle {handle!r} was not given by a resumable upload."


def check_references(draft: SimulatedTemplate, references: KnownReferences) -> None:
    """Check that the handles of media headers and the flows of buttons exist.

    Raises:
        GraphApiError: code 100, "Invalid parameter".

    Source: facts 2.2, 6.2.
    """
    state, waba_id = references.state, references.waba_id
    for part in (draft, *draft.cards):
        _check_handle(part, references)
        for button in part.buttons:
            if button["type"] != "FLOW" or button.get("flow_json"):
                continue
            flow_id, name = button.get("flow_id"), button.get("flow_name")
            flow = find_flow(state, str(flow_id), waba_id) if flow_id else find_flow_by_name(state, str(name), waba_id)
            if flow is None or flow.status in ("DEPRECATED", "BLOCKED"):
                text = f"The flow {flow_id or name} does not exist in this account, or cannot be used."
                raise template_error(None, text)


def _check_handle(draft: SimulatedTemplate, references: KnownReferences) -> None:
    accepted = HEADER_TYPE_PREFIXES.get(draft.components_by_type.get("HEADER", {}).get("format", ""))
    if accepted is None:
        return
    raw_handle = draft.example("HEADER").get("header_handle")
    handle = raw_handle if isinstance(raw_handle, str) else next(iter(texts_in(raw_handle)), "")
    uploads = references.find_uploads(handle)
    if not uploads:
        unknown = next((line for line in handle.split("\n") if not references.find_uploads(line)), handle)
        raise template_error(None, _UNKNOWN_HANDLE.format(handle=unknown[:80]))
    wrong = next((upload.file_type for upload in uploads if not upload.file_type.startswith(accepted)), None)
    if wrong is not None:
        raise template_error(None, f"The header's example is of the type {wrong}, which does not fit its format.")
    if draft.components_by_type["HEADER"]["format"] == "GIF" and uploads[0].file_length > _MAX_GIF_BYTES:
        raise template_error(None, f"The header's example has at most {_MAX_GIF_BYTES} bytes.")


_MAX_OFFER_TEXT_CHARS: Final = 16  # Source: facts 2.3, "LTO text"
_CARDS: Final = (2, 10)  # Source: facts 2.3, "Carousel cards"
_CARD_BUTTONS: Final = ("QUICK_REPLY", "URL", "PHONE_NUMBER", "SPM")  # Source: facts 2.2, 2.3
_CATEGORIES: Final = ("MARKETING", "UTILITY")
_CARD_HEADERS: Final = ("IMAGE", "VIDEO", "PRODUCT")  # Source: facts 2.2


def _button_types(draft: SimulatedTemplate) -> list[str]:
    return [button["type"] for button in draft.buttons]


def offer_malformed(draft: SimulatedTemplate) -> str | None:
    """Return the violation of a limited-time offer; None if there is none. Source: facts 2.2, 2.3."""
    component = draft.components_by_type.get("LIMITED_TIME_OFFER")
    if component is None:
        return None
    offer = object_or_none(component.get("limited_time_offer")) or {}
    text = text_or_none(offer.get("text")) or ""
    has_expiration = offer.get("has_expiration", False)
    header = draft.components_by_type.get("HEADER", {"format": "IMAGE"})
    kinds = _button_types(draft)
    if draft.category not in _CATEGORIES:
        return "A limited-time offer is for MARKETING templates."
    if not 1 <= len(text) <= _MAX_OFFER_TEXT_CHARS:
        return f"The text of a limited-time offer has 1 to {_MAX_OFFER_TEXT_CHARS} characters."
    if "{{" in text or "}}" in text:  # Source: facts 4.2: a message has no value for it
        return "Variables are not supported in the offer."
    if not isinstance(has_expiration, bool):
        return "The has_expiration of a limited-time offer is true or false."
    if "FOOTER" in draft.components_by_type:
        return "A template with a limited-time offer has no footer."
    if header["format"] not in ("IMAGE", "VIDEO"):
        return "The header of a limited-time offer is an image or a video."
    first = ["COPY_CODE", "URL"] if "COPY_CODE" in kinds else ["URL"]
    if kinds[: len(first)] != first:
        return "The buttons of a limited-time offer begin with COPY_CODE, if any, and then URL."
    if has_expiration and kinds[0] != "COPY_CODE":
        return "A limited-time offer that expires has a COPY_CODE button first."
    return None


def catalog_malformed(draft: SimulatedTemplate) -> str | None:
    """Return the violation of a catalog's or products' template; None if there is none. Source: facts 2.2, notes."""
    kinds = _button_types(draft)
    header = draft.components_by_type.get("HEADER", {}).get("format", "")
    header_by_button = {"CATALOG": "", "MPM": "TEXT", "SPM": "PRODUCT"}
    for kind, required in header_by_button.items():
        if kind not in kinds:
            continue
        if draft.category not in _CATEGORIES:
            return f"A {kind} button is for MARKETING templates."
        if header != required:
            described = f"a header of the format {required}" if required else "no header"
            return f"A template with a {kind} button has {described}."
    if header == "PRODUCT" and "SPM" not in kinds:
        return "A product header needs a SPM button."
    return None


def utility_malformed(draft: SimulatedTemplate) -> str | None:
    """Return the violation of a UTILITY template of a kind that the operator's samples show as MARKETING only.

    Checked only if the settings are strict: the partner API in front of the operator documents these for both
    categories (decision 0068). Source: facts 2.2, notes.
    """
    if draft.category != "UTILITY":
        return None
    if "LIMITED_TIME_OFFER" in draft.components_by_type:
        return "A limited-time offer is for MARKETING templates."
    if "CAROUSEL" in draft.components_by_type:
        return "A carousel is for MARKETING templates."
    for kind in _button_types(draft):
        if kind in ("CATALOG", "MPM", "SPM"):
            return f"A {kind} button is for MARKETING templates."
    return None


def flow_malformed(draft: SimulatedTemplate) -> str | None:
    """Return the violation of a flow button; None if there is none.

    Source: facts 2.2, 12 and 13: the operator's samples are MARKETING, and there is no further rule.
    """
    for button in draft.buttons:
        if button["type"] != "FLOW":
            continue
        if draft.category != "MARKETING":
            return "A FLOW button is for MARKETING templates."
        if sum(1 for name in ("flow_id", "flow_name", "flow_json") if button.get(name)) != 1:
            return "A FLOW button has exactly one of flow_id, flow_name and flow_json."
        action = str(button.get("flow_action") or "navigate").lower()
        if action not in ("navigate", "data_exchange"):
            return "The flow_action of a FLOW button is navigate or data_exchange."
        if action == "data_exchange" and button.get("navigate_screen"):
            return "A navigate_screen needs the flow_action navigate."
    return None


def carousel_malformed(draft: SimulatedTemplate) -> str | None:
    """Return the violation of a carousel: its other components, its number of cards, or different cards; None if none.

    Source: facts 2.2, 2.3.
    """
    if "CAROUSEL" not in draft.components_by_type:
        return None
    cards = draft.cards
    if draft.category not in _CATEGORIES:
        return "A carousel is for MARKETING templates."
    if set(draft.components_by_type) != {"BODY", "CAROUSEL"}:
        return "A template with a carousel has a body beside it, and nothing else."
    if not _CARDS[0] <= len(cards) <= _CARDS[1]:
        return f"A carousel has {_CARDS[0]} to {_CARDS[1]} cards."
    for index, card in enumerate(cards):
        violation = _card_malformed(card)
        if violation:
            return f"Card {index}: {violation}"
        if _card_structure(card) != _card_structure(cards[0]):
            return (
                f"Card {index}: all cards have the same components, the same header format and "
                "the same types of buttons in the same order."
            )
    return None


def _card_malformed(card: SimulatedTemplate) -> str | None:
    header = card.components_by_type.get("HEADER", {}).get("format")
    if header not in _CARD_HEADERS:
        return f"the header's format is one of {', '.join(_CARD_HEADERS)}."
    kinds = _button_types(card)
    if not 1 <= len(kinds) <= 2 or any(kind not in _CARD_BUTTONS for kind in kinds):
        return f"there are 1 or 2 buttons, each one of {', '.join(_CARD_BUTTONS)}."
    return None


def _card_structure(card: SimulatedTemplate) -> tuple[Any, ...]:
    return frozenset(card.components_by_type), card.components_by_type["HEADER"]["format"], tuple(_button_types(card))
