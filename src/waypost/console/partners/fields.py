"""The form of a new partner: a table of its fields, suggested values, and the checks that need no API."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.console.page_tools import PageTools

_FIRST_NUMBER: Final = 15_550_001_001
"""First suggested number; area code 555 is not assigned, and the demonstration's own number is the one before."""


@dataclass(frozen=True, slots=True)
class PartnerField:
    """One field of the form.

    Args:
        name: of the form field.
        required_text: error text if it is empty; empty: it is optional.
        attributes: of the input element.
    """

    name: str
    label: str
    hint: str
    required_text: str
    attributes: Mapping[str, str | int]


_PLAIN: Final = {"autocomplete": "off", "maxlength": 150}
_ID: Final = {"autocomplete": "off", "maxlength": 64, "inputmode": "numeric", "spellcheck": "false"}

_PARTNER_FIELDS: Final = (  # Source: admin/setup/document.py
    # name, label, hint, error if it is empty
    PartnerField(
        "name",
        label="Partner",
        hint="The company or team. Others do not see it.",
        required_text="Enter a name for the partner.",
        attributes=_PLAIN,
    ),
    PartnerField(
        "email",
        label="E-mail address",
        hint="Its login. No other partner may have it.",
        required_text="Enter an e-mail address.",
        attributes={"autocomplete": "off", "maxlength": 254, "inputmode": "email"},
    ),
)
_PASSWORD: Final = PartnerField(
    "password",
    label="Password",
    hint="For the console and the partner API. Empty: one is generated, and shown once.",
    required_text="",
    attributes={"autocomplete": "new-password", "maxlength": 256},
)
_APP_FIELDS: Final = (
    PartnerField(
        "app_name",
        label="App",
        hint="It has one number, with its templates, messages and callbacks.",
        required_text="Enter a name for the app.",
        attributes=_PLAIN,
    ),
    PartnerField(
        "phone_number",
        label="Number",
        hint="With country code, 8 to 15 digits.",
        required_text="Enter the number of the app.",
        attributes={"autocomplete": "off", "maxlength": 24, "inputmode": "tel"},
    ),
)
_KEY_FIELDS: Final = (
    PartnerField(
        "key_name",
        label="Name of the API key",
        hint="The key itself is generated, and shown once.",
        required_text="Enter a name for the key, such as where it is used.",
        attributes={"autocomplete": "off", "maxlength": 100},
    ),
)
SIMULATOR_FIELDS: Final = (*_PARTNER_FIELDS, _PASSWORD, *_APP_FIELDS, *_KEY_FIELDS)
"""Fields of a partner at the simulator, where the number and the accounts are created with it."""
OPERATOR_FIELDS: Final = (
    *_PARTNER_FIELDS,
    _PASSWORD,
    *_APP_FIELDS,
    PartnerField(
        "phone_number_id",
        label="Number ID",
        hint="ID of that number at the operator.",
        required_text="Enter the ID of the number at the operator.",
        attributes=_ID,
    ),
    PartnerField(
        "business_account_id",
        label="Business account",
        hint="ID of the account with the number at the operator.",
        required_text="Enter the ID of the business account.",
        attributes=_ID,
    ),
    *_KEY_FIELDS,
)
"""Fields of a partner whose number exists at an operator."""


def is_at_simulator(tools: PageTools) -> bool:
    """True if new partners get their number and accounts at the service's simulator."""
    return tools.services.apis.control is not None and tools.services.simulator_url is not None


def partner_fields(tools: PageTools) -> tuple[PartnerField, ...]:
    """Return the fields of the form."""
    return SIMULATOR_FIELDS if is_at_simulator(tools) else OPERATOR_FIELDS


def suggest_values(partners: Collection[dict[str, Any]], apps: Collection[dict[str, Any]]) -> dict[str, str]:
    """Return values with which the form can be sent as it is, for a partner at the simulator."""
    emails = {partner["email"] for partner in partners}
    numbers = {app["phone_number"] for app in apps}
    ordinal = next(n for n in range(2, len(emails) + 3) if f"shop{n}@waypost.test" not in emails)
    number = next(n for n in range(_FIRST_NUMBER, _FIRST_NUMBER + len(numbers) + 1) if str(n) not in numbers)
    return {
        "name": f"Shop {ordinal}",
        "email": f"shop{ordinal}@waypost.test",
        "app_name": f"Shop{ordinal}App",
        "phone_number": str(number),
        "key_name": "default",
    }


def find_errors(fields: Collection[PartnerField], values: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of the values by field; empty if there are none."""
    return {
        field.name: field.required_text for field in fields if field.required_text and not values.get(field.name, "")
    }
