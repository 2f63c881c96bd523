"""Template buttons: the kinds, their fields and their codes in a record; and the cards of a carousel."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """An application that may fill in a one-time code automatically."""

    package_name: str
    signature_hash: str


@dataclass(frozen=True, slots=True)
class TemplateButton:
    """One button of a draft; a field that its kind does not have is empty."""

    kind: ButtonKind
    text: str = ""
    url: str = ""  # may end in the variable `{{1}}`
    phone_number: str = ""
    example: tuple[str, ...] = ()  # sample values of the URL; of COPY_CODE the sample code
    button_value: str = ""  # of a card's URL button: the URL without its variable, as sent
    suffix: str = ""  # of a card's URL button: the sample of its variable, as sent
    payment_link_preview: bool | None = None
    otp_type: str = ""  # as sent, upper case; checked by the rule table
    autofill_text: str = ""
    supported_apps: tuple[SupportedApp, ...] = ()  # of ONE_TAP and ZERO_TAP; the spec's flat fields are one of them
    is_flat: bool = False  # true if the application was sent in the spec's flat fields; the record then shows those
    zero_tap_terms_accepted: bool | None = None
    flow_id: str = ""
    flow_action: str = ""  # as sent, upper case
    navigate_screen: str = ""
    icon: str = ""
    # the JSON object as sent, for the copy in the record; empty: it was not sent by a partner, or is part of a card.
    # Two buttons that differ only in it are equal.
    submitted: str = field(default="", compare=False)

    @property
    def has_variable(self) -> bool:
        """True if a send needs a parameter for its URL."""
        return "{{" in self.url


@dataclass(frozen=True, slots=True)
class ButtonKindRow:
    """A row of the table of button kinds."""

    code: str  # in a record's `buttonSupported`
    required: tuple[str, ...]  # its required fields
    editor_fields: tuple[str, ...]  # the fields with an input in the editor, which the form has under the same names
    initial: Mapping[str, str] = field(default_factory=dict[str, str])  # values of a new button in the editor


BUTTON_KINDS: Final = {  # Source: spec, "Button shapes" and "Template record", buttonSupported; facts 3.1, 3.2
    # code, required, editor fields
    ButtonKind.CATALOG: ButtonKindRow("CLG", (), ("text",)),  # the service sets its text
    ButtonKind.COPY_CODE: ButtonKindRow("CC", ("example",), ("text", "example"), {"text": "Copy offer code"}),
    ButtonKind.FLOW: ButtonKindRow(
        "FLOW",
        required=("text", "flow_id"),
        editor_fields=("text", "flow_id", "flow_action", "navigate_screen", "icon"),
        initial={"flow_action": "NAVIGATE"},
    ),
    ButtonKind.MPM: ButtonKindRow("MPM", (), ("text",)),  # as for CATALOG
    ButtonKind.OTP: ButtonKindRow(
        "OTP",
        required=("otp_type", "text"),
        editor_fields=("otp_type", "text", "autofill_text"),
        initial={"otp_type": OtpType.COPY_CODE.value, "text": "Copy code"},
    ),
    ButtonKind.PHONE_NUMBER: ButtonKindRow("PN", ("text", "phone_number"), ("text", "phone_number")),
    ButtonKind.QUICK_REPLY: ButtonKindRow("QR", ("text",), ("text",)),
    ButtonKind.URL: ButtonKindRow("URL", ("text", "url"), ("text", "url")),
}

VIEW_ITEMS_BUTTON: Final = TemplateButton(ButtonKind.MPM, "View items")
VIEW_CATALOG_BUTTON: Final = TemplateButton(ButtonKind.CATALOG, "View catalog")
"""The buttons that the service adds to PRODUCT and CATALOG templates. Source: spec, "Rules by type", 5; facts 3.1."""


def button_codes(buttons: tuple[TemplateButton, ...]) -> str | None:
    """Return the codes of the kinds present, in alphabetical order; None without buttons.

    Source: facts 3.2: the one long sample is alphabetical.
    """
    return ",".join(sorted({BUTTON_KINDS[button.kind].code for button in buttons})) or None


@dataclass(frozen=True, slots=True)
class Card:
    """One card as submitted. Absent texts are None.

    Source: spec, "Card object (CAROUSEL)"; facts 3.1, `cards`.
    """

    header_type: str = ""  # as sent, upper case: IMAGE or VIDEO; checked by the rule table
    media_url: str | None = None  # of its sample; vetted, and fetched at creation
    media_id: str | None = None  # of an upload for sending
    example_media: str | None = None  # a handle id
    body: str | None = None
    sample_text: str | None = None
    buttons: tuple[TemplateButton, ...] = ()
    submitted: str = field(default="", compare=False)  # the JSON object as sent, as of a button
