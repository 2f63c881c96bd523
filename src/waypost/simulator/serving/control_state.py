"""Control API calls for the simulator as a whole: state, settings, snapshots, accepted messages."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.responses import Response

from waypost.simulator.accounts.control import AccountView, account_view
from waypost.simulator.apis.control_operations import ControlOperations, json_response, present_members, view_of
from waypost.simulator.apis.field_types import Position
from waypost.simulator.faults.model import FaultView, all_faults, fault_view
from waypost.simulator.state.phones import PHONES
from waypost.simulator.state.settings import ChangeableSettings, SettingsChange
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.store import STORE_FAILURES
from waypost.simulator.storage.tables.messages import MESSAGES
from waypost.simulator.storage.tables.updates import COUNT_WAITING_UPDATES, OUTBOX
from waypost.simulator.templates.model import TEMPLATES

operation = ControlOperations()


class StateView(Struct, frozen=True):
    """Counts, settings, faults and accounts; errors by their code."""

    now_ms: int
    counts: dict[str, int]
    settings: ChangeableSettings
    webhook_posts: int
    errors: dict[str, int]
    faults: list[FaultView]
    accounts: list[AccountView]


@operation("GET", "/control/state")
async def show_state(state: SimulatorState) -> StateView:
    """Return counts, settings, faults, and each account with the state of its webhook delivery."""
    waiting = await state.store.read(lambda reader: dict(reader.execute(COUNT_WAITING_UPDATES).fetchall()))
    counts = {
        "messages": await MESSAGES.count(state.store),
        "outbox": await OUTBOX.count(state.store),
        "phones": len(state.values(PHONES)),
        "templates": len(state.values(TEMPLATES)),
        "accounts": len(state.accounts.by_id),
        "numbers": len(state.accounts.numbers),
    }
    return StateView(
        now_ms=state.clock.now_ms(),
        counts=counts,
        settings=state.settings.changeable(),
        webhook_posts=state.webhooks.posts_begun,
        errors={str(code): count for code, count in sorted(state.error_counts.items())},
        faults=[fault_view(state, fault) for fault in all_faults(state)],
        accounts=[
            account_view(state, account, waiting.get(account.waba_id, 0)) for account in state.accounts.by_id.values()
        ],
    )


@operation("GET", "/control/readyz", status=str, checks=dict[str, str])
async def show_readiness(state: SimulatorState) -> Response:
    """Return 200 if the file is writable and every loop works; else 503 with the errors."""
    checks = {"store": "", "loops": state.failing_loop}
    try:
        await state.store.check_writable()
    except STORE_FAILURES as error:
        checks["store"] = f"the file cannot be written: {type(error).__name__}"
    is_ready = not any(checks.values())
    body = {
        "status": "ready" if is_ready else "not ready",
        "checks": {name: error or "ok" for name, error in checks.items()},
    }
    return json_response(body, 200 if is_ready else 503)


@operation("PUT", "/control/settings")
async def change_settings(state: SimulatorState, body: Annotated[Struct, SettingsChange]) -> ChangeableSettings:
    """Change settings; the new values survive a restart."""
    await state.settings.change(present_members(body))
    state.endpoints_changed.set()  # the interval of health checks may be another
    return state.settings.changeable()


@operation("GET", "/control/settings")
async def show_settings(state: SimulatorState) -> ChangeableSettings:
    """Return the changeable settings and their values."""
    return state.settings.changeable()


@operation("POST", "/control/reset", reset=bool)
async def reset(state: SimulatorState) -> dict[str, Any]:
    """Reset the simulator; `waypost dev` restores service and simulator to the seed.

    A simulator that runs alone deletes everything except accounts, apps, numbers, subscriptions and
    settings.
    """
    if state.snapshots is not None:
        await state.snapshots.reset()
        return {"reset": True}
    await state.store.reset()
    await state.files.sweep("", frozenset())
    return {"reset": True}


class AcceptedMessage(Struct, frozen=True):
    """A message that was accepted from a business."""

    position: int
    wamid: str
    callback_data: str | None
    to: str
    phone_number_id: str
    type: str
    at_ms: int
    state: str


@operation("GET", "/control/deliveries", deliveries=list[AcceptedMessage], next=int | None)
async def list_deliveries(
    state: SimulatorState,
    *,
    after: Position = 0,
    limit: Annotated[int, Meta(ge=0, le=20_000)] = 1000,
    callback_data: str = "",
    to: str = "",
) -> dict[str, Any]:
    """Return the messages accepted from businesses, oldest first, paged by `after` and `limit`."""
    rows = await MESSAGES.rows(
        state.store,
        "is_inbound=0 AND position>:after AND (:callback_data='' OR callback_data=:callback_data) "
        "AND (:phone='' OR phone=:phone) ORDER BY position LIMIT :limit",
        excluded_columns=("content",),
        after=after,
        callback_data=callback_data,
        phone=to.lstrip("+"),
        limit=limit + 1,
    )
    now_ms = state.clock.now_ms()
    page = [view_of(AcceptedMessage, row, to=row.phone, state=row.state_at(now_ms)) for row in rows[:limit]]
    return {"deliveries": page, "next": rows[limit - 1].position if len(rows) > limit else None}
