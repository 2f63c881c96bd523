"""A template draft as its recipient will see it, filled with its samples; variables without one stay."""

from collections.abc import Callable
from typing import Any, Final

from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.cards import Card
from waypost.domain.templates.extras import TEMPLATE_EXTRAS
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import COPY_OFFER_LABEL, product_header, render_body, render_footer
from waypost.domain.templates.template import Category, add_type_button, sample_reference
from waypost.domain.templates.types import HeaderFormat, type_row
from waypost.domain.templates.variables import named_examples, split_at_variables, variable_names

SampleFinder = Callable[[str], str]
"""Returns the path of a sample file by its handle id or media id; empty if there is none."""

CODE: Final = "123456"
_UNNAMED: Final = {ButtonKind.OTP: "Copy code", ButtonKind.COPY_CODE: COPY_OFFER_LABEL}


def draft_message(
    draft: TemplateDraft, *, media_url: str = "", find: SampleFinder | None = None, until_ms: int | None = None
) -> dict[str, Any]:
    """Return a draft as a message, in the format of the control API's messages.

    Missing parts of an unfinished draft are left out.

    Args:
        draft: a stored draft, or one in the editor.
        media_url: path of the header's sample; takes precedence over `find`.
        find: returns the path of a sample of the header or a card.
        until_ms: expiry of its offer; None: an offer that expires is shown without a time.
    """
    draft = add_type_button(draft)
    is_code = draft.category == Category.AUTHENTICATION
    shown: dict[str, Any] = {
        "type": "template",
        "template": {
            "name": draft.element_name or "",
            "language": draft.language_code,
            "category": draft.category or "",
        },
        "text": _fill_samples(render_body(draft), None, {"1": CODE})
        if is_code
        else _fill_samples(draft.content, draft.example),
    }
    header = None if is_code else _header(draft, media_url, find)
    if header is not None:
        shown["header"] = header
    footer = render_footer(draft)
    if footer:
        shown["footer"] = footer
    for extra in TEMPLATE_EXTRAS:
        shown |= extra.preview_members(draft, until_ms)
    if draft.is_call_permission_request:
        shown["buttons"] = [{"index": 0, "type": "CALL_PERMISSION", "text": "Choose preference"}]
    elif draft.buttons:
        shown["buttons"] = _buttons(draft.buttons)
    if type_row(draft.template_type).has_cards:
        shown["cards"] = [_card(place, card, find) for place, card in enumerate(draft.cards or ())]
    return shown


def _header(draft: TemplateDraft, media_url: str, find: SampleFinder | None) -> dict[str, Any] | None:
    match type_row(draft.template_type).header:
        case HeaderFormat.MEDIUM:
            return _medium(str(draft.template_type), draft, media_url, find)
        case HeaderFormat.LOCATION:
            location = {"name": "Location set when sending", "address": ""}
            return {"format": "LOCATION", "location": location}
        case HeaderFormat.FIRST_LINE:
            return {"format": "TEXT", "text": product_header(draft.content or "")}
        case HeaderFormat.TEXT | HeaderFormat.NONE:
            text = draft.header
            return {"format": "TEXT", "text": _fill_samples(text, draft.example_header)} if text else None


def _medium(kind: str, part: TemplateDraft | Card, media_url: str, find: SampleFinder | None) -> dict[str, Any]:
    sample = sample_reference(part)
    url = media_url or (find(sample) if find is not None and sample else "")
    medium = {"url": url} if url else {}
    if part.media_url and not url:
        medium["link"] = part.media_url
    return {"format": kind, kind.lower(): medium}


def _card(place: int, card: Card, find: SampleFinder | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "index": place,
        "header": _medium(card.header_type or "IMAGE", card, "", find),
        "text": _fill_samples(card.body, card.sample_text),
    }
    return shown | ({"buttons": _buttons(card.buttons)} if card.buttons else {})


def _buttons(buttons: tuple[TemplateButton, ...]) -> list[dict[str, Any]]:
    return [{"index": place, **_button(button)} for place, button in enumerate(buttons)]


def _button(button: TemplateButton) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": button.kind.value, "text": button.text or _UNNAMED.get(button.kind, "")}
    match button.kind:
        case ButtonKind.URL:
            shown["url"] = _url(button)
        case ButtonKind.PHONE_NUMBER:
            shown["phone_number"] = button.phone_number
        case ButtonKind.COPY_CODE:
            shown |= {"text": COPY_OFFER_LABEL, "code": next(iter(button.example), "")}
        case ButtonKind.OTP:
            shown |= {"otp_type": button.otp_type, "code": CODE}
            if button.autofill_text:
                shown["autofill_text"] = button.autofill_text
        case ButtonKind.FLOW:
            shown |= {"flow_id": button.flow_id, "screen": button.navigate_screen}
        case ButtonKind.QUICK_REPLY:
            shown["payload"] = button.text
        case ButtonKind.MPM | ButtonKind.CATALOG:
            pass
    return shown


def _url(button: TemplateButton) -> str:
    """Return the URL with its sample, which is a whole URL or the variable's value."""
    if not button.has_variable:
        return button.url
    sample = next(iter(button.example), button.suffix)
    if sample.startswith(("http://", "https://")):
        return sample
    before, *after = split_at_variables(button.url)
    return before + sample + "".join(after[:1])


def _fill_samples(text: str | None, example: str | None, values: dict[str, str] | None = None) -> str:
    """Return a text with its samples in place of its variables."""
    text = text or ""
    names = variable_names(text)
    if not names:
        return text
    if values is None:
        values = named_examples(text, example or "") if example else None
    if values is None and len(set(names)) == 1 and example:  # as the operator adapter sends it
        values = {names[0]: example}
    first, *texts = split_at_variables(text)
    filled = [first]
    for name, text_after in zip(names, texts, strict=True):
        filled += [(values or {}).get(name, "{{" + name + "}}"), text_after]
    return "".join(filled)
