"""Sending a template from its page: which fields the form has, and what it becomes at the partner API."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.domain.templates.buttons import Button, ButtonKind
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.parameters import button_places
from waypost.domain.templates.types import HeaderFormat, type_row
from waypost.domain.templates.variables import named_examples, variables

CODE: Final = "123456"
OFFER_LASTS_MS: Final = 24 * 60 * 60 * 1000
_PLACE: Final = ("latitude", "longitude", "name", "address")


@dataclass(frozen=True, slots=True)
class Ask:
    """One field of the form.

    Attributes:
        sample: what stands in it at first.
    """

    name: str
    label: str
    sample: str = ""
    hint: str = ""


def asks_of(draft: Draft, media: Mapping[str, str], now_ms: int) -> list[Ask]:
    """The fields that a send of this template takes, in the order of its parameters.

    Args:
        draft: the template's.
        media: of each sample that is an upload of the partner's, its media id.
        now_ms: by the service's clock: an offer ends a day later.
    """
    asks = _of_header(draft, media)
    for at, (label, sample) in enumerate(_parameters(draft)):
        asks.append(Ask(f"param-{at}", label[:1].upper() + label[1:], sample))
    if draft.is_lto and draft.has_expiration:
        ends = str(now_ms + OFFER_LASTS_MS)
        asks.append(Ask("expiration", "The offer ends", ends, "Milliseconds since 1970."))
    if any(one.kind is ButtonKind.MPM for one in draft.buttons):
        hint = "Their ids in the catalogue, with commas."
        asks.append(Ask("products", "Products", "", hint))
    for at, card in enumerate(draft.cards or ()):
        known = media.get(card.example_media or card.media_id or "", card.media_url or "")
        asks.append(Ask(f"card-{at}", f"Medium of card {at + 1}", known, "A media id or an address."))
    for at, button in enumerate(draft.buttons):
        if button.kind is ButtonKind.QUICK_REPLY:
            label = f"A tap on “{button.text}” calls back"
            asks.append(Ask(f"postback-{at}", label, "", "Your own text; empty: the label."))
    return asks


def fields_of_send(
    draft: Draft, template_id: str, source: str, app_name: str, destination: str, given: Mapping[str, str]
) -> dict[str, str]:
    """The form of `POST /partner/app/{app_id}/template/msg`."""
    params = [given.get(f"param-{at}", "") for at in range(len(_parameters(draft)))]
    template: dict[str, Any] = {"id": template_id, "params": params}
    if given.get("expiration"):
        template["expiration"] = given["expiration"]
    if products := [one.strip() for one in given.get("products", "").split(",") if one.strip()]:
        template["mpm"] = {"sections": [{"title": "Items", "products": products}]}
    fields = {
        "channel": "whatsapp",
        "source": source,
        "src.name": app_name,
        "destination": destination,
        "template": _json(template),
    }
    message = _message(draft, given)
    if message is not None:
        fields["message"] = _json(message)
    texts = [
        {"index": at, "text": given[f"postback-{at}"]}
        for at in range(len(draft.buttons))
        if given.get(f"postback-{at}")
    ]
    if texts:
        fields["postbackTexts"] = _json(texts)
    return fields


def _of_header(draft: Draft, media: Mapping[str, str]) -> list[Ask]:
    row = type_row(draft.template_type)
    if row.medium is not None:
        known = media.get(draft.example_media or draft.media_id or "", draft.media_url or "")
        hint = "A media id, or a public address; at first the sample."
        return [Ask("medium", f"The {row.medium.name}", known, hint)]
    if row.header is HeaderFormat.LOCATION:
        return [
            Ask("latitude", "Latitude", "52.5200"),
            Ask("longitude", "Longitude", "13.4050"),
            Ask("name", "Name of the place", "The shop"),
            Ask("address", "Its address", "Main Street 1"),
        ]
    return []


def _parameters(draft: Draft) -> list[tuple[str, str]]:
    """Label and sample of each parameter, in the order in which the API takes them (facts 9.2)."""
    found = _of_text("Header", draft.header, draft.example_header)
    found += _of_text("Body", draft.content, CODE if _is_code(draft) else draft.example)
    if _is_code(draft):
        return [("The code", CODE)]
    found += _of_buttons("", draft.buttons)
    for at, card in enumerate(draft.cards or ()):
        found += _of_text(f"Card {at + 1}", card.body, card.sample_text)
        found += _of_buttons(f"Card {at + 1}, ", card.buttons)
    return found


def _is_code(draft: Draft) -> bool:
    return any(one.kind is ButtonKind.OTP for one in draft.buttons)


def _of_text(where: str, text: str | None, example: str | None) -> list[tuple[str, str]]:
    names = list(dict.fromkeys(variables(text)))
    names.sort(key=lambda name: int(name) if name.isdecimal() and len(name) < 5 else 0)
    values = named_examples(text or "", example or "") or {}
    return [(f"{where}, {{{{{name}}}}}", values.get(name, "")) for name in names]


def _of_buttons(where: str, buttons: tuple[Button, ...]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for at in button_places(buttons):
        button = buttons[at]
        if button.kind is ButtonKind.COPY_CODE:
            found.append((f"{where}the offer's code", next(iter(button.example), "")))
            continue
        begins = button.url.partition("{{")[0]
        sample = next(iter(button.example), "").removeprefix(begins)
        found.append((f"{where}end of the address of “{button.text}”", sample))
    return found


def _message(draft: Draft, given: Mapping[str, str]) -> dict[str, Any] | None:
    """What the template shows beside its text; None where it shows nothing."""
    row = type_row(draft.template_type)
    if row.medium is not None and given.get("medium"):
        return {"type": row.medium.name, row.medium.name: _medium(given["medium"])}
    if row.header is HeaderFormat.LOCATION:
        return {"type": "location", "location": {name: given.get(name, "") for name in _PLACE}}
    if draft.cards:
        media = [_medium(given.get(f"card-{at}", "")) for at in range(len(draft.cards))]
        return {"type": "carousel", "cardHeaderType": draft.cards[0].header_type, "cards": media}
    return None


def _medium(given: str) -> dict[str, str]:
    is_address = given.lower().startswith(("http://", "https://"))
    return {"link": given} if is_address else {"id": given}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
