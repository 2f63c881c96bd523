"""The control door: how the console, scripts and tests see and move what no client of the operator may."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from waypost.simulator.accounts import Account, App, Number
from waypost.simulator.control_guard import ControlRefused, check_caller
from waypost.simulator.control_phones import (
    change_phone,
    list_phones,
    read_messages,
    show_phone,
    tap_button,
    whole_number,
    write_message,
)
from waypost.simulator.control_shapes import (
    AccountShape,
    NothingShape,
    NumberShape,
    RejectShape,
    SettingsShape,
    WebhookShape,
    given,
    read_shape,
)
from waypost.simulator.nodes import template_node
from waypost.simulator.parts import Parts
from waypost.simulator.requests import Receive, Scope, Send
from waypost.simulator.reviews import REJECTION_REASONS
from waypost.simulator.statuses import Fate, state_at
from waypost.simulator.templates import Decision, Template
from waypost.simulator.webhooks import HandshakeFailed

Call = Callable[[Parts, Request], Awaitable[dict[str, Any]]]
_COUNTED: Final = ("messages", "outbox", "phones", "templates", "accounts", "numbers")
_REMOVED: Final = ("templates", "name_locks", "phones", "windows", "messages", "outbox", "retries")
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
                return _json(await call(self._parts, request))
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
            _account_view(parts, account, waiting.get(account.waba_id, 0))
            for account in parts.accounts.by_id.values()
        ],
    }


async def put_account(parts: Parts, request: Request) -> dict[str, Any]:
    """Make a business account and its app, or change them; webhooks go on as before."""
    waba_id = _id_of(request, "waba_id")
    wish = read_shape(AccountShape, await request.body())
    before = parts.accounts.by_id.get(waba_id)
    app = parts.accounts.apps.get(wish.app_id) or App(wish.app_id, wish.app_secret)
    await parts.accounts.keep_app(replace(app, app_secret=wish.app_secret))
    namespace = wish.namespace or (before.namespace if before else "")
    account = Account(
        waba_id=waba_id,
        name=wish.name,
        namespace=namespace or parts.ids.new().replace("-", "_"),
        token=wish.token,
        app_id=wish.app_id,
        subscribed=before.subscribed if before else True,
        override_uri=before.override_uri if before else "",
    )
    await parts.accounts.keep_account(account)
    parts.webhooks.serve(waba_id)
    return _account_view(parts, account, 0)


async def put_number(parts: Parts, request: Request) -> dict[str, Any]:
    """Make a business number, or change it."""
    phone_number_id = _id_of(request, "phone_number_id")
    wish = read_shape(NumberShape, await request.body())
    digits = wish.phone_number.lstrip("+")
    if wish.waba_id not in parts.accounts.by_id:
        known = ", ".join(parts.accounts.by_id) or "none yet"
        raise ControlRefused(404, field="waba_id", rule="is no account", accepted=known)
    holder = parts.accounts.numbers_by_digits.get(digits)
    if holder is not None and holder.phone_number_id != phone_number_id:
        raise ControlRefused(
            409,
            field="phone_number",
            rule=f"belongs to {holder.phone_number_id}",
            accepted="a number that is not in use",
        )
    number = Number(phone_number_id, wish.waba_id, digits, wish.name, wish.throughput)
    await parts.accounts.keep_number(number)
    return _number_view(number)


async def put_webhook(parts: Parts, request: Request) -> dict[str, Any]:
    """Send an app's webhooks to an address that has shaken hands; an empty one means nowhere."""
    app = parts.accounts.apps.get(_id_of(request, "app_id"))
    wish = read_shape(WebhookShape, await request.body())
    if app is None:
        known = ", ".join(parts.accounts.apps) or "none yet"
        raise ControlRefused(404, field="app_id", rule="is no app", accepted=known)
    if wish.callback_uri:
        try:
            await parts.webhooks.shake_hands(wish.callback_uri, wish.verify_token)
        except HandshakeFailed as failed:
            raise ControlRefused(
                422,
                field="callback_uri",
                rule=str(failed),
                accepted="an address that answers 200 and the bare hub.challenge when "
                "hub.verify_token is right",
            ) from failed
    await parts.accounts.keep_app(
        replace(app, callback_uri=wish.callback_uri, verify_token=wish.verify_token)
    )
    for account in parts.accounts.of_app(app.app_id):
        await parts.webhooks.retry_now(account.waba_id)
    return {"app_id": app.app_id, "callback_uri": wish.callback_uri}


async def list_templates(parts: Parts, _request: Request) -> dict[str, Any]:
    """Every template of every account, with its review."""
    return {"templates": [_template_view(one) for one in parts.templates.by_id.values()]}


async def approve_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Approve a template now."""
    template = _template_of(parts, request)
    read_shape(NothingShape, await request.body())
    return _template_view(await parts.templates.decide(template, Decision("APPROVED")) or template)


async def reject_template(parts: Parts, request: Request) -> dict[str, Any]:
    """Reject a template now."""
    template = _template_of(parts, request)
    wish = read_shape(RejectShape, await request.body())
    if wish.reason not in REJECTION_REASONS:
        accepted = ", ".join(REJECTION_REASONS)
        raise ControlRefused(400, field="reason", rule="is unknown", accepted=accepted)
    explained = wish.reason == "INVALID_FORMAT"  # Source: facts 3.3
    explanation = (wish.explanation, wish.recommendation) if explained else None
    decision = Decision("REJECTED", wish.reason, explanation)
    return _template_view(await parts.templates.decide(template, decision) or template)


async def change_settings(parts: Parts, request: Request) -> dict[str, Any]:
    """Change settings; they stay changed over a restart."""
    await parts.settings.change(given(read_shape(SettingsShape, await request.body())))
    return parts.settings.changeable()


async def reset(parts: Parts, request: Request) -> dict[str, Any]:
    """Remove templates, messages, phones and what was to be told; accounts and numbers stay."""
    read_shape(NothingShape, await request.body())
    await parts.store.run([(f"DELETE FROM {table}", ()) for table in _REMOVED])  # noqa: S608
    parts.templates.forget()
    parts.phones.forget()
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
    ("PUT",  "/control/numbers/{phone_number_id}",      put_number),
    ("PUT",  "/control/apps/{app_id}/webhook",          put_webhook),
    ("GET",  "/control/phones",                         list_phones),
    ("GET",  "/control/phones/{phone}",                 show_phone),
    ("PUT",  "/control/phones/{phone}",                 change_phone),
    ("POST", "/control/phones/{phone}/messages",        write_message),
    ("POST", "/control/phones/{phone}/tap",             tap_button),
    ("POST", "/control/phones/{phone}/read",            read_messages),
    ("GET",  "/control/templates",                      list_templates),
    ("POST", "/control/templates/{template_id}/approve", approve_template),
    ("POST", "/control/templates/{template_id}/reject", reject_template),
    ("GET",  "/control/deliveries",                     list_deliveries),
)
# fmt: on


def _json(answer: dict[str, Any], status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _id_of(request: Request, name: str) -> str:
    value: str = request.path_params[name]
    if not (value.isascii() and value.isdigit() and len(value) <= 32):
        raise ControlRefused(400, field=name, rule="is no id", accepted="1 to 32 digits")
    return value


def _template_of(parts: Parts, request: Request) -> Template:
    template = parts.templates.by_id.get(request.path_params["template_id"])
    if template is None:
        raise ControlRefused(
            404,
            field="template_id",
            rule="is no template",
            accepted="an id from GET /control/templates",
        )
    return template


def _account_view(parts: Parts, account: Account, waiting: int) -> dict[str, Any]:
    destination = parts.accounts.destination(account.waba_id)
    retry = parts.webhooks.retries.get(account.waba_id)
    return {
        "waba_id": account.waba_id,
        "name": account.name,
        "namespace": account.namespace,
        "app_id": account.app_id,
        "callback_uri": destination.uri if destination else None,
        "updates_waiting": waiting,
        "failed_attempts": retry.attempts if retry else 0,
        "next_attempt_ms": retry.next_ms if retry else None,
        "last_failure": retry.reason if retry else None,
        "numbers": [_number_view(one) for one in parts.accounts.numbers_of(account.waba_id)],
    }


def _number_view(number: Number) -> dict[str, Any]:
    return {
        "phone_number_id": number.phone_number_id,
        "waba_id": number.waba_id,
        "phone_number": number.phone_number,
        "name": number.name,
        "throughput": number.throughput,
    }


def _template_view(template: Template) -> dict[str, Any]:
    view = template_node(template, None)
    return {
        **view,
        "waba_id": template.waba_id,
        "rejected_reason": template.rejected_reason,
        "review_due_ms": template.review_due_ms,
    }
