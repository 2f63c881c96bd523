"""Template forms to drafts."""

from typing import Any, Final

import msgspec

from waypost.domain.buttons import Button, ButtonKind
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Draft
from waypost.wire.forms import Form, read_json

MOST_BUTTONS: Final = 20  # read; how many a template may have is a row of the rule table
_KINDS: Final = ", ".join(ButtonKind)


class _Button(msgspec.Struct):
    type: str
    text: str | None = None
    url: str | None = None
    phone_number: str | int | None = None
    example: list[str] | str | None = None


_buttons: Final = msgspec.json.Decoder(list[_Button])


def read_draft(form: Form) -> Draft:
    """Read a form; whether the draft keeps the rules is for `check_draft` to say.

    Raises:
        Refused: a field that cannot be read at all.
    """
    return Draft(
        element_name=form.text("elementName"),
        language_code=form.text("languageCode") or "en_US",
        category=form.text("category"),
        template_type=form.text("templateType"),
        vertical=form.text("vertical"),
        content=form.text("content"),
        example=form.text("example"),
        header=form.text("header") or None,
        example_header=form.text("exampleHeader") or None,
        footer=form.text("footer") or None,
        buttons=_read_buttons(form.text("buttons")),
        enable_sample=form.flag("enableSample"),
        allow_template_category_change=form.flag("allowTemplateCategoryChange"),
    )


def submitted_buttons(buttons: tuple[Button, ...]) -> list[dict[str, Any]]:
    """Buttons as a partner writes them, for the copy in `containerMeta`."""
    return [_submitted(button) for button in buttons]


def _read_buttons(text: str | None) -> tuple[Button, ...]:
    if not text or not text.strip():
        return ()
    accepted = '[{"type":"QUICK_REPLY","text":"..."}]'
    given = read_json(text, _buttons, name="buttons", accepted=accepted)
    if len(given) > MOST_BUTTONS:
        raise Refused(Reason.FIELD_BROKEN, "buttons must hold at most 10 buttons.")
    return tuple(_read_button(at, button) for at, button in enumerate(given))


def _read_button(at: int, given: _Button) -> Button:
    try:
        kind = ButtonKind(given.type.upper())
    except ValueError as error:
        raise Refused(
            Reason.FIELD_BROKEN, f"buttons[{at}].type must be one of {_KINDS} in this version."
        ) from error
    example = [given.example] if isinstance(given.example, str) else given.example or []
    return Button(
        kind=kind,
        text=given.text or "",
        url=given.url or "",
        phone_number=str(given.phone_number or ""),
        example=tuple(example),
    )


def _submitted(button: Button) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": button.kind.value, "text": button.text}
    if button.kind is ButtonKind.URL:
        shown["url"] = button.url
        if button.example:
            shown["example"] = list(button.example)
    if button.kind is ButtonKind.PHONE_NUMBER:
        shown["phone_number"] = button.phone_number
    return shown
