"""Drafts of templates: read from forms, laid over stored ones, and buttons for templates of the library."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from waypost.domain.coercion import Flag, Text, coerce_text, read_flag, read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.templates.buttons import ButtonKind, Card, OtpType, SupportedApp, TemplateButton
from waypost.domain.templates.fields import (
    CHANGEABLE_FIELDS,
    DRAFT_ATTRIBUTES,
    TEMPLATE_FIELDS,
    FieldFormat,
    TemplateDraft,
)
from waypost.domain.templates.template import add_type_button
from waypost.domain.templates.types import canonical_language, type_row
from waypost.wire.forms import Form, read_json

MAX_BUTTONS_READ: Final = 20  # that are read; the rule table limits how many a template may have
MAX_CARDS_READ: Final = 20  # as MAX_BUTTONS_READ
COPY_CODE_LABEL: Final = "Copy code"
"""The default label of a button that copies the code. Source: operator's facts 2.2."""
_BUTTON_TYPES: Final = (
    "one of QUICK_REPLY, URL, PHONE_NUMBER, COPY_CODE, or OTP for AUTHENTICATION, FLOW for MARKETING, MPM for "
    "templateType PRODUCT, CATALOG for templateType CATALOG"
)
_CARD_BUTTON_TYPES: Final = "QUICK_REPLY, URL or PHONE_NUMBER"


class SentApp(msgspec.Struct):
    """An application of an OTP button."""

    package_name: Text | None = None
    signature_hash: Text | None = None


class SentButton(msgspec.Struct):
    """A button in the partner's format. Source: spec, "Button shapes"; facts 3.1, "Extra button shapes"."""

    type: str
    text: Text | None = None
    url: Text | None = None
    phone_number: Text | None = None
    example: list[Text | None] | Text | None = None
    button_value: Text | None = msgspec.field(default=None, name="buttonValue")
    suffix: Text | None = None
    payment_link_preview: Flag | None = msgspec.field(default=None, name="paymentLinkPreview")
    otp_type: Text | None = None
    otp_type_in_camel_case: Text | None = msgspec.field(default=None, name="otpType")
    autofill_text: Text | None = None
    package_name: Text | None = None
    signature_hash: Text | None = None
    supported_apps: list[SentApp] | None = None
    zero_tap_terms_accepted: Flag | None = None
    flow_id: Text | None = None
    flow_action: Text | None = None
    navigate_screen: Text | None = None
    icon: Text | None = None


class SentCard(msgspec.Struct, rename="camel"):
    """A card in the partner's format. Source: spec, "Card object (CAROUSEL)"; facts 3.1."""

    header_type: Text | None = None
    media_url: Text | None = None
    media_id: Text | None = None
    example_media: Text | None = None
    body: Text | None = None
    sample_text: Text | None = None
    buttons: list[SentButton] | None = None


_buttons: Final = msgspec.json.Decoder(list[SentButton])
_cards: Final = msgspec.json.Decoder(list[SentCard])
_objects: Final = msgspec.json.Decoder(list[msgspec.Raw])


def read_draft(form: Form) -> TemplateDraft:
    """Read a form. `check_draft` checks the rules.

    Raises:
        ApiError: a field cannot be read.
    """
    values: dict[str, Any] = {"cards": read_cards(form.text("cards"))}
    for field in TEMPLATE_FIELDS:
        if field.format is not FieldFormat.CARDS:
            values[field.attribute] = _READERS[field.format](form, field.name)
    return add_type_button(TemplateDraft(**values))


def read_buttons(text: str | None) -> tuple[TemplateButton, ...]:
    """Return the buttons in a JSON text; empty when there is none.

    Raises:
        ApiError: it is not JSON of this format, or has an unknown kind or far too many buttons.
    """
    json_text = _json_text(text)
    if json_text is None:
        return ()
    accepted = '[{"type":"QUICK_REPLY","text":"..."}]'
    sent = read_json(json_text, _buttons, name="buttons", accepted=accepted, has_texts=True)
    copies = _submitted_objects(json_text)
    buttons = zip(_read_buttons(sent, "buttons"), copies, strict=True)
    return tuple(replace(button, submitted=copy) for button, copy in buttons)


def read_cards(text: str | None) -> tuple[Card, ...] | None:
    """Return the cards in a JSON text; None when there is none.

    Raises:
        ApiError: as `read_buttons`.
    """
    json_text = _json_text(text)
    if json_text is None:
        return None
    accepted = '[{"headerType":"IMAGE","exampleMedia":"...","body":"...","buttons":[...]}]'
    cards = read_json(json_text, _cards, name="cards", accepted=accepted, has_texts=True)
    if len(cards) > MAX_CARDS_READ:
        raise ApiError(ErrorCode.FIELD_BROKEN, "cards must hold 1 to 10 cards.", field="cards")
    copies = _submitted_objects(json_text)
    return tuple(_read_card(index, card, copies[index]) for index, card in enumerate(cards))


def _read_whole(form: Form, name: str) -> int | None:
    """Return a whole number that may be written as 10, "10" or 10.0."""
    text = (form.text(name) or "").strip().strip('"')
    return None if text in ("", "null") else read_integer(text, name)


# fmt: off
_READERS: Final[dict[FieldFormat, Callable[[Form, str], Any]]] = {
    FieldFormat.TEXT:          lambda form, name: form.text(name),
    FieldFormat.OPTIONAL:      lambda form, name: form.text(name) or None,
    FieldFormat.UPPER:         lambda form, name: (form.text(name) or "").upper() or None,
    FieldFormat.LANGUAGE:      lambda form, name: canonical_language(form.text(name) or "en_US"),
    FieldFormat.FLAG:          lambda form, name: form.flag(name),
    FieldFormat.OPTIONAL_FLAG: lambda form, name: form.flag(name) if form.text(name) else None,
    FieldFormat.WHOLE:         _read_whole,
    FieldFormat.BUTTONS:       lambda form, name: read_buttons(form.text(name)),
}
# fmt: on


def _json_text(text: str | None) -> str | None:
    """Return the JSON text of a field; None where it is absent, empty or null."""
    return None if text is None or text.strip() in ("", "null") else text


def _submitted_objects(json_text: str) -> list[str]:
    """Return each object of a list as it was written, without spaces between its members."""
    return [msgspec.json.format(bytes(copy), indent=-1).decode() for copy in _objects.decode(json_text)]


def _read_card(index: int, card: SentCard, submitted: str) -> Card:
    return Card(
        header_type=coerce_text(card.header_type).upper(),
        media_url=coerce_text(card.media_url) or None,
        media_id=coerce_text(card.media_id) or None,
        example_media=coerce_text(card.example_media) or None,
        body=coerce_text(card.body) or None,
        sample_text=coerce_text(card.sample_text) or None,
        buttons=_read_buttons(card.buttons or [], f"cards[{index}].buttons"),
        submitted=submitted,
    )


def _read_buttons(buttons: list[SentButton], name: str) -> tuple[TemplateButton, ...]:
    if len(buttons) > MAX_BUTTONS_READ:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must hold at most {MAX_BUTTONS_READ} buttons.", field=name)
    return tuple(_read_button(f"{name}[{index}]", button) for index, button in enumerate(buttons))


def _read_button(name: str, button: SentButton) -> TemplateButton:
    try:
        kind = ButtonKind(button.type.strip().upper())
    except ValueError as error:
        raise invalid_field(
            f"{name}.type", _BUTTON_TYPES if name.startswith("buttons") else _CARD_BUTTON_TYPES
        ) from error
    suffix, value = coerce_text(button.suffix), coerce_text(button.button_value)
    url = coerce_text(button.url)
    if kind is ButtonKind.URL and not url and value:
        # Of a card: the URL without its variable, and a sample of the variable.
        url = value + ("{{1}}" if suffix and "{{" not in value else "")
    example = button.example if isinstance(button.example, list) else [button.example]
    examples = tuple(coerce_text(value) for value in example if value is not None)
    if not any(examples) and "{{" in url and suffix:
        examples = (suffix,)
    apps, is_flat = _read_apps(button)
    text = coerce_text(button.text)
    otp_type = (coerce_text(button.otp_type) or coerce_text(button.otp_type_in_camel_case)).upper()
    if kind is ButtonKind.OTP and otp_type == OtpType.COPY_CODE and not text:
        text = COPY_CODE_LABEL
    return TemplateButton(
        kind=kind,
        text=text,
        url=url,
        phone_number=coerce_text(button.phone_number),
        example=examples,
        button_value=value,
        suffix=suffix,
        payment_link_preview=_optional_flag(button.payment_link_preview, f"{name}.paymentLinkPreview"),
        otp_type=otp_type,
        autofill_text=coerce_text(button.autofill_text),
        supported_apps=apps,
        is_flat=is_flat,
        zero_tap_terms_accepted=_optional_flag(button.zero_tap_terms_accepted, f"{name}.zero_tap_terms_accepted"),
        flow_id=coerce_text(button.flow_id),
        flow_action=coerce_text(button.flow_action).upper(),
        navigate_screen=coerce_text(button.navigate_screen),
        icon=coerce_text(button.icon),
    )


def _read_apps(button: SentButton) -> tuple[tuple[SupportedApp, ...], bool]:
    """Return the applications of a button, and true if it has one in the spec's flat fields."""
    if button.supported_apps:
        return (
            tuple(
                SupportedApp(coerce_text(app.package_name), coerce_text(app.signature_hash))
                for app in button.supported_apps
            ),
            False,
        )
    if button.package_name is None and button.signature_hash is None:
        return (), False
    return (SupportedApp(coerce_text(button.package_name), coerce_text(button.signature_hash)),), True


def _optional_flag(value: Flag | None, name: str) -> bool | None:
    return None if value is None else read_flag(value, name)


_MEDIA: Final = ("header_type", "media_url", "media_id", "example_media")  # of a card
_SAMPLES: Final = ("exampleMedia", "mediaId", "mediaUrl")  # one of them replaces the others
_READER_FIELDS: Final = ("elementName", "languageCode", "vertical", "category", "templateType", "content")
"""Fields of the draft that the form reader may need."""


def apply_edit(before: TemplateDraft, form: Form) -> TemplateDraft:
    """Return the draft with the fields of the form; a field that was sent empty is removed.

    `check_draft` checks the rules.

    Args:
        form: of the edit; unchangeable fields are ignored, as unknown ones are.

    Raises:
        ApiError: a field cannot be read, or the media of a carousel would change.
    """
    names = [name for name in CHANGEABLE_FIELDS if form.text(name) is not None]
    submitted = read_draft(_fill_form(before, form))
    if any(form.text(name) for name in _SAMPLES):
        names += _SAMPLES
    changes: dict[str, Any] = {DRAFT_ATTRIBUTES[name]: getattr(submitted, DRAFT_ATTRIBUTES[name]) for name in names}
    after = replace(before, **changes)
    if any(type_row(draft.template_type).has_cards for draft in (before, after)):
        after = replace(after, cards=_edited_cards(before, after, form))
    return add_type_button(after)


def _fill_form(before: TemplateDraft, form: Form) -> Form:
    """Return the form with its changeable fields, and the fields of the draft that its reader needs."""
    pairs: list[tuple[str, str]] = []
    for name in dict.fromkeys((*CHANGEABLE_FIELDS, *_READER_FIELDS)):
        value = form.text(name) if name in CHANGEABLE_FIELDS else None
        if value is None and name in _READER_FIELDS:
            value = getattr(before, DRAFT_ATTRIBUTES[name])
        if value is not None:
            pairs.append((name, value))
    return Form(pairs)


def _edited_cards(before: TemplateDraft, after: TemplateDraft, form: Form) -> tuple[Card, ...]:
    """Return the edited cards of a carousel with their present media, which cannot be changed.

    Raises:
        ApiError: the media would change. Source: facts 3.6.
    """
    old_cards, new_cards = before.cards or (), after.cards or ()
    if before.template_type != after.template_type:
        raise _carousel_media_error("templateType", f"stay {before.template_type}")
    if len(old_cards) != len(new_cards) or any(form.text(name) for name in _SAMPLES):
        raise _carousel_media_error("cards", f"be {len(old_cards)}")
    cards: list[Card] = []
    for index, (old, new) in enumerate(zip(old_cards, new_cards, strict=True)):
        media = {name: getattr(old, name) for name in _MEDIA}
        if any(getattr(new, name) not in (None, "", value) for name, value in media.items()):
            raise _carousel_media_error(f"cards[{index}]", "keep its media")
        cards.append(replace(new, **media))
    return tuple(cards)


def _carousel_media_error(field: str, requirement: str) -> ApiError:
    explanation = f"{field} must {requirement}: the media of a carousel cannot be changed."
    return ApiError(ErrorCode.FIELD_BROKEN, explanation, field=field)


ACCEPTED: Final = '[{"type":"URL","url":{"base_url":"https://...","url_suffix_example":"https://..."}}]'


class LibraryButton(msgspec.Struct, omit_defaults=True):
    """The input for one button. Source: the operator's page "Template library"."""

    type: str
    url: dict[str, str] | None = None
    phone_number: str | None = None


_library_buttons: Final = msgspec.json.Decoder(list[LibraryButton])


def read_library_buttons(text: str | None) -> list[LibraryButton]:
    """Return the buttons in a JSON text; empty when there is none.

    Raises:
        ApiError: it is not JSON of this format.
    """
    if not text or not text.strip():
        return []
    return read_json(text, _library_buttons, name="buttons", accepted=ACCEPTED)
