"""The Graph side: what the operator's documentation promises to a client, under any version.

A path names an object and perhaps an edge of it; which route answers depends on what kind of object
the id belongs to. Objects of others look like objects that are not there.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from waypost.base.batching import Stopped
from waypost.base.logs import log
from waypost.simulator.accounts import Account, Number
from waypost.simulator.errors import (
    TITLES,
    GraphRefused,
    bad_parameter,
    no_such_object,
    not_authorised,
    trace_id,
)
from waypost.simulator.lists import page
from waypost.simulator.loose import a_text
from waypost.simulator.nodes import account_node, number_node, template_node
from waypost.simulator.parts import Parts
from waypost.simulator.requests import Call, ClientGone, Receive, Scope, Send, read_call, send_json
from waypost.simulator.template import Template
from waypost.simulator.template_filters import is_wished
from waypost.simulator.webhooks import HandshakeFailed

_LOG = log("simulator")
_SUCCESS: Final = {"success": True}
Answer = dict[str, Any]
Route = Callable[[Parts, Call, Any], Awaitable[Answer]]


class GraphDoor:
    """The ASGI application of the Graph side."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever comes, the answer is the operator's envelope."""
        version = "v25.0"
        try:
            call = await read_call(scope, receive)
            version = call.version
            status, answer = 200, await self._answer(call)
        except ClientGone:
            return
        except GraphRefused as refused:
            status, answer = refused.status, refused.answer(self._parts.ids)
        except Stopped:
            status, answer = self._unable(2)
        except Exception as error:  # noqa: BLE001  a defect is logged here and answered in shape
            _LOG.error("graph request failed", path=scope["path"], error=repr(error), exc_info=True)
            status, answer = self._unable(1)
        headers = (
            (b"facebook-api-version", version.encode()),
            (b"x-fb-trace-id", trace_id(self._parts.ids).encode()),
        )
        await send_json(send, status, answer, headers)

    async def _answer(self, call: Call) -> Answer:
        parts = self._parts
        if not call.token:
            raise not_authorised("An access token is required to request this resource.")
        if not parts.accounts.is_token(call.token):
            raise not_authorised("Invalid OAuth access token - Cannot parse access token")
        thing, waba_id = self._find(call.object_id)
        account = parts.accounts.by_id.get(waba_id)
        if account is None or account.token != call.token:
            raise no_such_object(call.method, call.object_id)
        route = ROUTES.get((type(thing), call.method, call.edge))
        if route is None:
            raise no_such_object(call.method, call.object_id)
        return await route(parts, call, thing)

    def _find(self, object_id: str) -> tuple[Account | Number | Template | None, str]:
        """What an id belongs to, and the account that owns it."""
        parts = self._parts
        number = parts.accounts.numbers.get(object_id)
        if number is not None:
            return number, number.waba_id
        account = parts.accounts.by_id.get(object_id)
        if account is not None:
            return account, account.waba_id
        template = parts.templates.by_id.get(object_id)
        return template, template.waba_id if template else ""

    def _unable(self, code: int) -> tuple[int, Answer]:
        status, title = TITLES[code]
        error = {"message": title, "type": "OAuthException", "code": code, "is_transient": True}
        return status, GraphRefused(status, error).answer(self._parts.ids)


async def show_account(_parts: Parts, call: Call, account: Account) -> Answer:
    """A business account's fields. Source: facts 1, "WABA node"."""
    return account_node(account, call.query.get("fields"))


async def show_number(_parts: Parts, call: Call, number: Number) -> Answer:
    """A phone number's fields. Source: facts 1, "Phone node"."""
    return number_node(number, call.query.get("fields"))


async def show_template(_parts: Parts, call: Call, template: Template) -> Answer:
    """A template's fields. Source: facts 2.1."""
    return template_node(template, call.query.get("fields"))


async def list_numbers(parts: Parts, call: Call, account: Account) -> Answer:
    """An account's numbers. Source: facts 1, "Phone list"."""
    fields = call.query.get("fields")
    return page(
        call,
        parts.accounts.numbers_of(account.waba_id),
        lambda number: number.phone_number_id,
        lambda number: number_node(number, fields),
    )


async def list_templates(parts: Parts, call: Call, account: Account) -> Answer:
    """An account's templates, filtered. Source: facts 2.1."""
    fields = call.query.get("fields")
    wished = [
        template
        for template in parts.templates.of(account.waba_id)
        if is_wished(template, call.query)
    ]
    return page(
        call,
        wished,
        lambda template: f"{template.created_ms:015d}.{template.template_id}",
        lambda template: template_node(template, fields),
    )


async def create_template(parts: Parts, call: Call, account: Account) -> Answer:
    """Take a template for review. Source: facts 2.1."""
    template = await parts.templates.create(account.waba_id, call.fields)
    return {"id": template.template_id, "status": template.status, "category": template.category}


async def edit_template(parts: Parts, call: Call, template: Template) -> Answer:
    """Change a template; it is reviewed again. Source: facts 2.6."""
    await parts.templates.edit(template, call.fields)
    return _SUCCESS


async def delete_template(parts: Parts, call: Call, account: Account) -> Answer:
    """Delete one language of a template, or all of them. Source: facts 2.1."""
    name = a_text(call.fields.get("name"))
    if not name:
        raise bad_parameter("The parameter name is required.")
    if "hsm_ids" in call.fields:
        raise bad_parameter("Param hsm_ids cannot be used together with name.")
    template_id = call.fields.get("hsm_id")
    await parts.templates.delete(
        account.waba_id, name, None if template_id is None else str(template_id)
    )
    return _SUCCESS


async def send_message(parts: Parts, call: Call, number: Number) -> Answer:
    """Take a message, or note that one was read. Source: facts 4."""
    if "status" in call.fields:
        if call.fields["status"] != "read":
            raise bad_parameter("Param status must be one of {read}.")
        await parts.messages.mark_read(number, call.fields.get("message_id"))
        return _SUCCESS
    return await parts.messages.take(number, call.fields, call.raw)


async def subscribe(parts: Parts, call: Call, account: Account) -> Answer:
    """Send the account's webhooks to its app, or to an address of its own. Source: facts 1."""
    uri = a_text(call.fields.get("override_callback_uri")) or ""
    if uri:
        try:
            await parts.webhooks.shake_hands(uri, a_text(call.fields.get("verify_token")) or "")
        except HandshakeFailed as failed:
            message = f"(#2200) Callback verification failed with the following errors: {failed}"
            error = {"message": message, "type": "OAuthException", "code": 2200}
            raise GraphRefused(400, error) from failed
    await parts.accounts.subscribe(account, override_uri=uri)
    await parts.webhooks.retry_now(account.waba_id)
    return _SUCCESS


async def unsubscribe(parts: Parts, _call: Call, account: Account) -> Answer:
    """Stop the account's webhooks. Source: facts 1."""
    await parts.accounts.unsubscribe(account)
    return _SUCCESS


async def list_subscriptions(_parts: Parts, _call: Call, account: Account) -> Answer:
    """Who hears of the account. Source: facts 1."""
    if not account.subscribed:
        return {"data": []}
    app: dict[str, Any] = {
        "whatsapp_business_api_data": {
            "id": account.app_id,
            "name": account.name,
            "link": f"https://www.facebook.com/games/?app_id={account.app_id}",
        }
    }
    if account.override_uri:
        app["override_callback_uri"] = account.override_uri
    return {"data": [app]}


# fmt: off
ROUTES: Final[dict[tuple[type, str, str], Route]] = {
    # object    method    edge
    (Number,   "POST",   "messages"):          send_message,
    (Number,   "GET",    ""):                  show_number,
    (Account,  "GET",    ""):                  show_account,
    (Account,  "GET",    "phone_numbers"):     list_numbers,
    (Account,  "GET",    "message_templates"): list_templates,
    (Account,  "POST",   "message_templates"): create_template,
    (Account,  "DELETE", "message_templates"): delete_template,
    (Account,  "GET",    "subscribed_apps"):   list_subscriptions,
    (Account,  "POST",   "subscribed_apps"):   subscribe,
    (Account,  "DELETE", "subscribed_apps"):   unsubscribe,
    (Template, "GET",    ""):                  show_template,
    (Template, "POST",   ""):                  edit_template,
}
# fmt: on
