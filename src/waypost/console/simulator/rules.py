"""The rules page: settings of the simulated operator, drawn from the control API's declarations."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import form_texts
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import (
    Declaration,
    explain_field,
    field_kind,
    format_fields,
    parse_fields,
    render_tab,
)

RULES_PATH: Final = "/simulator/rules"


async def show_rules(request: PageRequest) -> Response:
    """Return the page with the current settings."""
    control = request.control
    fields = (await control.get("/control/declarations"))["settings"]
    return await _page(request, fields, format_fields(fields, await control.get("/control/settings")))


async def change_rules(request: PageRequest) -> Response:
    """Change the settings that differ from the form; changes survive a restart."""
    typed, control = await form_texts(request), request.control
    fields, before = (await control.get("/control/declarations"))["settings"], await control.get("/control/settings")
    changes = {name: value for name, value in parse_fields(fields, typed).items() if value != before[name]}
    if not changes:
        return request.redirect(RULES_PATH, "No changes.", kind="info")
    try:
        await control.json("PUT", "/control/settings", changes)
    except ApiResponseError as error:
        return await _page(request, fields, typed, error)
    titles = [field["title"] for field in fields if field["name"] in changes]
    return request.redirect(RULES_PATH, f"Changed: {', '.join(titles)}.")


async def _page(
    request: PageRequest, fields: Sequence[Declaration], typed: Mapping[str, Any], error: ApiResponseError | None = None
) -> Response:
    wrong: dict[str, str] = {}
    if error is not None:
        title = next(field["title"] for field in fields if field["name"] == error.top_field)
        wrong = {"": f"{title}: {error.rule}.", error.top_field: explain_field(error)}
    groups = groupby(fields, itemgetter("group"))
    return await render_tab(
        request, "rules", 400 if error else 200, groups=groups, typed=typed, wrong=wrong, kind_of=field_kind
    )
