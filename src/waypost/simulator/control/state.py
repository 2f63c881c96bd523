"""Control API calls for the simulator as a whole: state, settings, snapshots, accepted messages."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from waypost.simulator.control.accounts import account_view
from waypost.simulator.control.endpoints import json_response
from waypost.simulator.control.faults import list_faults
from waypost.simulator.control.media import file_answer
from waypost.simulator.control.request_structs import Body, Query, given
from waypost.simulator.field_types import Position, accepts
from waypost.simulator.messages.statuses import state_at
from waypost.simulator.services import Parts
from waypost.simulator.settings import SettingsChange
from waypost.simulator.store import STORE_FAILURES
from waypost.simulator.tables.messages import MESSAGES, deliveries
from waypost.simulator.tables.updates import OUTBOX, waiting_counts
from waypost.simulator.violation import BrokenRule
from waypost.simulator.whole_state import Keeper, NotAtRest, NotKept, UnknownSnapshot

_SNAPSHOT_NAME = "1 to 64 letters, digits, hyphens and underscores, a letter or digit first"


class SnapshotBody(Body, frozen=True):
    """The name of a snapshot."""

    name: Annotated[str, accepts(_SNAPSHOT_NAME, "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class DeliveriesQuery(Query, frozen=True):
    """Filter and page of the accepted messages."""

    after: Position = 0
    limit: Annotated[int, Meta(ge=0, le=20_000)] = 1000
    callback_data: str = ""
    to: str = ""


async def show_state(parts: Parts) -> dict[str, Any]:
    """Return counts, settings, faults, and each account with the state of its webhook delivery."""
    waiting = await waiting_counts(parts.store)
    counts = {
        "messages": await MESSAGES.count(parts.store),
        "outbox": await OUTBOX.count(parts.store),
        "phones": len(parts.phones.all),
        "templates": len(parts.templates.by_id),
        "accounts": len(parts.accounts.by_id),
        "numbers": len(parts.accounts.numbers),
    }
    return {
        "now_ms": parts.clock.now_ms(),
        "counts": counts,
        "settings": parts.settings.changeable(),
        "webhook_posts": parts.webhooks.posts,
        "refused": {str(code): count for code, count in sorted(parts.refused.items())},
        **await list_faults(parts),
        "accounts": [
            account_view(parts, account, waiting[account.waba_id]) for account in parts.accounts.by_id.values()
        ],
    }


async def show_readiness(parts: Parts) -> Response:
    """Return 200 if the file is writable and every loop works; else 503 with the errors."""
    checks = {"store": await _why_not_written(parts), "loops": parts.failing_loop}
    is_ready = not any(checks.values())
    body = {
        "status": "ready" if is_ready else "not ready",
        "checks": {name: error or "ok" for name, error in checks.items()},
    }
    return json_response(body, 200 if is_ready else 503)


async def _why_not_written(parts: Parts) -> str:
    try:
        await parts.store.write_nothing()
    except STORE_FAILURES as error:
        return f"the file cannot be written: {type(error).__name__}"
    return ""


async def change_settings(parts: Parts, body: Annotated[Struct, SettingsChange]) -> dict[str, Any]:
    """Change settings; the new values survive a restart."""
    await parts.settings.change(given(body))
    return parts.settings.changeable()


async def show_settings(parts: Parts) -> dict[str, Any]:
    """Return the changeable settings and their values."""
    return parts.settings.changeable()


async def reset(parts: Parts) -> dict[str, Any]:
    """Reset the simulator; `waypost dev` restores service and simulator to the seed.

    A simulator that runs alone deletes everything except accounts, apps, numbers, subscriptions and
    settings.
    """
    if parts.keeper is not None:
        await parts.keeper.reset()
        return {"reset": True}
    await parts.store.reset()
    await parts.files.sweep("", frozenset())
    return {"reset": True}


async def list_deliveries(parts: Parts, query: DeliveriesQuery) -> dict[str, Any]:
    """Return the messages accepted from businesses, oldest first, paged by `after` and `limit`."""
    limit, phone = query.limit, query.to.lstrip("+")
    rows = await deliveries(
        parts.store, after=query.after, callback_data=query.callback_data, phone=phone, at_most=limit + 1
    )
    now_ms = parts.clock.now_ms()
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


async def list_snapshots(keeper: Keeper) -> dict[str, Any]:
    """Return the snapshots."""
    return {"snapshots": await keeper.snapshots()}


async def save_snapshot(body: SnapshotBody, keeper: Keeper) -> dict[str, Any]:
    """Save a consistent state of service and simulator; replaces an older snapshot of that name."""
    return {"snapshot": await _kept(keeper.save, body.name)}


async def load_snapshot(name: str, keeper: Keeper) -> dict[str, Any]:
    """Restore a snapshot of service and simulator."""
    await _kept(keeper.load, name)
    return {"loaded": name}


async def drop_snapshot(name: str, keeper: Keeper) -> dict[str, Any]:
    """Delete a snapshot."""
    await _kept(keeper.drop, name)
    return {"dropped": name}


async def download_snapshot(request: Request, name: str, keeper: Keeper) -> Response:
    """Return a snapshot's file, for `waypost dev --from`."""
    headers = {"content-disposition": f'attachment; filename="{name}.waypost"'}

    async def send_file(name: str) -> Response:
        try:
            return await file_answer(request, keeper.file_of(name), "application/zip", headers)
        except FileNotFoundError:
            raise UnknownSnapshot(name) from None

    return await _kept(send_file, name)


async def _kept(work: Callable[[str], Awaitable[Any]], name: str) -> Any:
    try:
        return await work(name)
    except UnknownSnapshot as error:
        accepted = "a name from GET /control/snapshots"
        raise BrokenRule("name", str(error), accepted, status=404) from error
    except NotAtRest as error:
        accepted = "a moment at which nothing is in flight: try again when that has ended"
        raise BrokenRule("snapshot", str(error), accepted, status=409) from error
    except NotKept as error:
        raise BrokenRule("name", str(error), "", status=409) from error
