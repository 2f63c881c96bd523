"""The control door's calls about the state as a whole: keep it, bring it back, start anew."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, ClassVar

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from waypost.simulator.control.downloads import file_answer
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import NothingShape, read_shape
from waypost.simulator.keeper import Keeper, NotAtRest, NotKept, Snapshot
from waypost.simulator.parts import Parts


class SnapshotShape(NothingShape, frozen=True):
    """The name of a state that is kept."""

    accepted: ClassVar[str] = "{name: 1 to 64 letters, digits, hyphens and underscores, a letter or digit first}"
    name: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


async def list_snapshots(parts: Parts, _request: Request) -> dict[str, Any]:
    """What is kept."""
    return {"snapshots": [_view(one) for one in await _keeper(parts).snapshots()]}


async def save_snapshot(parts: Parts, request: Request) -> dict[str, Any]:
    """Keep the state of both sides as it is at one moment; an older one of that name goes."""
    wish = read_shape(SnapshotShape, await request.body())
    return {"snapshot": _view(await _kept(_keeper(parts).save, wish.name))}


async def load_snapshot(parts: Parts, request: Request) -> dict[str, Any]:
    """Put both sides where they were when it was saved."""
    read_shape(NothingShape, await request.body())
    name: str = request.path_params["name"]
    await _kept(_keeper(parts).load, name)
    return {"loaded": name}


async def drop_snapshot(parts: Parts, request: Request) -> dict[str, Any]:
    """Forget one."""
    name: str = request.path_params["name"]
    await _kept(_keeper(parts).drop, name)
    return {"dropped": name}


async def download_snapshot(parts: Parts, request: Request) -> Response:
    """The file of one, as `waypost dev --from` takes it."""
    name = str(request.path_params["name"])
    headers = {"content-disposition": f'attachment; filename="{name}.waypost"'}
    try:
        file = _keeper(parts).file_of(name)
        return await file_answer(request, file, "application/zip", headers)
    except NotKept as error:
        raise _refused(error) from error
    except FileNotFoundError:
        raise _refused(NotKept(f"there is no snapshot called {name!r}")) from None


async def _kept(work: Callable[[str], Awaitable[Any]], name: str) -> Any:
    try:
        return await work(name)
    except NotKept as error:
        raise _refused(error) from error


def _refused(error: NotKept) -> ControlRefused:
    if isinstance(error, NotAtRest):
        return ControlRefused(
            409,
            field="snapshot",
            rule=str(error),
            accepted="a moment at which nothing is in flight: try again when that has ended",
        )
    is_unknown = str(error).startswith("there is no snapshot")
    return ControlRefused(
        404 if is_unknown else 409,
        field="name",
        rule=str(error),
        accepted="a name from GET /control/snapshots" if is_unknown else "see the rule",
    )


def _keeper(parts: Parts) -> Keeper:
    if parts.keeper is None:
        raise ControlRefused(
            404,
            field="snapshots",
            rule="this simulator stands alone, and a snapshot is of both sides",
            accepted="the control door of `waypost dev`",
        )
    return parts.keeper


def _view(snapshot: Snapshot) -> dict[str, Any]:
    return {"name": snapshot.name, "at_ms": snapshot.at_ms, "size_bytes": snapshot.size_bytes}
