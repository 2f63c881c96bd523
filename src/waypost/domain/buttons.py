"""The kinds of template button: their fields, their codes, and how each reads in a record."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class ButtonKind(StrEnum):
    """The `type` of a button. Source: spec, "Button shapes"; facts 3.1, "Extra button shapes"."""

    QUICK_REPLY = "QUICK_REPLY"
    URL = "URL"
    PHONE_NUMBER = "PHONE_NUMBER"
    COPY_CODE = "COPY_CODE"
    OTP = "OTP"
    FLOW = "FLOW"
    MPM = "MPM"
    CATALOG = "CATALOG"


class OtpType(StrEnum):
    """The `otp_type` of an OTP button. Source: spec, "Button shapes"; facts 3.1."""

    COPY_CODE = "COPY_CODE"
    ONE_TAP = "ONE_TAP"
    ZERO_TAP = "ZERO_TAP"


@dataclass(frozen=True, slots=True)
class SupportedApp:
    """An application that may fill a one-time code in by itself."""

    package_name: str
    signature_hash: str


@dataclass(frozen=True, slots=True)
class Button:
    """One button of a draft; a field that its kind does not have is empty.

    Attributes:
        url: may end in the variable `{{1}}`.
        example: the URL's sample values; of COPY_CODE one, the sample code.
        button_value: of a card's URL button, the URL without its variable, as sent.
        suffix: of a card's URL button, the sample of its variable, as sent.
        otp_type: as sent, upper case; checked by the rule table.
        supported_apps: of ONE_TAP and ZERO_TAP; the flat fields of the spec are one of them.
        is_flat: whether the one application came in the spec's flat fields, so that the record shows them so.
        flow_action: as sent, upper case.
    """

    kind: ButtonKind
    text: str = ""
    url: str = ""
    phone_number: str = ""
    example: tuple[str, ...] = ()
    button_value: str = ""
    suffix: str = ""
    payment_link_preview: bool | None = None
    otp_type: str = ""
    autofill_text: str = ""
    supported_apps: tuple[SupportedApp, ...] = ()
    is_flat: bool = False
    zero_tap_terms_accepted: bool | None = None
    flow_id: str = ""
    flow_action: str = ""
    navigate_screen: str = ""
    icon: str = ""

    @property
    def has_variable(self) -> bool:
        """Whether sending it takes a parameter for its URL."""
        return "{{" in self.url


# fmt: off
CODES: Final = {  # Source: spec, "Template record", buttonSupported; facts 3.2
    ButtonKind.CATALOG:      "CLG",
    ButtonKind.COPY_CODE:    "CC",
    ButtonKind.FLOW:         "FLOW",
    ButtonKind.MPM:          "MPM",
    ButtonKind.OTP:          "OTP",
    ButtonKind.PHONE_NUMBER: "PN",
    ButtonKind.QUICK_REPLY:  "QR",
    ButtonKind.URL:          "URL",
}
FIELDS: Final = {  # what each kind must have; Source: spec, "Button shapes"; facts 3.1
    ButtonKind.CATALOG:      (),  # the service gives it its text
    ButtonKind.COPY_CODE:    ("example",),
    ButtonKind.FLOW:         ("text", "flow_id"),
    ButtonKind.MPM:          (),  # likewise
    ButtonKind.OTP:          ("otp_type", "text"),
    ButtonKind.PHONE_NUMBER: ("text", "phone_number"),
    ButtonKind.QUICK_REPLY:  ("text",),
    ButtonKind.URL:          ("text", "url"),
}
# fmt: on

VIEW_ITEMS: Final = Button(ButtonKind.MPM, "View items")
VIEW_CATALOG: Final = Button(ButtonKind.CATALOG, "View catalog")
"""What the service adds to PRODUCT and CATALOG templates. Source: spec, "Rules by type", 5; facts 3.1."""


def button_supported(buttons: tuple[Button, ...]) -> str | None:
    """The codes of the kinds present, in alphabetical order, or None without buttons.

    Source: facts 3.2: the one long sample is alphabetical.
    """
    return ",".join(sorted({CODES[button.kind] for button in buttons})) or None
