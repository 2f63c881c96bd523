"""The snapshots page: save and load the state of service and simulator, or reset it.

Loading and resetting exchange the store while the console uses it: such an action steps aside before
its call, so that the exchange does not wait for it, and reads nothing from the store afterwards.
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
    ActionRow(f"{_ONE}/load",    "load a snapshot",        "POST /control/snapshots/{name}/load",  PATH, "Snapshot {name} loaded.", steps_aside=True),
    ActionRow(f"{_ONE}/drop",    "delete a snapshot",      "DELETE /control/snapshots/{name}",     PATH, "Snapshot {name} deleted."),
    ActionRow("/simulator/reset", "reset to the start",    "POST /control/reset",                  PATH, "Reset to the initial state.", steps_aside=True),
)
# fmt: on


async def show_snapshots(desk: PageTools, visit: PageRequest) -> Response:
    """Return the list of snapshots."""
    snapshots, why_not = await _kept(desk)
    snapshots.sort(key=lambda each: (-each["at_ms"], each["name"]))
    typed = visit.query("name")
    return await tab(desk, visit, "snapshots", snapshots=snapshots, why_not=why_not, typed=typed)


async def save(desk: PageTools, visit: PageRequest) -> Response:
    """Save the current state; an existing snapshot is replaced only if the form allows it."""
    name = (await visit.field("name")).strip()
    if not await visit.flag("replace") and any(each["name"] == name for each in (await _kept(desk))[0]):
        return desk.go(
            f"{PATH}?{urlencode({'name': name})}", f"A snapshot named {name} already exists.",
            remedy="Choose another name, or check “Replace existing”.", kind="bad",
        )  # fmt: skip
    body = {"name": name}
    error_response = await attempt(desk, visit, PATH, partial(control_of(desk).post, "/control/snapshots", body))
    return error_response or desk.go(PATH, f"Snapshot {name} saved.")


async def download(desk: PageTools, visit: PageRequest) -> Response:
    """Return the file of a snapshot, for `waypost dev --from`."""
    name = _name(visit)
    source = await open_file(control_of(desk), visit, f"/control/snapshots/{name}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotThere(f"There is no snapshot named {name}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}.waypost"'}
    return pass_on(source, headers, media_type="application/zip")


async def _kept(desk: PageTools) -> tuple[list[dict[str, Any]], str]:
    """Return the snapshots, and why none can be saved; empty: they can."""
    try:
        return (await control_of(desk).get("/control/snapshots"))["snapshots"], ""
    except ApiResponseError as error:
        if error.status != 404:
            raise
        return [], " ".join(reason_of(error))


def _name(visit: PageRequest) -> str:
    name: str = visit.path["name"]
    if not _NAME.fullmatch(name):
        raise NotThere("There is no such snapshot.")
    return name
