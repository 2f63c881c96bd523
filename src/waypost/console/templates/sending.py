"""Sending a template from its page: the inputs of the form, and the partner API's form made from them."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from waypost.console.requests import compact_json
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import parameter_button_indexes
from waypost.domain.templates.types import HeaderFormat, type_row
from waypost.domain.templates.variables import named_examples, parameter_names

SAMPLE_CODE: Final = "123456"
OFFER_DURATION_MS: Final = 24 * 60 * 60 * 1000
_LOCATION_FIELDS: Final = ("latitude", "longitude", "name", "address")


class SendInput(NamedTuple):
    """One input of the form, with its initial value."""

    name: str
    label: str
    sample: str = ""
    hint: str = ""


def send_inputs(draft: TemplateDraft, media: Mapping[str, str], now_ms: int) -> list[SendInput]:
    """Return the inputs for sending this template, in the order of its parameters.

    Args:
        draft: of the template.
        media: media id of each sample that is an upload of the partner, by reference.
        now_ms: by the service's clock; an offer ends a day later.
    """
    inputs = _header_inputs(draft, media)
    for index, (label, sample) in enumerate(_parameters(draft)):
        inputs.append(SendInput(f"param-{index}", label[:1].upper() + label[1:], sample))
    if draft.is_lto and draft.has_expiration:
        ends = str(now_ms + OFFER_DURATION_MS)
        inputs.append(SendInput("expiration", "Offer ends", ends, "Milliseconds since 1970."))
    if any(button.kind is ButtonKind.MPM for button in draft.buttons):
        inputs.append(SendInput("products", "Products", "", "Product IDs of the catalogue, separated by commas."))
    for index, card in enumerate(draft.cards or ()):
        sample = media.get(card.example_media or card.media_id or "", card.media_url or "")
        inputs.append(SendInput(f"card-{index}", f"Media of card {index + 1}", sample, "A media ID or URL."))
    for index, button in enumerate(draft.buttons):
        if button.kind is ButtonKind.QUICK_REPLY:
            hint = "Sent as postbackText in the callback of a tap. Empty: the callback has none."
            inputs.append(SendInput(f"postback-{index}", f"Postback text of “{button.text}”", "", hint))
    return inputs


def encode_send(
    draft: TemplateDraft, template_id: str, source: str, app_name: str, destination: str, values: Mapping[str, str]
) -> dict[str, str]:
    """Return the form of `POST /partner/app/{app_id}/template/msg`."""
    params = [values.get(f"param-{index}", "") for index in range(len(_parameters(draft)))]
    template: dict[str, Any] = {"id": template_id, "params": params}
    if values.get("expiration"):
        template["expiration"] = values["expiration"]
    if products := [product.strip() for product in values.get("products", "").split(",") if product.strip()]:
        template["mpm"] = {"sections": [{"title": "Items", "products": products}]}
    fields = {
        "channel": "whatsapp",
        "source": source,
        "src.name": app_name,
        "destination": destination,
        "template": compact_json(template),
    }
    message = _message_content(draft, values)
    if message is not None:
        fields["message"] = compact_json(message)
    texts = [
        {"index": index, "text": values[f"postback-{index}"]}
        for index in range(len(draft.buttons))
        if values.get(f"postback-{index}")
    ]
    if texts:
        fields["postbackTexts"] = compact_json(texts)
    return fields


def _header_inputs(draft: TemplateDraft, media: Mapping[str, str]) -> list[SendInput]:
    row = type_row(draft.template_type)
    if row.medium is not None:
        sample = media.get(draft.example_media or draft.media_id or "", draft.media_url or "")
        hint = "A media ID or public URL; the sample by default."
        return [SendInput("medium", "GIF" if row.medium.name == "gif" else row.medium.name.capitalize(), sample, hint)]
    if row.header is HeaderFormat.LOCATION:
        return [
            SendInput("latitude", "Latitude", "52.5200"),
            SendInput("longitude", "Longitude", "13.4050"),
            SendInput("name", "Location name", "The shop"),
            SendInput("address", "Location address", "Main Street 1"),
        ]
    return []


def _parameters(draft: TemplateDraft) -> list[tuple[str, str]]:
    """Return label and sample of each parameter, in the order of the API (facts 9.2)."""
    parameters = _text_parameters("Header", draft.header, draft.example_header)
    parameters += _text_parameters("Body", draft.content, SAMPLE_CODE if _is_code(draft) else draft.example)
    if _is_code(draft):
        return [("Code", SAMPLE_CODE)]
    parameters += _button_parameters("", draft.buttons)
    for index, card in enumerate(draft.cards or ()):
        parameters += _text_parameters(f"Card {index + 1}", card.body, card.sample_text)
        parameters += _button_parameters(f"Card {index + 1}, ", card.buttons)
    return parameters


def _is_code(draft: TemplateDraft) -> bool:
    return any(button.kind is ButtonKind.OTP for button in draft.buttons)


def _text_parameters(label_prefix: str, text: str | None, example: str | None) -> list[tuple[str, str]]:
    values = named_examples(text or "", example or "") or {}
    return [(f"{label_prefix}, {{{{{name}}}}}", values.get(name, "")) for name in parameter_names(text)]


def _button_parameters(label_prefix: str, buttons: tuple[TemplateButton, ...]) -> list[tuple[str, str]]:
    parameters: list[tuple[str, str]] = []
    for index in parameter_button_indexes(buttons):
        button = buttons[index]
        if button.kind is ButtonKind.COPY_CODE:
            parameters.append((f"{label_prefix}offer code", next(iter(button.example), "")))
            continue
        prefix = button.url.partition("{{")[0]
        sample = next(iter(button.example), "").removeprefix(prefix)
        parameters.append((f"{label_prefix}URL suffix of “{button.text}”", sample))
    return parameters


def _message_content(draft: TemplateDraft, values: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the media, location or cards of the message; None if the template has none."""
    row = type_row(draft.template_type)
    if row.medium is not None and values.get("medium"):
        return {"type": row.medium.name, row.medium.name: _media_reference(values["medium"])}
    if row.header is HeaderFormat.LOCATION:
        return {"type": "location", "location": {name: values.get(name, "") for name in _LOCATION_FIELDS}}
    if draft.cards:
        media = [_media_reference(values.get(f"card-{index}", "")) for index in range(len(draft.cards))]
        return {"type": "carousel", "cardHeaderType": draft.cards[0].header_type, "cards": media}
    return None


def _media_reference(reference: str) -> dict[str, str]:
    is_url = reference.lower().startswith(("http://", "https://"))
    return {"link": reference} if is_url else {"id": reference}
