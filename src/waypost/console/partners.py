"""The page of partners: the list, and the form that creates one with app, number, accounts and key."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from starlette.responses import Response

from waypost.base.object_ids import make_id
from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import listen_commands
from waypost.console.page_request import PageRequest
from waypost.console.settings.operator import list_accounts, subscribe_account
from waypost.console.sign_in import start_session
from waypost.console.web.errors import NotFound
from waypost.console.web.forms import parse_number
from waypost.store.accounts.partners import partner_by_id

_FIRST_NUMBER: Final = 15_550_001_001
"""First suggested number; area code 555 is not assigned, and the demonstration's own number is the one before."""
_REQUIRED: Final = {  # by field of the form: its error if it is empty
    "name": "Enter a name for the partner.",
    "email": "Enter an e-mail address.",
    "app_name": "Enter a name for the app.",
    "phone_number": "Enter the number of the app.",
    "key_name": "Enter a name for the key, such as where it is used.",
}
_REQUIRED_AT_OPERATOR: Final = {  # of a number that exists; at the simulator it is created with its accounts
    **_REQUIRED,
    "phone_number_id": "Enter the ID of the number at the operator.",
    "business_account_id": "Enter the ID of the business account.",
}
_PASSWORD_DIGITS: Final = 24
_NOT_IN_IDS: Final = re.compile(r"[^a-z0-9]+")
_FIELDS_BY_MEMBER: Final = {  # the form's field of an error in a member of the APIs' bodies
    "email": "email",
    "password": "password",
    "phone_number": "phone_number",
    "id": "business_account_id",
    "business_account_id": "business_account_id",
    "operator_account": "operator_account",
}


def is_at_simulator(request: PageRequest) -> bool:
    """True if new partners get their number and accounts at the service's simulator."""
    return request.services.apis.control is not None and request.services.simulator_url is not None


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


class PartnerNotCreated(Exception):
    """The partner was not created.

    Args:
        field: of the form; empty: of none.
        text: the reason.
    """

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field
        self.text = text


async def create_partner(request: PageRequest, values: Mapping[str, str]) -> dict[str, Any]:
    """Create a partner; everything is checked before the first step.

    Args:
        values: of the form, by field.

    Returns:
        The partner, its app and account with their secrets, which are shown once: `password`, the generated one, empty
        if the form had one; `webhook_problem`, why the operator did not subscribe us to its webhooks, empty if it did.

    Raises:
        PartnerNotCreated: a value is invalid or in use, or the operator does not have the number.
        ApiUnreachable: the simulator does not respond.
    """
    admin = request.services.apis.admin
    generated = "" if values["password"] else f"Wp-{request.services.ids.secret()[:_PASSWORD_DIGITS]}"
    values = {**values, "password": values["password"] or generated}
    digits = _digits(values["phone_number"])
    try:
        if any(app["phone_number"] == digits for app in (await admin.call("GET /admin/apps"))["apps"]):
            raise PartnerNotCreated("phone_number", "Another app has this number. Enter another one.")
        setup = await _simulator_setup(request, values) if is_at_simulator(request) else _operator_setup(values)
        plan = await admin.call("POST /admin/setup", setup=setup, dry_run=True)
        if any(step["kind"] == "partner" and step["action"] != "create" for step in plan["steps"]):
            raise PartnerNotCreated("email", "Another partner has this e-mail address. Enter another one.")
        if is_at_simulator(request):
            await _create_at_simulator(request, values, setup)
        else:
            await _check_number_at_operator(request, values)
        result = await admin.call("POST /admin/setup", setup=setup)
    except ApiResponseError as error:
        field = _FIELDS_BY_MEMBER.get(error.top_field or error.field, "")
        text = f"Enter {error.accepted}." if field and error.accepted else error.explanation or error.message
        raise PartnerNotCreated(field, text) from error
    if (failed := result["failed"]) is not None:
        done = ", ".join(f"{step['kind']} {step['name']}" for step in result["steps"]) or "nothing"
        text = f"{failed['kind']} {failed['name']} failed: {failed['error']} Created before it: {done}."
        raise PartnerNotCreated("", text)
    [partner] = setup["partners"]
    [business_account] = partner["business_accounts"]
    shown = {step["kind"]: step.get("shown", {}) for step in result["steps"]}
    keys = [step["shown"]["api_key"] for step in result["steps"] if "api_key" in step.get("shown", {})]
    return {
        **partner,
        "id": shown["partner"]["id"],
        "password": generated,
        "app_id": shown["app"]["id"],
        "app_name": values["app_name"],
        "app_token": shown["app"]["app_token"],
        "api_key": keys[0],
        "phone_number": digits,
        "business_account": business_account,
        "webhook_problem": await subscribe_account(request, business_account["id"]),
    }


async def _simulator_setup(request: PageRequest, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the set-up of a partner whose accounts and number are new at the simulator."""
    ids, accounts = request.services.ids, await list_accounts(request)
    business_account_id = make_id(ids, "account")
    account_id = _NOT_IN_IDS.sub("-", values["name"].lower()).strip("-")[:40]
    if not account_id or any(account["id"] == account_id for account in accounts):
        account_id = business_account_id
    account = {
        "base_url": request.services.simulator_url,
        "token": ids.secret(),
        "app_id": make_id(ids, "app"),
        "app_secret": ids.secret(),
        "verify_token": ids.secret(),
    }
    own = {**values, "business_account_id": business_account_id, "phone_number_id": make_id(ids, "number")}
    return {**_operator_setup({**own, "operator_account": account_id}), "operator_accounts": {account_id: account}}


def _operator_setup(values: Mapping[str, str]) -> dict[str, Any]:
    account_id = values["business_account_id"]
    app = {
        "name": values["app_name"],
        "phone_number": values["phone_number"],
        "phone_number_id": values["phone_number_id"],
        "business_account": account_id,
    }
    partner = {
        "email": values["email"].lower(),
        "name": values["name"],
        "password": values["password"],
        "api_keys": [{"name": values["key_name"]}],
        "business_accounts": [{"id": account_id, "operator_account": values["operator_account"]}],
        "apps": [app],
    }
    return {"partners": [partner]}


async def _create_at_simulator(request: PageRequest, values: Mapping[str, str], setup: dict[str, Any]) -> None:
    control = request.services.apis.control
    assert control is not None, "the caller has checked it"  # noqa: S101  a defect
    [account] = setup["operator_accounts"].values()
    [app] = setup["partners"][0]["apps"]
    account_id = app["business_account"]
    secrets = {name: account[name] for name in ("token", "app_id", "app_secret")}
    await control.call("PUT /control/accounts/{waba_id}", waba_id=account_id, name=values["name"], **secrets)
    await control.call(
        "PUT /control/numbers/{phone_number_id}", phone_number_id=app["phone_number_id"],
        waba_id=account_id, phone_number=_digits(app["phone_number"]), name=values["app_name"],
    )  # fmt: skip


async def _check_number_at_operator(request: PageRequest, values: Mapping[str, str]) -> None:
    try:
        response = await request.admin(
            "GET /admin/operator-accounts/{account_id}/numbers",
            account_id=values["operator_account"], business_account_id=values["business_account_id"],
        )  # fmt: skip
    except ApiResponseError as error:
        raise PartnerNotCreated("business_account_id", error.explanation or error.message) from error
    listed = {number["id"]: number.get("display_phone_number", "") for number in response["numbers"]}
    if values["phone_number_id"] not in listed:
        accepted = ", ".join(f"{number_id} ({display})" for number_id, display in listed.items()) or "none yet"
        raise PartnerNotCreated("phone_number_id", f"The business account has no such number. Its numbers: {accepted}.")


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)


async def show_partners(
    request: PageRequest, values: Mapping[str, str] | None = None, wrong: Mapping[str, str] = {}
) -> Response:
    """List the partners, with the form of a new one; a rejected one with its values and errors by field."""
    partners: list[dict[str, Any]] = (await request.admin("GET /admin/partners"))["partners"]
    at_simulator = is_at_simulator(request)
    if values is None:
        values = suggest_values(partners, (await request.admin("GET /admin/apps"))["apps"]) if at_simulator else {}
    return await request.page(
        "partners/list.html", 400 if wrong else 200,
        partners=partners, values=values, wrong=wrong, accounts=await list_accounts(request),
        at_simulator=at_simulator,
    )  # fmt: skip


async def make_partner(request: PageRequest) -> Response:
    """Create a partner, and show its key, which is shown on this response only."""
    required = _REQUIRED if is_at_simulator(request) else _REQUIRED_AT_OPERATOR
    values = {name: (await request.field(name)).strip() for name in (*required, "password")}
    values["operator_account"] = await request.field("operator_account")
    wrong = {name: text for name, text in required.items() if not values[name]}
    if wrong:
        return await show_partners(request, values, wrong)
    try:
        created = await create_partner(request, values)
    except PartnerNotCreated as error:
        is_shown = error.field in (*required, "password")
        return await show_partners(request, values, {error.field if is_shown else "": error.text})
    listen = listen_commands(
        request.services.public_url, created["app_id"], created["app_name"], app_token=created["app_token"]
    )
    return await request.page("partners/created.html", created=created, variables=listen)


async def enter_partner(request: PageRequest) -> Response:
    """Continue as another partner, in a demonstration only: its users have administrator rights."""
    partner_id, partner = parse_number(request.path_params["partner_id"]), None
    if request.services.demo_partner_id is not None and partner_id is not None:
        partner = await request.read(partner_by_id, partner_id)
    if partner is None:
        raise NotFound("There is no such partner.")
    return await start_session(request, partner, "/")
