"""Snapshots: the state of both sides, kept under a name, brought back, or put back to the start.

Loading and resetting exchange the store under the very console that asks for it: such an act steps
aside before it asks, so that the exchange does not wait for it, and reads nothing of the store after.
"""

import re
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.client.door import DoorRefused
from waypost.console.desk import Desk
from waypost.console.not_there import NotThere
from waypost.console.passing import open_file, pass_on, step_aside
from waypost.console.simulator.bench import attempt, control_of, reason_of, tab
from waypost.console.visit import Visit

PATH: Final = "/simulator/snapshots"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


async def show_snapshots(desk: Desk, visit: Visit) -> Response:
    """What is kept."""
    kept, why_not = await _kept(desk)
    kept.sort(key=lambda one: (-one["at_ms"], one["name"]))
    typed = visit.query("name")
    return await tab(desk, visit, "snapshots", kept=kept, why_not=why_not, typed=typed)


async def save(desk: Desk, visit: Visit) -> Response:
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


async def load(desk: Desk, visit: Visit) -> Response:
    """Put both sides where they were when it was saved."""
    name = _name(visit)
    step_aside(visit.request.scope)
    work = partial(control_of(desk).post, f"/control/snapshots/{name}/load")
    refused = await attempt(desk, visit, PATH, work)
    return refused or desk.go(PATH, f"Everything is as it was when {name} was saved.")


async def reset(desk: Desk, visit: Visit) -> Response:
    """Put both sides where they started; a simulator that stands alone forgets what was made with it."""
    step_aside(visit.request.scope)
    work = partial(control_of(desk).post, "/control/reset")
    refused = await attempt(desk, visit, PATH, work)
    return refused or desk.go(PATH, "Everything is as it was at the start.")


async def drop(desk: Desk, visit: Visit) -> Response:
    """Forget one."""
    name = _name(visit)
    work = partial(control_of(desk).json, "DELETE", f"/control/snapshots/{name}")
    refused = await attempt(desk, visit, PATH, work)
    return refused or desk.go(PATH, f"{name} is deleted.")


async def download(desk: Desk, visit: Visit) -> Response:
    """The file of one, as `waypost dev --from` takes it."""
    name = _name(visit)
    source = await open_file(control_of(desk), visit, f"/control/snapshots/{name}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotThere(f"There is no snapshot called {name}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}.waypost"'}
    return pass_on(source, headers, media_type="application/zip")


async def _kept(desk: Desk) -> tuple[list[dict[str, Any]], str]:
    """What is kept, and why nothing can be; empty: it can."""
    try:
        return (await control_of(desk).get("/control/snapshots"))["snapshots"], ""
    except DoorRefused as refused:
        if refused.status != 404:
            raise
        return [], " ".join(reason_of(refused))


def _name(visit: Visit) -> str:
    name: str = visit.path["name"]
    if not _NAME.fullmatch(name):
        raise NotThere("There is no such snapshot.")
    return name
