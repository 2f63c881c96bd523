"""Snapshots of service and simulator: the calls of the control API about them, and what `assembly` implements."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, file_response, member_of_state
from waypost.simulator.apis.field_types import accepts


class SnapshotError(Exception):
    """A snapshot cannot be created, read or found; the text has the reason and the way to fix it."""


class UnknownSnapshot(SnapshotError):
    """No snapshot has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no snapshot called {name!r}")


class SnapshotBusy(SnapshotError):
    """A snapshot was not created because something stayed in flight; the text names it."""


@dataclass(frozen=True)
class Snapshot:
    """A saved state of service and simulator."""

    name: str
    at_ms: int  # the virtual time at which it was saved
    size_bytes: int  # of its file


class SnapshotStore(Protocol):
    """Saves and restores the state of service and simulator; raises `UnknownSnapshot` for an unknown name."""

    async def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, by name."""
        ...

    async def save(self, name: str) -> Snapshot:
        """Save a consistent state of both sides under a name; raises `SnapshotBusy` if something stays in flight."""
        ...

    async def load(self, name: str) -> None:
        """Restore a snapshot of both sides, the clock included; raises `SnapshotError` if it cannot be used here."""

    async def drop(self, name: str) -> None:
        """Delete a snapshot."""

    def file_of(self, name: str) -> Path:
        """Return the path of a snapshot's file."""
        ...

    async def reset(self) -> None:
        """Restore both sides to the seed."""


_ALONE = "this simulator stands alone, and a snapshot is of both sides"
DevSnapshots = Annotated[
    SnapshotStore, member_of_state("snapshots", "snapshots", _ALONE, "the control API of `waypost dev`")
]
_NAME = accepts(
    "1 to 64 letters, digits, hyphens and underscores, a letter or digit first", "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
)

operation = ControlOperations()


class SnapshotBody(ControlBody, frozen=True):
    """The name of a snapshot."""

    name: Annotated[str, _NAME]


@operation("GET", "/control/snapshots", snapshots=list[Snapshot])
async def list_snapshots(snapshots: DevSnapshots) -> dict[str, Any]:
    """Return the snapshots."""
    return {"snapshots": await snapshots.snapshots()}


@operation("POST", "/control/snapshots", snapshot=Snapshot)
async def save_snapshot(body: SnapshotBody, snapshots: DevSnapshots) -> dict[str, Any]:
    """Save a consistent state of service and simulator; replaces an older snapshot of that name."""
    return {"snapshot": await _run_snapshot_work(snapshots.save, body.name)}


@operation("POST", "/control/snapshots/{name}/load", loaded=str)
async def load_snapshot(name: str, snapshots: DevSnapshots) -> dict[str, Any]:
    """Restore a snapshot of service and simulator."""
    await _run_snapshot_work(snapshots.load, name)
    return {"loaded": name}


@operation("DELETE", "/control/snapshots/{name}", dropped=str)
async def drop_snapshot(name: str, snapshots: DevSnapshots) -> dict[str, Any]:
    """Delete a snapshot."""
    await _run_snapshot_work(snapshots.drop, name)
    return {"dropped": name}


@operation("GET", "/control/snapshots/{name}/content")
async def download_snapshot(request: Request, name: str, snapshots: DevSnapshots) -> Response:
    """Return a snapshot's file, for `waypost dev --from`."""
    headers = {"content-disposition": f'attachment; filename="{name}.waypost"'}

    async def send_file(name: str) -> Response:
        try:
            return await file_response(request, snapshots.file_of(name), "application/zip", headers)
        except FileNotFoundError:
            raise UnknownSnapshot(name) from None

    return await _run_snapshot_work(send_file, name)


async def _run_snapshot_work(work: Callable[[str], Awaitable[Any]], name: str) -> Any:
    try:
        return await work(name)
    except UnknownSnapshot as error:
        accepted = "a name from GET /control/snapshots"
        raise ControlApiError("name", str(error), accepted, status=404) from error
    except SnapshotBusy as error:
        accepted = "a moment at which nothing is in flight: try again when that has ended"
        raise ControlApiError("snapshot", str(error), accepted, status=409) from error
    except SnapshotError as error:
        raise ControlApiError("name", str(error), "", status=409) from error
