"""The page of partners: the list, and the form that creates one with app, number, accounts and key."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import listen_commands
from waypost.console.page_tools import PageTools
from waypost.console.sign_in import start_session
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.store.accounts.partners import partner_by_id

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


_ID_DIGITS: Final = 16
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


@dataclass(frozen=True, slots=True)
class CreatedPartner:
    """A partner that was created, with its secrets, which are shown once.

    Attributes:
        password: the generated one; empty: the one of the form.
        operator_account_id: of its business account.
        webhook_problem: why the operator did not subscribe us to its webhooks; empty: it did.
    """

    id: int
    name: str
    email: str
    password: str
    app_id: str
    app_name: str
    app_token: str
    api_key: str
    phone_number: str
    business_account_id: str
    operator_account_id: str
    webhook_problem: str = ""


async def create_partner(tools: PageTools, values: Mapping[str, str]) -> CreatedPartner:
    """Create a partner; everything is checked before the first step.

    Args:
        values: of the form, by field.

    Raises:
        PartnerNotCreated: a value is invalid or in use, or the operator does not have the number.
        ApiUnreachable: the simulator does not respond.
    """
    admin = tools.services.apis.admin
    generated = "" if values["password"] else f"Wp-{tools.services.ids.secret()[:_PASSWORD_DIGITS]}"
    values = {**values, "password": values["password"] or generated}
    try:
        await _check_number_is_free(tools, values["phone_number"])
        setup = await _simulator_setup(tools, values) if is_at_simulator(tools) else _operator_setup(values)
        plan = await admin.json("POST", "/admin/setup", {"setup": setup, "dry_run": True})
        if any(step["kind"] == "partner" and step["action"] != "create" for step in plan["steps"]):
            raise PartnerNotCreated("email", "Another partner has this e-mail address. Enter another one.")
        if is_at_simulator(tools):
            await _create_at_simulator(tools, values, setup)
        else:
            await _check_number_at_operator(tools, values)
        result = await admin.json("POST", "/admin/setup", {"setup": setup})
    except ApiResponseError as error:
        field = _FIELDS_BY_MEMBER.get(error.top_field or error.field, "")
        text = f"Enter {error.accepted}." if field and error.accepted else _describe_error(error)
        raise PartnerNotCreated(field, text) from error
    if result["failed"] is not None:
        raise PartnerNotCreated("", _describe_failure(result))
    [partner] = setup["partners"]
    [business_account] = partner["business_accounts"]
    shown = {step["kind"]: step.get("shown", {}) for step in result["steps"]}
    keys = [step["shown"]["api_key"] for step in result["steps"] if "api_key" in step.get("shown", {})]
    return CreatedPartner(
        id=shown["partner"]["id"],
        name=partner["name"],
        email=partner["email"],
        password=generated,
        app_id=shown["app"]["id"],
        app_name=values["app_name"],
        app_token=shown["app"]["app_token"],
        api_key=keys[0],
        phone_number=_digits(values["phone_number"]),
        business_account_id=business_account["id"],
        operator_account_id=business_account["operator_account"],
        webhook_problem=await _subscribe(tools, business_account["id"]),
    )


async def _check_number_is_free(tools: PageTools, number: str) -> None:
    digits = _digits(number)
    apps = (await tools.services.apis.admin.json("GET", "/admin/apps"))["apps"]
    if any(app["phone_number"] == digits for app in apps):
        raise PartnerNotCreated("phone_number", "Another app has this number. Enter another one.")


async def _simulator_setup(tools: PageTools, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the set-up of a partner whose accounts and number are new at the simulator."""
    ids, admin = tools.services.ids, tools.services.apis.admin
    accounts = (await admin.json("GET", "/admin/operator-accounts"))["operator_accounts"]
    business_account_id = ids.digits(_ID_DIGITS)
    account_id = _NOT_IN_IDS.sub("-", values["name"].lower()).strip("-")[:40]
    if not account_id or any(account["id"] == account_id for account in accounts):
        account_id = business_account_id
    account = {
        "base_url": tools.services.simulator_url,
        "token": ids.secret(),
        "app_id": ids.digits(_ID_DIGITS),
        "app_secret": ids.secret(),
        "verify_token": ids.secret(),
    }
    own = {**values, "business_account_id": business_account_id, "phone_number_id": ids.digits(_ID_DIGITS)}
    return {**_operator_setup({**own, "operator_account": account_id}), "operator_accounts": {account_id: account}}


def _operator_setup(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the set-up of a partner at an operator account that exists."""
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


async def _create_at_simulator(tools: PageTools, values: Mapping[str, str], setup: dict[str, Any]) -> None:
    control = tools.services.apis.control
    assert control is not None, "the caller has checked it"  # noqa: S101  a defect
    [account] = setup["operator_accounts"].values()
    [app] = setup["partners"][0]["apps"]
    account_id = app["business_account"]
    body = {"name": values["name"], **{name: account[name] for name in ("token", "app_id", "app_secret")}}
    await control.json("PUT", f"/control/accounts/{account_id}", body)
    number = {"waba_id": account_id, "phone_number": _digits(app["phone_number"]), "name": values["app_name"]}
    await control.json("PUT", f"/control/numbers/{app['phone_number_id']}", number)


async def _check_number_at_operator(tools: PageTools, values: Mapping[str, str]) -> None:
    query = urlencode({"business_account_id": values["business_account_id"]})
    path = f"/admin/operator-accounts/{quote(values['operator_account'], safe='')}/numbers?{query}"
    try:
        numbers = (await tools.services.apis.admin.json("GET", path))["numbers"]
    except ApiResponseError as error:
        raise PartnerNotCreated("business_account_id", _describe_error(error)) from error
    listed = {number["id"]: number.get("display_phone_number", "") for number in numbers}
    if values["phone_number_id"] not in listed:
        accepted = ", ".join(f"{number_id} ({display})" for number_id, display in listed.items()) or "none yet"
        raise PartnerNotCreated("phone_number_id", f"The business account has no such number. Its numbers: {accepted}.")


async def _subscribe(tools: PageTools, business_account_id: str) -> str:
    """Subscribe this service to an account's webhooks; return why that failed, or an empty text."""
    path = f"/admin/business-accounts/{quote(business_account_id, safe='')}/subscribe"
    try:
        await tools.services.apis.admin.json("POST", path, {})
    except ApiResponseError as error:
        return _describe_error(error)
    return ""


def _describe_error(error: ApiResponseError) -> str:
    return error.explanation or error.message


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)


def _describe_failure(result: dict[str, Any]) -> str:
    failed = result["failed"]
    done = ", ".join(f"{step['kind']} {step['name']}" for step in result["steps"]) or "nothing"
    return f"{failed['kind']} {failed['name']} failed: {failed['error']} Created before it: {done}."


_MAX_ID_DIGITS: Final = 18


async def show_partners(tools: PageTools, page_request: PageRequest) -> Response:
    """List the partners, with the form of a new one."""
    return await _page(tools, page_request)


async def make_partner(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a partner, and show its key, which is shown on this response only."""
    fields = partner_fields(tools)
    values = {field.name: (await page_request.field(field.name)).strip() for field in fields}
    values["operator_account"] = await page_request.field("operator_account")
    wrong = find_errors(fields, values)
    if not wrong:
        try:
            created = await create_partner(tools, values)
        except PartnerNotCreated as error:
            names = {field.name for field in fields}
            wrong = {error.field if error.field in names else "": error.text}
        else:
            listen = listen_commands(
                tools.services.public_url, created.app_id, created.app_name, app_token=created.app_token
            )
            return await tools.page(
                page_request, "partners/created.html", created=created, is_demo=_is_demo(tools), variables=listen
            )
    return await _page(tools, page_request, values=values, wrong=wrong)


async def enter_partner(tools: PageTools, page_request: PageRequest) -> Response:
    """Continue as another partner, in a demonstration only: its users have administrator rights.

    Raises:
        NotFound: there is no such partner, or this is no demonstration.
    """
    partner_id: str = page_request.path_params["partner_id"]
    is_id = partner_id.isascii() and partner_id.isdecimal() and len(partner_id) <= _MAX_ID_DIGITS
    if not _is_demo(tools) or not is_id:
        raise NotFound("There is no such partner.")
    partner = await tools.services.database.read(partner_by_id, int(partner_id))
    if partner is None:
        raise NotFound("There is no such partner.")
    return await start_session(tools, page_request, partner, "/")


async def _page(
    tools: PageTools,
    page_request: PageRequest,
    *,
    values: dict[str, str] | None = None,
    wrong: dict[str, str] | None = None,
) -> Response:
    admin = tools.services.apis.admin
    partners: list[dict[str, Any]] = (await admin.json("GET", "/admin/partners"))["partners"]
    accounts: list[dict[str, Any]] = (await admin.json("GET", "/admin/operator-accounts"))["operator_accounts"]
    at_simulator = is_at_simulator(tools)
    if values is None:
        apps: list[dict[str, Any]] = (await admin.json("GET", "/admin/apps"))["apps"]
        values = suggest_values(partners, apps) if at_simulator else {}
    return await tools.page(
        page_request, "partners/list.html", 400 if wrong else 200,
        partners=partners, fields=partner_fields(tools), values=values, wrong=wrong or {},
        accounts=[(account["id"], account["id"]) for account in accounts],
        at_simulator=at_simulator, is_demo=_is_demo(tools),
    )  # fmt: skip


def _is_demo(tools: PageTools) -> bool:
    return tools.services.demo_partner_id is not None
