"""Snapshots: the state of both sides, kept under a name, brought back, or put back to the start.

Loading and resetting exchange the store under the very console that asks for it: such an action steps
aside before it asks, so that the exchange does not wait for it, and reads nothing of the store after.
"""

import re
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, reason_of
from waypost.console.page_tools import PageTools
from waypost.console.proxying import open_file, pass_on
from waypost.console.simulator.context import attempt, control_of, tab
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest

PATH: Final = "/simulator/snapshots"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ONE: Final = f"{PATH}/{{name}}"

# fmt: off
ACTIONS: Final = (
    #         path               does                      call                                    page  said
    ActionRow(f"{_ONE}/load",    "go back to one",         "POST /control/snapshots/{name}/load",  PATH, "Everything is as it was when {name} was saved.", steps_aside=True),
    ActionRow(f"{_ONE}/drop",    "forget one",             "DELETE /control/snapshots/{name}",     PATH, "{name} is deleted."),
    ActionRow("/simulator/reset", "go back to the start",  "POST /control/reset",                  PATH, "Everything is as it was at the start.", steps_aside=True),
)
# fmt: on


async def show_snapshots(desk: PageTools, visit: PageRequest) -> Response:
    """What is kept."""
    kept, why_not = await _kept(desk)
    kept.sort(key=lambda one: (-one["at_ms"], one["name"]))
    typed = visit.query("name")
    return await tab(desk, visit, "snapshots", kept=kept, why_not=why_not, typed=typed)


async def save(desk: PageTools, visit: PageRequest) -> Response:
    """Keep the state as it is now; an older one of that name goes only if that was wished."""
    name = (await visit.field("name")).strip()
    if not await visit.flag("replace") and any(one["name"] == name for one in (await _kept(desk))[0]):
        return desk.go(
            f"{PATH}?{urlencode({'name': name})}", f"There is a snapshot called {name} already.",
            remedy="Choose another name, or tick the box that replaces it.", kind="bad",
        )  # fmt: skip
    wish = {"name": name}
    refused = await attempt(desk, visit, PATH, partial(control_of(desk).post, "/control/snapshots", wish))
    return refused or desk.go(PATH, f"Saved as {name}.")


async def download(desk: PageTools, visit: PageRequest) -> Response:
    """The file of one, as `waypost dev --from` takes it."""
    name = _name(visit)
    source = await open_file(control_of(desk), visit, f"/control/snapshots/{name}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotThere(f"There is no snapshot called {name}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}.waypost"'}
    return pass_on(source, headers, media_type="application/zip")


async def _kept(desk: PageTools) -> tuple[list[dict[str, Any]], str]:
    """What is kept, and why nothing can be; empty: it can."""
    try:
        return (await control_of(desk).get("/control/snapshots"))["snapshots"], ""
    except ApiResponseError as refused:
        if refused.status != 404:
            raise
        return [], " ".join(reason_of(refused))


def _name(visit: PageRequest) -> str:
    name: str = visit.path["name"]
    if not _NAME.fullmatch(name):
        raise NotThere("There is no such snapshot.")
    return name
