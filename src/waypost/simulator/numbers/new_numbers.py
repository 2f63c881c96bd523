"""Adding a number to an account: not verified and not registered, as the operator adds it.

Source: the operator's page "Registering phone numbers".
"""

import re
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.base.json_values import text_or_none
from waypost.base.object_ids import make_id
from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.parameters import is_missing, read_parameters
from waypost.simulator.apis.requests import Call
from waypost.simulator.numbers.model import NEVER_REGISTERED
from waypost.simulator.numbers.names import check_display_name
from waypost.simulator.state.accounts import NUMBERS, Account, Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.records import REGISTRATION, SENDING_RESTRICTION
from waypost.simulator.state.simulator_state import Transaction

operation = GraphOperations()

THROUGHPUT: Final = 80  # messages a second
_E164_DIGITS: Final = re.compile(r"[1-9][0-9]{7,14}")
_SEPARATORS: Final = re.compile(r"[ ().\-]+")


class NewNumberParameters(Struct, frozen=True):
    """The name of a new number."""

    verified_name: Annotated[str, check_display_name]


@operation("numbers.create", "POST", Account, "phone_numbers")
def create_number(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Add a number that sends nothing until it is verified by a code and registered; return its id."""
    fields = call.fields
    name = read_parameters(NewNumberParameters, fields).verified_name
    digits = join_number(fields.get("country_code", fields.get("cc")), fields.get("phone_number"))
    if transaction.find_by_member(NUMBERS, "phone_number", digits):
        raise bad_parameter("Param phone_number: the number is registered with a WhatsApp Business account already.")
    number_id = make_id(transaction.state.ids, "number")
    transaction.save(NUMBERS, Number(number_id, account.waba_id, digits, name, THROUGHPUT), number_id)
    transaction.save_record(number_id, REGISTRATION, {"needs_code": True})
    transaction.save_record(number_id, SENDING_RESTRICTION, NEVER_REGISTERED)
    return {"id": number_id}


def join_number(country_code: object, phone_number: object) -> str:
    """Return the digits of a number that is given with or without its country code.

    Raises:
        GraphApiError: 100, a part is missing, no country has the code, or its numbers are longer or shorter.
    """
    # Imported on first use: the tables of the world's numbering plans are large.
    import phonenumbers

    code = _text_of("country_code", country_code).removeprefix("+")
    if not code.isascii() or not code.isdigit() or int(code[:4]) not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        raise bad_parameter("Param country_code must be a country calling code, as 1 or 91.")
    national = _SEPARATORS.sub("", _text_of("phone_number", phone_number))
    readings = [national[1:]] if national.startswith("+") else [national, f"{code}{national}"]
    possible = [digits for digits in readings if digits.startswith(code) and _is_possible(digits)]
    if not possible:
        raise bad_parameter("Param phone_number must be a number of the country, with or without its country code.")
    return next((digits for digits in possible if _is_assigned(digits)), possible[-1])


def read_number(_name: str, value: Any) -> str:
    """Return the digits of a number that is given with its country code, as `join_number` does."""
    import phonenumbers

    text = "+" + _text_of("phone_number", value).lstrip("+")
    try:
        code = phonenumbers.parse(text).country_code
    except phonenumbers.NumberParseException as error:
        raise bad_parameter("Param phone_number must be a number with its country code.") from error
    return join_number(str(code), text)


def _text_of(name: str, value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else text_or_none(value)
    if not text:
        raise is_missing(name)
    return text


def _is_assigned(digits: str) -> bool:
    """True if a possible number belongs to a range that its country has assigned."""
    import phonenumbers

    return phonenumbers.is_valid_number(phonenumbers.parse("+" + digits))


def _is_possible(digits: str) -> bool:
    import phonenumbers

    if not _E164_DIGITS.fullmatch(digits):
        return False
    try:
        parsed = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return False
    # The tables drop a national prefix that stands after the country code, as in 1 1 555 000 4444.
    is_international = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164) == "+" + digits
    return is_international and phonenumbers.is_possible_number(parsed)
