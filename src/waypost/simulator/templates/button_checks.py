"""Checks of a template's buttons at submission: a table of kinds, and the combinations of kinds that are allowed."""

import itertools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from waypost.base.json_values import objects_in, text_or_none, texts_in
from waypost.simulator.errors import GraphRefused, template_refused
from waypost.simulator.templates.texts import variables, without_variables

_AT_MOST: Final = 10  # Source: facts 2.3, "Buttons total"
_LABEL_AT_MOST: Final = 25  # Source: facts 2.3, "Button label"


@dataclass(frozen=True)
class ButtonKind:
    """One row: how many buttons of a kind a template may have, and the check of one button."""

    at_most: int
    stands_alone: bool
    needs_label: bool
    complaint: Callable[[dict[str, Any]], str | None]


def check_buttons(component: dict[str, Any] | None) -> None:
    """Check the buttons against the table.

    Raises:
        GraphApiError: code 100, without a subcode: the operator documents none for buttons.

    Source: facts 2.3.
    """
    if component is None:
        return
    buttons = objects_in(component.get("buttons"))
    if not 1 <= len(buttons) <= _AT_MOST:
        raise _refused(f"A BUTTONS component has 1 to {_AT_MOST} buttons.")
    for index, button in enumerate(buttons):
        _check_button(index, button)
    counts = Counter(button["type"] for button in buttons)
    for kind, count in counts.items():
        if count > KINDS[kind].at_most:
            raise _refused(f"There can be at most {KINDS[kind].at_most} buttons of type {kind}.")
        if KINDS[kind].stands_alone and len(buttons) > 1:
            raise _refused(f"A button of type {kind} stands alone.")
    is_reply = [button["type"] == "QUICK_REPLY" for button in buttons]
    if sum(1 for is_reply_run, _ in itertools.groupby(is_reply) if is_reply_run) > 1 or (
        sum(1 for is_reply_run, _ in itertools.groupby(is_reply) if not is_reply_run) > 1
    ):
        raise _refused("Invalid combination of buttons: quick replies stand next to each other.")


def _check_button(place: int, button: dict[str, Any]) -> None:
    kind = KINDS.get(button["type"])
    if kind is None:
        raise _refused(f"Button {place}: the type is one of {', '.join(KINDS)}.")
    label = text_or_none(button.get("text"))
    if kind.needs_label and not (label and label.strip()):
        raise _refused(f"Button {place}: a text is required.")
    if label and len(label) > _LABEL_AT_MOST:
        raise _refused(f"Button {place}: the text has at most {_LABEL_AT_MOST} characters.")
    if label and variables(label):
        raise _refused(f"Button {place}: the text can't have variables.")
    violation = kind.complaint(button)
    if violation:
        raise _refused(f"Button {place}: {violation}")


def _refused(message: str) -> GraphRefused:
    return template_refused(None, message, "Message template buttons are incorrect")


def _fine(_button: dict[str, Any]) -> str | None:
    return None


def _url(button: dict[str, Any]) -> str | None:
    url = text_or_none(button.get("url")) or ""
    if not url or len(url) > 2000:
        return "the url has 1 to 2000 characters."
    plain_url = without_variables(url).strip()
    try:
        parts = urlsplit(plain_url)
    except ValueError:
        return "the url is a valid address."
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in plain_url:
        return "the url is a valid address with http or https."
    names = variables(url)
    if not names:
        return None
    if len(names) > 1 or not url.endswith("}}") or url.count("{{") > 1:
        return "the url can have one variable, at its very end."
    example = button.get("example")
    if not (texts_in(example) or (isinstance(example, str) and example)):
        return "a url with a variable needs an example."
    return None


def _phone_number(button: dict[str, Any]) -> str | None:
    number = text_or_none(button.get("phone_number")) or ""
    if not re.fullmatch(r"\+?[0-9 ()-]{1,20}", number) or len(number) > 20:
        return "the phone_number has 1 to 20 characters."
    return None


def _copy_code(button: dict[str, Any]) -> str | None:
    example = button.get("example")
    code = example if isinstance(example, str) else next(iter(texts_in(example)), "")
    return None if 1 <= len(code) <= 20 else "the example has 1 to 20 characters."


# fmt: off
KINDS: Final = {  # Source: facts 2.3
    #                                 max      alone  label  violation
    "QUICK_REPLY":          ButtonKind(10,     False, True,  _fine),
    "URL":                  ButtonKind(2,      False, True,  _url),
    "PHONE_NUMBER":         ButtonKind(1,      False, True,  _phone_number),
    "COPY_CODE":            ButtonKind(1,      False, False, _copy_code),
    "OTP":                  ButtonKind(1,      True,  False, _fine),
    "FLOW":                 ButtonKind(1,      False, True,  _fine),
    "CATALOG":              ButtonKind(1,      True,  True,  _fine),
    "MPM":                  ButtonKind(1,      True,  True,  _fine),
    "SPM":                  ButtonKind(1,      True,  True,  _fine),
    "VOICE_CALL":           ButtonKind(1,      False, True,  _fine),
    "REQUEST_CONTACT_INFO": ButtonKind(1,      False, True,  _fine),
}
# fmt: on
