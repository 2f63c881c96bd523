"""The page of partners, the creation of one, and in a demonstration the change to another."""

from typing import Any, Final

from starlette.responses import Response

from waypost.console.callbacks.lookup import listen_commands
from waypost.console.page_tools import PageTools
from waypost.console.partners.creation import PartnerNotCreated, create_partner
from waypost.console.partners.fields import find_errors, is_at_simulator, partner_fields, suggest_values
from waypost.console.sign_in import start_session
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.store.accounts.partners import partner_by_id

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
