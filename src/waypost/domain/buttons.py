"""The kinds of template button: their fields, their codes, and how each reads in a record."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ButtonKind(StrEnum):
    """The `type` of a button. Source: spec, "Button shapes"."""

    QUICK_REPLY = "QUICK_REPLY"
    URL = "URL"
    PHONE_NUMBER = "PHONE_NUMBER"


@dataclass(frozen=True, slots=True)
class Button:
    """One button of a draft; a field that its kind does not have is empty.

    Attributes:
        url: may end in the variable `{{1}}`.
        example: the URL's sample values.
    """

    kind: ButtonKind
    text: str = ""
    url: str = ""
    phone_number: str = ""
    example: tuple[str, ...] = ()

    @property
    def has_variable(self) -> bool:
        """Whether sending it takes a parameter."""
        return "{{" in self.url


# fmt: off
CODES: Final = {  # Source: spec, "Template record", buttonSupported; facts 3.2
    ButtonKind.PHONE_NUMBER: "PN",
    ButtonKind.QUICK_REPLY:  "QR",
    ButtonKind.URL:          "URL",
}
FIELDS: Final = {  # what each kind must have; Source: spec, "Button shapes"
    ButtonKind.PHONE_NUMBER: ("text", "phone_number"),
    ButtonKind.QUICK_REPLY:  ("text",),
    ButtonKind.URL:          ("text", "url"),
}
# fmt: on


def button_supported(buttons: tuple[Button, ...]) -> str | None:
    """The codes of the kinds present, in alphabetical order, or None without buttons.

    Source: facts 3.2: the one long sample is alphabetical.
    """
    return ",".join(sorted({CODES[button.kind] for button in buttons})) or None


def shown(button: Button) -> str:
    """A button as it stands in `data`: `[text]`, or `[text,value]` for a URL or a number.

    Source: facts 3.2; clients split at `| [` and at commas (facts 17).
    """
    match button.kind:
        case ButtonKind.QUICK_REPLY:
            return f"[{button.text}]"
        case ButtonKind.URL:
            return f"[{button.text},{button.url}]"
        case ButtonKind.PHONE_NUMBER:
            return f"[{button.text},{button.phone_number}]"
