"""The control door: how the console, scripts and tests see and move what no client of the operator may."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from waypost.base.logs import log
from waypost.simulator.control.accounts import (
    account_view,
    put_account,
    put_app,
    put_number,
    put_webhook,
    retry_webhooks,
)
from waypost.simulator.control.acts import (
    answer_message,
    block_business,
    change_marketing,
    change_number,
    pay_order,
    report_business,
    tap_button,
    write_message,
)
from waypost.simulator.control.clock import advance_clock, freeze_clock, run_clock, show_clock, show_due
from waypost.simulator.control.faults import (
    arm_faults,
    disarm_fault,
    disarm_faults,
    faults_view,
    list_faults,
    list_kinds,
    show_fault,
)
from waypost.simulator.control.fleets import drop_fleet, list_fleets, make_fleet, show_fleet
from waypost.simulator.control.guard import BYTES, JSON, ControlRefused, check_caller
from waypost.simulator.control.media import (
    drop_media,
    expire_handle,
    expire_media,
    keep_media,
    list_handles,
    list_media,
    put_standing,
    show_content,
    show_media,
)
from waypost.simulator.control.phones import (
    change_phone,
    list_active,
    list_phones,
    read_messages,
    show_chats,
    show_phone,
    whole_number,
)
from waypost.simulator.control.shapes import NothingShape, SettingsShape, given, read_shape
from waypost.simulator.control.snapshots import (
    download_snapshot,
    drop_snapshot,
    list_snapshots,
    load_snapshot,
    save_snapshot,
)
from waypost.simulator.control.standings import (
    put_flow_status,
    put_hindrance,
    put_identity,
    put_recipients,
    show_flow,
    show_registration,
    upgrade_number,
)
from waypost.simulator.control.templates import (
    act_on_template,
    approve_template,
    delete_template,
    drop_template,
    list_templates,
    pace_template,
    rate_template,
    recategorise_template,
    reject_template,
    release_template,
)
from waypost.simulator.control.tokens import expire_token, list_tokens, make_token, revoke_token
from waypost.simulator.control.updates import tell_account, tell_status
from waypost.simulator.messages.statuses import state_at
from waypost.simulator.parts import Parts
from waypost.simulator.requests import Receive, Scope, Send
from waypost.simulator.store import STORE_FAILURES
from waypost.simulator.tables.messages import MESSAGES, deliveries
from waypost.simulator.tables.updates import OUTBOX, waiting_counts

Call = Callable[[Parts, Request], Awaitable[dict[str, Any] | Response]]
_OF_FILES: Final = "/control/media"

_LOG = log("simulator")


class ControlDoor:
    """The ASGI application under `/control`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._router = Router([Route(path, self._endpoint(call), methods=[method]) for method, path, call in CALLS])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check who asks, then answer."""
        settings = self._parts.settings.value
        request = Request(scope)
        try:
            check_caller(
                request.method,
                request.headers,
                allowed_hosts=settings.allowed_hosts,
                control_token=settings.control_token,
                takes=(JSON, BYTES) if scope["path"] == _OF_FILES else (JSON,),
            )
        except ControlRefused as refused:
            await _json(refused.answer(), refused.status)(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a route answer; whatever it raises becomes JSON, unless an answer has begun."""
        scope["app"] = self  # so that the router raises, and does not answer in text
        has_begun = False

        async def tell(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._router(scope, receive, tell)
        except HTTPException as error:
            text, headers = f"{scope['path']}: {error.detail}", error.headers
            await _json({"error": text}, error.status_code, headers)(scope, receive, send)
        except Exception:  # a defect, or a file that cannot be written
            _LOG.exception("control request failed", path=scope["path"])
            if has_begun:
                raise
            await _json({"error": "the simulator failed; its log says why"}, 500)(scope, receive, send)

    def _endpoint(self, call: Call) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                answer = await call(self._parts, request)
                return answer if isinstance(answer, Response) else _json(answer)
            except ControlRefused as refused:
                return _json(refused.answer(), refused.status)

        return endpoint


async def show_state(parts: Parts, _request: Request) -> dict[str, Any]:
    """Counts, settings, and how each account's delivery is doing."""
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
        **faults_view(parts),
        "accounts": [
            account_view(parts, account, waiting[account.waba_id]) for account in parts.accounts.by_id.values()
        ],
    }


async def show_readiness(parts: Parts, _request: Request) -> Response:
    """200 where the file can be written and every loop works; else 503, and what fails says why."""
    checks = {"store": await _why_not_written(parts), "loops": parts.failing_loop}
    is_ready = not any(checks.values())
    answer = {
        "status": "ready" if is_ready else "not ready",
        "checks": {name: why or "ok" for name, why in checks.items()},
    }
    return _json(answer, 200 if is_ready else 503)


async def _why_not_written(parts: Parts) -> str:
    try:
        await parts.store.write_nothing()
    except STORE_FAILURES as error:
        return f"the file cannot be written: {type(error).__name__}"
    return ""


async def change_settings(parts: Parts, request: Request) -> dict[str, Any]:
    """Change settings; they stay changed over a restart."""
    await parts.settings.change(given(read_shape(SettingsShape, await request.body())))
    return parts.settings.changeable()


async def show_settings(parts: Parts, _request: Request) -> dict[str, Any]:
    """The settings that may change while it runs, and their values."""
    return parts.settings.changeable()


async def reset(parts: Parts, request: Request) -> dict[str, Any]:
    """Start anew: under `dev` both sides are put back to the seed.

    A simulator that stands alone removes all that was made with accounts and numbers, and what was
    to be told; accounts and numbers stay.
    """
    read_shape(NothingShape, await request.body())
    if parts.keeper is not None:
        await parts.keeper.reset()
        return {"reset": True}
    await parts.store.reset()
    await parts.files.sweep("", frozenset())
    return {"reset": True}


async def list_deliveries(parts: Parts, request: Request) -> dict[str, Any]:
    """Every message taken from a business, oldest first, compact, paged by `after` and `limit`."""
    after = whole_number(request, "after", default=0, at_most=2**62)
    limit = whole_number(request, "limit", default=1000, at_most=20_000)
    data = request.query_params.get("callback_data", "")
    phone = request.query_params.get("to", "").lstrip("+")
    rows = await deliveries(parts.store, after=after, callback_data=data, phone=phone, at_most=limit + 1)
    now_ms = parts.clock.now_ms()
    shown = [
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
    return {"deliveries": shown, "next": rows[limit - 1].position if len(rows) > limit else None}


# fmt: off
CALLS: Final[tuple[tuple[str, str, Call], ...]] = (
    # method  path                                      call
    ("GET",  "/control/state",                          show_state),
    ("GET",  "/control/readyz",                         show_readiness),
    ("GET",  "/control/settings",                       show_settings),
    ("PUT",  "/control/settings",                       change_settings),
    ("POST", "/control/reset",                          reset),
    ("GET",  "/control/clock",                          show_clock),
    ("GET",  "/control/clock/due",                      show_due),
    ("POST", "/control/clock/advance",                  advance_clock),
    ("POST", "/control/clock/freeze",                   freeze_clock),
    ("POST", "/control/clock/run",                      run_clock),
    ("GET",  "/control/snapshots",                      list_snapshots),
    ("POST", "/control/snapshots",                      save_snapshot),
    ("GET",  "/control/snapshots/{name}/content",       download_snapshot),
    ("POST", "/control/snapshots/{name}/load",          load_snapshot),
    ("DELETE", "/control/snapshots/{name}",             drop_snapshot),
    ("GET",  "/control/faults",                         list_faults),
    ("POST", "/control/faults",                         arm_faults),
    ("DELETE", "/control/faults",                       disarm_faults),
    ("GET",  "/control/faults/kinds",                   list_kinds),
    ("GET",  "/control/faults/{fault_id}",              show_fault),
    ("DELETE", "/control/faults/{fault_id}",            disarm_fault),
    ("PUT",  "/control/accounts/{waba_id}",             put_account),
    ("POST", "/control/accounts/{waba_id}/retry",       retry_webhooks),
    ("POST", "/control/accounts/{waba_id}/webhooks",    tell_account),
    ("POST", "/control/statuses",                       tell_status),
    ("PUT",  "/control/numbers/{phone_number_id}",      put_number),
    ("PUT",  "/control/apps/{app_id}",                  put_app),
    ("PUT",  "/control/apps/{app_id}/webhook",          put_webhook),
    ("GET",  "/control/phones",                         list_phones),
    ("GET",  "/control/chats",                          list_active),
    ("GET",  "/control/phones/{phone}",                 show_phone),
    ("GET",  "/control/phones/{phone}/chats",           show_chats),
    ("PUT",  "/control/phones/{phone}",                 change_phone),
    ("POST", "/control/phones/{phone}/messages",        write_message),
    ("POST", "/control/phones/{phone}/tap",             tap_button),
    ("POST", "/control/phones/{phone}/answer",          answer_message),
    ("POST", "/control/phones/{phone}/pay",             pay_order),
    ("POST", "/control/phones/{phone}/number",          change_number),
    ("POST", "/control/phones/{phone}/marketing",       change_marketing),
    ("POST", "/control/phones/{phone}/block",           block_business),
    ("POST", "/control/phones/{phone}/report",          report_business),
    ("POST", "/control/phones/{phone}/read",            read_messages),
    ("GET",  "/control/fleets",                         list_fleets),
    ("POST", "/control/fleets",                         make_fleet),
    ("GET",  "/control/fleets/{name}",                  show_fleet),
    ("DELETE", "/control/fleets/{name}",                drop_fleet),
    ("GET",  "/control/templates",                      list_templates),
    ("POST", "/control/templates/{template_id}/approve", approve_template),
    ("POST", "/control/templates/{template_id}/reject", reject_template),
    ("POST", "/control/templates/{template_id}/quality", rate_template),
    ("POST", "/control/templates/{template_id}/category", recategorise_template),
    ("POST", "/control/templates/{template_id}/delete", delete_template),
    ("POST", "/control/templates/{template_id}/pace",   pace_template),
    ("POST", "/control/templates/{template_id}/release", release_template),
    ("POST", "/control/templates/{template_id}/drop",   drop_template),
    ("POST", "/control/templates/{template_id}/{act}",  act_on_template),
    ("GET",  "/control/deliveries",                     list_deliveries),
    ("GET",  "/control/media",                          list_media),
    ("POST", "/control/media",                          keep_media),
    ("GET",  "/control/media/{media_id}",               show_media),
    ("DELETE", "/control/media/{media_id}",             drop_media),
    ("GET",  "/control/media/{media_id}/content",       show_content),
    ("POST", "/control/media/{media_id}/expire",        expire_media),
    ("GET",  "/control/handles",                        list_handles),
    ("POST", "/control/handles/expire",                 expire_handle),
    ("PUT",  "/control/numbers/{phone_number_id}/standing", put_standing),
    ("PUT",  "/control/numbers/{phone_number_id}/hindrance", put_hindrance),
    ("PUT",  "/control/numbers/{phone_number_id}/recipients", put_recipients),
    ("POST", "/control/numbers/{phone_number_id}/upgrade", upgrade_number),
    ("GET",  "/control/numbers/{phone_number_id}/registration", show_registration),
    ("PUT",  "/control/phones/{phone}/identity",        put_identity),
    ("GET",  "/control/flows/{flow_id}",                show_flow),
    ("PUT",  "/control/flows/{flow_id}/status",         put_flow_status),
    ("GET",  "/control/tokens",                         list_tokens),
    ("POST", "/control/tokens",                         make_token),
    ("POST", "/control/tokens/expire",                  expire_token),
    ("POST", "/control/tokens/revoke",                  revoke_token),
)
# fmt: on


def _json(answer: dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")
