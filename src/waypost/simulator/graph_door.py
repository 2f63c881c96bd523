"""The Graph side: what the operator's documentation promises to a client, under any version.

A path names an object and perhaps an edge of it; which route answers depends on what kind of object
the id belongs to. Objects of others look like objects that are not there.
"""

from waypost.base.batching import Stopped
from waypost.base.logs import log
from waypost.simulator.accounts import Account, App, Number
from waypost.simulator.errors import (
    TITLES,
    GraphRefused,
    no_such_object,
    not_authorised,
    trace_id,
)
from waypost.simulator.flow import Flow
from waypost.simulator.graph import FILE_ROUTES, ROUTES, STREAMED, WITHOUT_TOKEN, Answer
from waypost.simulator.graph_templates import LIBRARY_ID, list_library
from waypost.simulator.graph_uploads import upload_id_of
from waypost.simulator.media import Media
from waypost.simulator.parts import Parts
from waypost.simulator.requests import (
    Call,
    ClientGone,
    Download,
    Receive,
    Scope,
    Send,
    read_call,
    send_download,
    send_json,
    with_form_fields,
)
from waypost.simulator.template import Template
from waypost.simulator.uploads import Upload

_LOG = log("simulator")
Thing = Account | App | Flow | Media | Number | Template | Upload | None


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
            if isinstance(answer, Download):
                await send_download(send, answer)
                return
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

    async def _answer(self, call: Call) -> Answer | Download:
        parts = self._parts
        file_route = FILE_ROUTES.get((call.method, call.object_id))
        if file_route is not None and call.object_id in WITHOUT_TOKEN:
            return await file_route(parts, call)
        if not call.token:
            raise not_authorised("An access token is required to request this resource.")
        if not parts.accounts.is_token(call.token):
            raise not_authorised("Invalid OAuth access token - Cannot parse access token")
        if file_route is not None:
            return await file_route(parts, call)
        if (call.method, call.object_id) == ("GET", LIBRARY_ID):
            return await list_library(parts, call, None)
        thing, waba_ids = self._find(call.object_id)
        owners = [parts.accounts.by_id.get(waba_id) for waba_id in waba_ids]
        if not any(account is not None and account.token == call.token for account in owners):
            raise no_such_object(call.method, call.object_id)
        route = ROUTES.get((type(thing), call.method, call.edge))
        if route is None:
            raise no_such_object(call.method, call.object_id)
        if call.body is not None and route not in STREAMED:
            call = await with_form_fields(call)
        return await route(parts, call, thing)

    def _find(self, object_id: str) -> tuple[Thing, list[str]]:
        """What an id belongs to, and the accounts that own it; an app may have several."""
        parts = self._parts
        number = parts.accounts.numbers.get(object_id)
        if number is not None:
            return number, [number.waba_id]
        account = parts.accounts.by_id.get(object_id)
        if account is not None:
            return account, [account.waba_id]
        template = parts.templates.by_id.get(object_id)
        if template is not None:
            return template, [template.waba_id]
        return self._find_more(object_id)

    def _find_more(self, object_id: str) -> tuple[Thing, list[str]]:
        parts = self._parts
        media = parts.media.find(object_id)
        if media is not None:
            return media, [parts.accounts.numbers[media.phone_number_id].waba_id]
        flow = parts.flows.by_id.get(object_id)
        if flow is not None:
            return flow, [flow.waba_id]
        app = parts.accounts.apps.get(object_id)
        if app is not None:
            return app, [account.waba_id for account in parts.accounts.of_app(app.app_id)]
        upload = parts.uploads.find(upload_id_of(object_id))
        if upload is not None:
            return upload, [upload.user_id]
        return None, []

    def _unable(self, code: int) -> tuple[int, Answer]:
        status, title = TITLES[code]
        error = {"message": title, "type": "OAuthException", "code": code, "is_transient": True}
        return status, GraphRefused(status, error).answer(self._parts.ids)
