"""Control API calls for the simulator as a whole: state, settings, snapshots, accepted messages."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from waypost.simulator.control.accounts import account_view
from waypost.simulator.control.endpoints import (
    ControlBody,
    ControlOperations,
    ControlQuery,
    json_response,
    present_members,
)
from waypost.simulator.control.faults import list_faults
from waypost.simulator.control.media import file_response
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.dev_interfaces import SnapshotBusy, SnapshotError, SnapshotStore, UnknownSnapshot
from waypost.simulator.field_types import Position, accepts
from waypost.simulator.messages.statuses import state_at
from waypost.simulator.services import SimulatorServices
from waypost.simulator.settings import SettingsChange
from waypost.simulator.store import STORE_FAILURES
from waypost.simulator.tables.messages import MESSAGES, find_deliveries
from waypost.simulator.tables.updates import OUTBOX, count_waiting_updates

_SNAPSHOT_NAME = "1 to 64 letters, digits, hyphens and underscores, a letter or digit first"

operation = ControlOperations()


class SnapshotBody(ControlBody, frozen=True):
    """The name of a snapshot."""

    name: Annotated[str, accepts(_SNAPSHOT_NAME, "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class DeliveriesQuery(ControlQuery, frozen=True):
    """Filter and page of the accepted messages."""

    after: Position = 0
    limit: Annotated[int, Meta(ge=0, le=20_000)] = 1000
    callback_data: str = ""
    to: str = ""


@operation("GET", "/control/state")
async def show_state(services: SimulatorServices) -> dict[str, Any]:
    """Return counts, settings, faults, and each account with the state of its webhook delivery."""
    waiting = await count_waiting_updates(services.store)
    counts = {
        "messages": await MESSAGES.count(services.store),
        "outbox": await OUTBOX.count(services.store),
        "phones": len(services.phones.by_digits),
        "templates": len(services.templates.by_id),
        "accounts": len(services.accounts.by_id),
        "numbers": len(services.accounts.numbers),
    }
    return {
        "now_ms": services.clock.now_ms(),
        "counts": counts,
        "settings": services.settings.changeable(),
        "webhook_posts": services.webhooks.posts,
        "errors": {str(code): count for code, count in sorted(services.error_counts.items())},
        **await list_faults(services),
        "accounts": [
            account_view(services, account, waiting[account.waba_id]) for account in services.accounts.by_id.values()
        ],
    }


@operation("GET", "/control/readyz")
async def show_readiness(services: SimulatorServices) -> Response:
    """Return 200 if the file is writable and every loop works; else 503 with the errors."""
    checks = {"store": await _write_error(services), "loops": services.failing_loop}
    is_ready = not any(checks.values())
    body = {
        "status": "ready" if is_ready else "not ready",
        "checks": {name: error or "ok" for name, error in checks.items()},
    }
    return json_response(body, 200 if is_ready else 503)


async def _write_error(services: SimulatorServices) -> str:
    try:
        await services.store.check_writable()
    except STORE_FAILURES as error:
        return f"the file cannot be written: {type(error).__name__}"
    return ""


@operation("PUT", "/control/settings")
async def change_settings(services: SimulatorServices, body: Annotated[Struct, SettingsChange]) -> dict[str, Any]:
    """Change settings; the new values survive a restart."""
    await services.settings.change(present_members(body))
    return services.settings.changeable()


@operation("GET", "/control/settings")
async def show_settings(services: SimulatorServices) -> dict[str, Any]:
    """Return the changeable settings and their values."""
    return services.settings.changeable()


@operation("POST", "/control/reset")
async def reset(services: SimulatorServices) -> dict[str, Any]:
    """Reset the simulator; `waypost dev` restores service and simulator to the seed.

    A simulator that runs alone deletes everything except accounts, apps, numbers, subscriptions and
    settings.
    """
    if services.snapshots is not None:
        await services.snapshots.reset()
        return {"reset": True}
    await services.store.reset()
    await services.files.sweep("", frozenset())
    return {"reset": True}


@operation("GET", "/control/deliveries")
async def list_deliveries(services: SimulatorServices, query: DeliveriesQuery) -> dict[str, Any]:
    """Return the messages accepted from businesses, oldest first, paged by `after` and `limit`."""
    limit, phone = query.limit, query.to.lstrip("+")
    rows = await find_deliveries(
        services.store, after=query.after, callback_data=query.callback_data, phone=phone, limit=limit + 1
    )
    now_ms = services.clock.now_ms()
    page = [
        {
            "position": row.position,
            "wamid": row.wamid,
            "callback_data": row.callback_data,
            "to": row.phone,
            "phone_number_id": row.phone_number_id,
            "type": row.type,
            "at_ms": row.at_ms,
            "state": state_at(row, now_ms),
        }
        for row in rows[:limit]
    ]
    return {"deliveries": page, "next": rows[limit - 1].position if len(rows) > limit else None}


@operation("GET", "/control/snapshots")
async def list_snapshots(snapshots: SnapshotStore) -> dict[str, Any]:
    """Return the snapshots."""
    return {"snapshots": await snapshots.snapshots()}


@operation("POST", "/control/snapshots")
async def save_snapshot(body: SnapshotBody, snapshots: SnapshotStore) -> dict[str, Any]:
    """Save a consistent state of service and simulator; replaces an older snapshot of that name."""
    return {"snapshot": await _run_snapshot_work(snapshots.save, body.name)}


@operation("POST", "/control/snapshots/{name}/load")
async def load_snapshot(name: str, snapshots: SnapshotStore) -> dict[str, Any]:
    """Restore a snapshot of service and simulator."""
    await _run_snapshot_work(snapshots.load, name)
    return {"loaded": name}


@operation("DELETE", "/control/snapshots/{name}")
async def drop_snapshot(name: str, snapshots: SnapshotStore) -> dict[str, Any]:
    """Delete a snapshot."""
    await _run_snapshot_work(snapshots.drop, name)
    return {"dropped": name}


@operation("GET", "/control/snapshots/{name}/content")
async def download_snapshot(request: Request, name: str, snapshots: SnapshotStore) -> Response:
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
