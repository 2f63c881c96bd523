"""Signups in the app: links with which a user consents to messages. Source: the operator's page "In-app signup"."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import asdict, replace

from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import object_of
from waypost.base.object_ids import make_id
from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.parameters import ParameterCheck, is_missing, must, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.state.accounts import Account
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import page
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

operation = GraphOperations()

_PROMO_CODE_VARIABLE: Final = "{{promo_code}}"
_MAX_URL_CHARS: Final = 2000


def _rule(is_valid: Callable[[str], bool], accepted: str) -> ParameterCheck:
    return must(f"be {accepted}", lambda value: isinstance(value, str) and is_valid(value))


def _is_url(*schemes: str) -> Callable[[str], bool]:
    return lambda text: len(text) <= _MAX_URL_CHARS and is_web_url(text) and text.lower().startswith(schemes)


def _is_promo_code(text: str) -> bool:
    return len(text) <= 50 and text.isascii() and text.isalnum()


def _text(max_chars: int) -> ParameterCheck:
    return _rule(lambda text: bool(text.strip()) and len(text) <= max_chars, f"1 to {max_chars} characters")


class SignupChangeParameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """The members of a signup that may be changed; an empty text stands for one that it does not have."""

    signup_message: Annotated[str, _text(300)] = ""
    confirmation_message: Annotated[str, _text(300)] = ""
    privacy_policy_url: Annotated[
        str, _rule(_is_url("http://", "https://"), "a URL that begins with http:// or https://")
    ] = ""
    website_url: Annotated[str, _rule(_is_url("https://"), "a URL that begins with https://")] = ""
    promo_code: Annotated[str, _rule(_is_promo_code, "1 to 50 letters and digits")] = ""
    display_name: Annotated[str, _text(256)] = ""
    status: Annotated[str, _rule(lambda text: text in ("ACTIVE", "DISABLED"), "ACTIVE or DISABLED")] = ""


class Signup(msgspec.Struct, frozen=True):
    """A signup of an account."""

    signup_id: str
    waba_id: str
    signup_message: str
    confirmation_message: str
    privacy_policy_url: str
    website_url: str = ""
    promo_code: str = ""
    display_name: str = ""
    status: str = "ACTIVE"

    def node(self) -> dict[str, str]:
        """Return the members as the operator shows them; those without a value are omitted."""
        members = {name: value for name, value in asdict(self).items() if value}
        return {"id": members.pop("signup_id"), **members}


SIGNUPS: Final = StoredKind("signup", Signup)


@operation("signups.create", "POST", Account, "signups")
def create_signup(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Create an active signup, and return its id; the owner of an account accepts the terms with its first."""
    for name in ("signup_message", "confirmation_message", "privacy_policy_url"):
        if call.fields.get(name) is None:
            raise is_missing(name)
    members = _read_members({name: value for name, value in call.fields.items() if name != "status"})
    signup = Signup(make_id(transaction.state.ids, "signup"), account.waba_id, **members)
    if not _read_policy(call.fields.get("policy")) and not _account_signups(transaction, account):
        raise bad_parameter("The parameter policy is required for the first signup: {tos, accepted: true}.")
    _check_promo_code(signup)
    transaction.save(SIGNUPS, signup, signup.signup_id)
    return {"id": signup.signup_id}


@operation("signups.list", "GET", Account, "signups")
async def list_signups(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's signups with all members.

    `fields` selects nothing: the public client requests `message`, and reads `signup_message`.
    """
    return page(call, _account_signups(state, account), lambda signup: signup.signup_id, Signup.node)


@operation("signups.read", "GET", Signup)
async def show_signup(_state: SimulatorState, _call: Call, signup: Signup) -> dict[str, Any]:
    """Return a signup."""
    return signup.node()


@operation("signups.change", "POST", Signup)
def update_signup(transaction: Transaction, call: Call, signup: Signup) -> dict[str, Any]:
    """Change a signup's texts, promo code or status; absent members stay. The public client reads `success`."""
    if "privacy_policy_url" in call.fields:
        raise bad_parameter("Param privacy_policy_url cannot be changed after creation.")
    members = _read_members(call.fields)
    if not members:
        names = [name for name in SignupChangeParameters.__struct_fields__ if name != "privacy_policy_url"]
        raise bad_parameter(f"One of {', '.join(names)} is required.")
    changed = replace(transaction.find(SIGNUPS, signup.signup_id) or signup, **members)
    _check_promo_code(changed)
    transaction.save(SIGNUPS, changed, signup.signup_id)
    return {"id": signup.signup_id, **GRAPH_SUCCESS}


def _account_signups(reader: SimulatorState | Transaction, account: Account) -> list[Signup]:
    return [signup for signup in reader.values(SIGNUPS).values() if signup.waba_id == account.waba_id]


def _read_members(fields: dict[str, Any]) -> dict[str, str]:
    """Return the members of a signup that a request has; null is absent."""
    given = {name: value for name, value in fields.items() if value is not None}
    read = read_parameters(SignupChangeParameters, given)
    return {name: value for name, value in asdict(read).items() if value}


def _read_policy(value: object) -> bool:
    """True if the terms are accepted, False if there is no `policy`."""
    if value is None:
        return False
    policy = object_of(value)
    if not isinstance(policy.get("tos"), str) or policy.get("accepted") is not True:
        raise bad_parameter("Param policy must be {tos, accepted} with the URL of the terms and true.")
    return True


def _check_promo_code(signup: Signup) -> None:
    """Check that a message with the placeholder has a code to fill in."""
    if _PROMO_CODE_VARIABLE in signup.confirmation_message and not signup.promo_code:
        raise bad_parameter(
            f"The parameter promo_code is required with {_PROMO_CODE_VARIABLE} in confirmation_message."
        )
