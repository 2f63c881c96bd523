"""The control door: how the console, scripts and tests see and move what no client of the operator may."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from waypost.simulator.control_accounts import (
    account_view,
    put_account,
    put_number,
    put_webhook,
    retry_webhooks,
)
from waypost.simulator.control_acts import (
    answer_message,
    change_marketing,
    change_number,
    tap_button,
    write_message,
)
from waypost.simulator.control_guard import ControlRefused, check_caller
from waypost.simulator.control_media import (
    expire_handle,
    expire_media,
    keep_media,
    list_handles,
    list_media,
    put_standing,
    show_content,
)
from waypost.simulator.control_phones import (
    change_phone,
    list_phones,
    read_messages,
    show_phone,
    whole_number,
)
from waypost.simulator.control_shapes import (
    NothingShape,
    SettingsShape,
    given,
    read_shape,
)
from waypost.simulator.control_templates import (
    act_on_template,
    approve_template,
    delete_template,
    list_templates,
    rate_template,
    recategorise_template,
    reject_template,
)
from waypost.simulator.control_updates import tell_account, tell_status
from waypost.simulator.parts import Parts
from waypost.simulator.records import PICTURE_PREFIX
from waypost.simulator.requests import Receive, Scope, Send
from waypost.simulator.statuses import Fate, state_at

Call = Callable[[Parts, Request], Awaitable[dict[str, Any] | Response]]
_COUNTED: Final = ("messages", "outbox", "phones", "templates", "accounts", "numbers")
_REMOVED: Final = (
    "templates", "name_locks", "phones", "windows", "messages", "outbox", "retries",
    "media", "uploads", "flows", "records", "blocks", "phone_users", "marketing_stops",
)  # fmt: skip
_DELIVERIES: Final = """
SELECT position, wamid, callback_data, phone, phone_number_id, type, at_ms,
    delivered_ms, read_ms, failed_ms, failed_code
FROM messages WHERE is_inbound=0 AND position>? AND (?='' OR callback_data=?) AND (?='' OR phone=?)
ORDER BY position LIMIT ?
"""


class ControlDoor:
    """The ASGI application under `/control`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._router = Router(
            [Route(path, self._endpoint(call), methods=[method]) for method, path, call in CALLS]
        )

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
            )
        except ControlRefused as refused:
            await _json(refused.answer(), refused.status)(scope, receive, send)
        else:
            await self._router(scope, receive, send)

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
    counts = {
        table: (await parts.store.rows(f"SELECT count(*) FROM {table}"))[0][0]  # noqa: S608
        for table in _COUNTED
    }
    waiting = dict(await parts.store.rows("SELECT waba_id, count(*) FROM outbox GROUP BY waba_id"))
    return {
        "now_ms": parts.clock.now_ms(),
        "counts": counts,
        "settings": parts.settings.changeable(),
        "webhook_posts": parts.webhooks.posts,
        "accounts": [
            account_view(parts, account, waiting.get(account.waba_id, 0))
            for account in parts.accounts.by_id.values()
        ],
    }


async def change_settings(parts: Parts, request: Request) -> dict[str, Any]:
    """Change settings; they stay changed over a restart."""
    await parts.settings.change(given(read_shape(SettingsShape, await request.body())))
    return parts.settings.changeable()


async def reset(parts: Parts, request: Request) -> dict[str, Any]:
    """Remove all that was made with accounts and numbers, and what was to be told; they stay."""
    read_shape(NothingShape, await request.body())
    await parts.store.run([(f"DELETE FROM {table}", ()) for table in _REMOVED])  # noqa: S608
    parts.templates.forget()
    parts.phones.forget()
    parts.flows.forget()
    parts.records.forget()
    parts.blocks.forget()
    await parts.media.forget()
    await parts.uploads.forget()
    await parts.files.sweep(PICTURE_PREFIX, frozenset())
    parts.limits.clear()
    parts.webhooks.retries.clear()
    return {"reset": True}


async def list_deliveries(parts: Parts, request: Request) -> dict[str, Any]:
    """Every message taken from a business, oldest first, compact, paged by `after` and `limit`."""
    after = whole_number(request, "after", default=0, at_most=2**62)
    limit = whole_number(request, "limit", default=1000, at_most=20_000)
    data = request.query_params.get("callback_data", "")
    phone = request.query_params.get("to", "").lstrip("+")
    rows = await parts.store.rows(_DELIVERIES, (after, data, data, phone, phone, limit + 1))
    now_ms = parts.clock.now_ms()
    shown = [
        {
            "position": row[0],
            "wamid": row[1],
            "callback_data": row[2],
            "to": row[3],
            "phone_number_id": row[4],
            "type": row[5],
            "at_ms": row[6],
            "state": state_at(Fate(*row[7:11]), now_ms),
        }
        for row in rows[:limit]
    ]
    return {"deliveries": shown, "next": rows[limit - 1][0] if len(rows) > limit else None}


# fmt: off
CALLS: Final[tuple[tuple[str, str, Call], ...]] = (
    # method  path                                      call
    ("GET",  "/control/state",                          show_state),
    ("PUT",  "/control/settings",                       change_settings),
    ("POST", "/control/reset",                          reset),
    ("PUT",  "/control/accounts/{waba_id}",             put_account),
    ("POST", "/control/accounts/{waba_id}/retry",       retry_webhooks),
    ("POST", "/control/accounts/{waba_id}/webhooks",    tell_account),
    ("POST", "/control/statuses",                       tell_status),
    ("PUT",  "/control/numbers/{phone_number_id}",      put_number),
    ("PUT",  "/control/apps/{app_id}/webhook",          put_webhook),
    ("GET",  "/control/phones",                         list_phones),
    ("GET",  "/control/phones/{phone}",                 show_phone),
    ("PUT",  "/control/phones/{phone}",                 change_phone),
    ("POST", "/control/phones/{phone}/messages",        write_message),
    ("POST", "/control/phones/{phone}/tap",             tap_button),
    ("POST", "/control/phones/{phone}/answer",          answer_message),
    ("POST", "/control/phones/{phone}/number",          change_number),
    ("POST", "/control/phones/{phone}/marketing",       change_marketing),
    ("POST", "/control/phones/{phone}/read",            read_messages),
    ("GET",  "/control/templates",                      list_templates),
    ("POST", "/control/templates/{template_id}/approve", approve_template),
    ("POST", "/control/templates/{template_id}/reject", reject_template),
    ("POST", "/control/templates/{template_id}/quality", rate_template),
    ("POST", "/control/templates/{template_id}/category", recategorise_template),
    ("POST", "/control/templates/{template_id}/delete", delete_template),
    ("POST", "/control/templates/{template_id}/{act}",  act_on_template),
    ("GET",  "/control/deliveries",                     list_deliveries),
    ("GET",  "/control/media",                          list_media),
    ("POST", "/control/media",                          keep_media),
    ("GET",  "/control/media/{media_id}/content",       show_content),
    ("POST", "/control/media/{media_id}/expire",        expire_media),
    ("GET",  "/control/handles",                        list_handles),
    ("POST", "/control/handles/expire",                 expire_handle),
    ("PUT",  "/control/numbers/{phone_number_id}/standing", put_standing),
)
# fmt: on


def _json(answer: dict[str, Any], status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")
