"""The ASGI application of the Graph API, as the operator documents it, under any version.

A path names an object and an optional edge; the route depends on the object's type. Objects of other
accounts look like unknown ones.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from waypost.base.batching import Stopped
from waypost.base.telemetry.logs import log
from waypost.simulator.accounts.accounts import Account, App, Number
from waypost.simulator.accounts.call_usage import COUNTED
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.accounts.tokens import check_permission
from waypost.simulator.errors import TITLES, GraphRefused, no_such_object, trace_id
from waypost.simulator.graph.call_names import ROOT_NAMES, name_of
from waypost.simulator.graph.permissions import permission_of
from waypost.simulator.graph.routes import FILE_ROUTES, ROOT_ROUTES, ROUTES, STREAMED, WITHOUT_TOKEN, Answer
from waypost.simulator.graph.uploads import upload_id_of
from waypost.simulator.media.media import Media
from waypost.simulator.media.uploads import Upload
from waypost.simulator.messages.call_faults import Provoked, Work
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
from waypost.simulator.services import Parts
from waypost.simulator.templates.template import Template
from waypost.simulator.webhooks.faulted_responses import Spoiled

_THROTTLES: Final = frozenset({130429, 131048, 131056})
_LOG = log("simulator")
Thing = Account | App | Flow | Media | Number | Template | Upload | None


class GraphDoor:
    """The ASGI application of the Graph API."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; every error response is the operator's envelope."""
        version = "v25.0"
        extra_headers: list[tuple[bytes, bytes]] = []
        try:
            call = await read_call(scope, receive)
            version = call.version
            status, response = 200, await self._answer(call, extra_headers)
            if isinstance(response, Spoiled):
                response = await response.send(scope, receive, send)
                if response is None:
                    return
                if isinstance(response, GraphRefused):
                    raise response  # noqa: TRY301  a late error gets the same response
            if isinstance(response, Download):
                await send_download(send, response)
                return
        except ClientGone:
            return
        except GraphRefused as error:
            status, response = self._refusal(error, extra_headers)
        except Stopped:
            status, response = self._unable(2)
        except Exception as error:  # noqa: BLE001  a defect is logged here; its response has the usual form
            _LOG.error("graph request failed", path=scope["path"], error=repr(error), exc_info=True)
            status, response = self._unable(1)
        headers = (
            (b"facebook-api-version", version.encode()),
            (b"x-fb-request-id", trace_id(self._parts.ids).encode()),
            (b"x-fb-trace-id", trace_id(self._parts.ids).encode()),
            *extra_headers,
        )
        await send_json(send, status, response, headers)

    async def _answer(self, call: Call, told: list[tuple[bytes, bytes]]) -> Answer | Download | Spoiled:
        """Return a call's response; adds response headers, for an error response too, to `headers`."""
        parts = self._parts
        file_route = FILE_ROUTES.get((call.method, call.object_id))
        if file_route is not None and call.object_id in WITHOUT_TOKEN:
            return await self._of_no_object(call, partial(file_route, parts))
        root_route = ROOT_ROUTES.get((call.method, call.object_id))
        if root_route is not None and call.object_id in WITHOUT_TOKEN:
            return await self._of_no_object(call, lambda call: root_route(parts, call, None))
        token = parts.tokens.check(call.token)
        call = replace(call, app_id=parts.tokens.app_of(token))
        if file_route is not None:
            return await self._of_no_object(call, partial(file_route, parts))
        if root_route is not None:
            return await self._of_no_object(call, lambda call: root_route(parts, call, None))
        thing, waba_ids = self._find(call.object_id)
        route = ROUTES.get((type(thing), call.method, call.edge))
        is_own_app = isinstance(thing, App) and thing.app_id == call.app_id
        if route is None or not (is_own_app or token.opens(waba_ids)):
            raise no_such_object(call.method, call.object_id)
        candidates = token.waba_ids if is_own_app else waba_ids
        waba_id = next((candidate for candidate in candidates if candidate in token.waba_ids), "")
        if waba_id:
            told += parts.usage.headers(waba_id)
        check_permission(token, permission_of(type(thing), call.edge))
        if isinstance(thing, Account) and call.edge in COUNTED:
            parts.usage.spend(thing)
        if call.body is not None and route not in STREAMED:
            call = await with_form_fields(call)
        name = name_of((type(thing), call.method, call.edge), call.fields)
        return await parts.call_faults.carry_out(call, name, waba_id, thing, lambda call: route(parts, call, thing))

    async def _of_no_object(self, call: Call, work: Work) -> Answer | Download | Spoiled:
        """Carry out a call whose path names no object of an account; the URL of a file may name the file."""
        name = ROOT_NAMES[call.method, call.object_id]
        media = self._parts.media.find(call.query.get("mid", ""))
        waba_id = self._find(media.media_id)[1][0] if media is not None else ""
        return await self._parts.call_faults.carry_out(call, name, waba_id, media, work)

    def _find(self, object_id: str) -> tuple[Thing, list[str]]:
        """Return the object of an id, and the accounts that own it; an app may have several."""
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

    def _refusal(self, refused: GraphRefused, told: list[tuple[bytes, bytes]]) -> tuple[int, Answer]:
        """Return the status and body of an error; a setting defines the status of throttling. Source: facts 13."""
        settings = self._parts.settings.value
        self._parts.refused[refused.error.get("code", 0)] += 1
        status = refused.status
        if isinstance(refused, Provoked):
            if refused.retry_after_s is not None:
                told.append((b"retry-after", str(refused.retry_after_s).encode()))
            return status, refused.answer(self._parts.ids)
        if refused.error.get("code") in _THROTTLES:
            status = settings.throttle_status
        if status == 429 and settings.tells_retry_after:
            told.append((b"retry-after", str(refused.retry_after_s or 1).encode()))
        return status, refused.answer(self._parts.ids)

    def _unable(self, code: int) -> tuple[int, Answer]:
        status, title = TITLES[code]
        error = {"message": title, "type": "OAuthException", "code": code, "is_transient": True}
        return status, GraphRefused(status, error).answer(self._parts.ids)
