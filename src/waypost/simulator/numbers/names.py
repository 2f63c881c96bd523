"""Display names, official accounts and usernames of numbers: requests, rules, and the operator's decisions.

Source: the operator's pages "Display names", "Official business accounts" and "Business usernames".
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

from waypost.base.json_values import list_or_none
from waypost.simulator.apis.errors import bad_parameter, coded_error
from waypost.simulator.apis.parameters import check_id, must, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.state.accounts import NUMBERS, Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.records import NAMES, NUMBER_STATUS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

operation = GraphOperations()

_MIN_USERNAME_CHARS, _MAX_USERNAME_CHARS = 3, 35
_MAX_DISPLAY_NAME_CHARS: Final = 512
_MAX_LINKS: Final = 5
_IN_USE: Final = 147005
_USERNAME: Final = re.compile(r"[A-Za-z0-9._]+")
_DOMAINS: Final = (".com", ".org", ".net", ".edu", ".gov", ".mil", ".us", ".in", ".html")
_TRANSFER_ACTIONS: Final = ("none", "force_transfer")
_RULES: Final = (
    f"{_MIN_USERNAME_CHARS} to {_MAX_USERNAME_CHARS} letters, digits, periods and underscores, with a letter, without "
    "www at its start, a period at either end or two together, or the end of a domain"
)


check_display_name: Final = must(
    f"have 1 to {_MAX_DISPLAY_NAME_CHARS} characters",
    lambda value: isinstance(value, str) and 0 < len(value.strip()) <= _MAX_DISPLAY_NAME_CHARS,
)
"""Checks that a parameter is a name that a number may show."""


def _are_few_links(value: Any) -> bool:
    links = list_or_none(value)
    return links is not None and len(links) <= _MAX_LINKS


def _accept(_name: str, value: Any) -> Any:
    return value


class OfficialAccountParameters(Struct, frozen=True, omit_defaults=True):
    """The parameters of a request for an official account."""

    business_website_url: Annotated[str, check_id]
    primary_country_of_operation: Annotated[str, check_id]
    primary_language: Annotated[Any, _accept] = UNSET
    parent_business_or_brand: Annotated[Any, _accept] = UNSET
    additional_supporting_information: Annotated[Any, _accept] = UNSET
    supporting_links: Annotated[Any, must(f"be a list of at most {_MAX_LINKS} URLs", _are_few_links)] = UNSET


class UsernameParameters(Struct, frozen=True, kw_only=True):
    """A username to reserve."""

    transfer_action: Annotated[
        str, must(f"be one of {', '.join(_TRANSFER_ACTIONS)}", lambda value: value in _TRANSFER_ACTIONS)
    ] = "none"
    username: Annotated[str, must(f"have {_RULES}", lambda value: isinstance(value, str) and _is_username(value))]


def decide_display_name(transaction: Transaction, number: Number, *, is_approved: bool) -> str:
    """Approve the requested display name, which then replaces the current one, or decline it; return it."""
    number_id = number.phone_number_id
    name = str(transaction.record(number_id, NAMES).get("requested_name", number.name))
    if is_approved:
        transaction.save(NUMBERS, replace(number, name=name), number_id)
        transaction.change_record(number_id, NUMBER_STATUS, name_status="APPROVED")
    status = "APPROVED" if is_approved else "DECLINED"
    transaction.change_record(number_id, NAMES, requested_name=name, requested_status=status)
    return name


@operation("numbers.official_business_account", "POST", Number, "official_business_account")
def request_official_account(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Put a number up for review as an official business account; the response says that it was submitted."""
    request = asdict(read_parameters(OfficialAccountParameters, call.fields))
    status = transaction.record(number.phone_number_id, NAMES).get("oba_status")
    if status in ("PENDING", "IN_PROGRESS", "APPROVED"):
        raise bad_parameter("The business phone number has been requested or approved as an official account.")
    given = {name: value for name, value in request.items() if value is not UNSET}
    transaction.change_record(number.phone_number_id, NAMES, oba_status="PENDING", oba_request=given)
    return GRAPH_SUCCESS


def show_username(state: SimulatorState, _call: Call, number: Number) -> dict[str, Any]:
    """Return the number's username and its status; nothing if it has none."""
    record = state.record(number.phone_number_id, NAMES)
    return {"username": record["username"], "status": record["username_status"]} if "username" in record else {}


@operation("username.change", "POST", Number, "username")
def change_username(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Reserve a username for a number, or take it from another number of the business.

    Raises:
        GraphApiError: it breaks a rule; 147005, another number of the account has it; or it is not available.
    """
    new = read_parameters(UsernameParameters, call.fields)
    holder = _usernames(transaction.state, transaction.record).get(new.username.lower(), number)
    if holder.waba_id != number.waba_id:
        raise bad_parameter("The username is not available.")
    if holder.phone_number_id != number.phone_number_id:
        if new.transfer_action != "force_transfer":
            raise coded_error(_IN_USE, "The username is in use by another phone number of the business.")
        delete_username(transaction, call, holder)
    transaction.change_record(number.phone_number_id, NAMES, username=new.username, username_status="reserved")
    return {"status": "reserved"}


@operation("username.delete", "DELETE", Number, "username")
def delete_username(transaction: Transaction, _call: Call, number: Number) -> dict[str, Any]:
    """Delete the number's username; it may be used again."""
    record = transaction.record(number.phone_number_id, NAMES)
    kept = {name: value for name, value in record.items() if not name.startswith("username")}
    transaction.save_record(number.phone_number_id, NAMES, kept)
    return GRAPH_SUCCESS


def suggest_usernames(state: SimulatorState, _call: Call, number: Number) -> dict[str, Any]:
    """Return usernames made of the number's name that nobody has."""
    words = re.findall(r"[a-z0-9]+", number.name.lower())
    joined = ("".join(words), "_".join(words), ".".join(words), "_".join([*words, "official"]))
    used = _usernames(state, state.record)
    free = [name for name in dict.fromkeys(joined) if _is_username(name) and name not in used]
    return {"data": [{"username_suggestions": free}]}


def _usernames(state: SimulatorState, read_record: Callable[[str, str], dict[str, Any]]) -> dict[str, Number]:
    """Return the numbers that have a username, by it in lower case."""
    names = [
        (read_record(number.phone_number_id, NAMES).get("username"), number)
        for number in list(state.accounts.numbers.values())
    ]
    return {name.lower(): number for name, number in names if name}


def _is_username(name: str) -> bool:
    lower = name.lower()
    return (
        _MIN_USERNAME_CHARS <= len(name) <= _MAX_USERNAME_CHARS
        and _USERNAME.fullmatch(name) is not None
        and any(char.isalpha() for char in name)
        and not lower.startswith(("www", "."))
        and not lower.endswith((".", *_DOMAINS))
        and ".." not in name
    )
