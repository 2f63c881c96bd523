"""The snapshots page: save and load the state of service and simulator, or reset it.

Loading and resetting exchange the store while the console uses it: such an action steps aside before
its call, so that the exchange does not wait for it, and reads nothing from the store afterwards.
"""

import re
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, error_notice, error_response
from waypost.console.api_clients import open_file, proxy_response
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import render_tab
from waypost.console.web.errors import NotFound

SNAPSHOTS_PATH: Final = "/simulator/snapshots"
_SNAPSHOT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SNAPSHOT_PATH: Final = f"{SNAPSHOTS_PATH}/{{name}}"

SNAPSHOT_ACTIONS: Final = (
    # path, name, call, page, notice
    ActionRow(
        f"{_SNAPSHOT_PATH}/load",
        does="load a snapshot",
        call="POST /control/snapshots/{name}/load",
        page=SNAPSHOTS_PATH,
        notice="Snapshot {name} loaded.",
        steps_aside=True,
    ),
    ActionRow(
        f"{_SNAPSHOT_PATH}/drop",
        does="delete a snapshot",
        call="DELETE /control/snapshots/{name}",
        page=SNAPSHOTS_PATH,
        notice="Snapshot {name} deleted.",
    ),
    ActionRow(
        "/simulator/reset",
        does="reset to the initial state",
        call="POST /control/reset",
        page=SNAPSHOTS_PATH,
        notice="Reset to the initial state.",
        steps_aside=True,
    ),
)


async def show_snapshots(request: PageRequest) -> Response:
    """Return the list of snapshots."""
    snapshots, why_not = await _list_snapshots(request)
    snapshots.sort(key=lambda each: (-each["at_ms"], each["name"]))
    typed = request.query("name")
    return await render_tab(request, "snapshots", snapshots=snapshots, why_not=why_not, typed=typed)


async def save_snapshot(request: PageRequest) -> Response:
    """Save the current state; an existing snapshot is replaced only if the form allows it."""
    name = (await request.field("name")).strip()
    if not await request.is_checked("replace") and any(
        each["name"] == name for each in (await _list_snapshots(request))[0]
    ):
        return request.redirect(
            f"{SNAPSHOTS_PATH}?{urlencode({'name': name})}", f"A snapshot named {name} already exists.",
            hint="Choose another name, or check “Replace existing”.", kind="bad",
        )  # fmt: skip
    try:
        await request.control.post("/control/snapshots", {"name": name})
    except ApiResponseError as error:
        return error_response(request, SNAPSHOTS_PATH, error)
    return request.redirect(SNAPSHOTS_PATH, f"Snapshot {name} saved.")


async def download_snapshot(request: PageRequest) -> Response:
    """Return the file of a snapshot, for `waypost dev --from`."""
    name: str = request.path_params["name"]
    if not _SNAPSHOT_NAME.fullmatch(name):
        raise NotFound("There is no such snapshot.")
    source = await open_file(request.control, request.http, f"/control/snapshots/{name}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotFound(f"There is no snapshot named {name}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}.waypost"'}
    return proxy_response(source, headers, media_type="application/zip")


async def _list_snapshots(request: PageRequest) -> tuple[list[dict[str, Any]], str]:
    """Return the snapshots, and why none can be saved; empty: they can."""
    try:
        return (await request.control.get("/control/snapshots"))["snapshots"], ""
    except ApiResponseError as error:
        if error.status != 404:
            raise
        return [], " ".join(error_notice(error))
