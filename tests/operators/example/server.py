"""The example operator: a small HTTP server, with phones that a test writes from."""

import hashlib
import hmac
from itertools import count
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web

KEY: Final = "example-key"


class Problem(Exception):
    """A request that is not carried out."""

    def __init__(self, status: int, problem: str, detail: str = "") -> None:
        super().__init__(detail)
        self.response = web.json_response({"problem": problem, "detail": detail or problem}, status=status)


class ExampleServer:
    """One account with one line.

    Args:
        line: the operator's id of the line.
        number: its phone number.
        space: the namespace of the account's templates.
    """

    def __init__(self, line: str, number: str, space: str) -> None:
        self._line = {"line": line, "number": number, "state": "open"}
        self._space = space
        self._ids = count(1)
        self._seconds = count(1_760_000_000)
        self._hook = {"url": "", "seal": ""}
        self.templates: dict[str, dict[str, Any]] = {}
        self._media: dict[str, bytes] = {}
        self._writers: set[str] = set()
        self._received: set[str] = set()
        self.sent: list[dict[str, Any]] = []

    def application(self) -> web.Application:
        """The API below `/v1`."""
        application = web.Application(client_max_size=2**25)
        routes = {
            ("POST", "messages"): self._send,
            ("POST", "messages/{id}/read"): self._mark_read,
            ("PUT", "templates/{account}"): self._put_template,
            ("GET", "templates/{account}"): self._list_templates,
            ("GET", "template/{id}"): self._show_template,
            ("DELETE", "templates/{id}"): self._delete_template,
            ("POST", "media"): self._upload,
            ("GET", "media/{id}"): self._download,
            ("DELETE", "media/{id}"): self._delete_medium,
            ("GET", "lines"): self._list_lines,
            ("GET", "lines/{id}"): self._show_line,
            ("GET", "me"): self._show_account,
            ("GET", "hook"): self._show_hook,
            ("PUT", "hook"): self._put_hook,
            ("DELETE", "hook"): self._delete_hook,
        }
        for (method, path), handler in routes.items():
            application.router.add_route(method, f"/v1/{path}", handler)
        application.middlewares.append(self._guarded)
        return application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("X-Example-Key") != KEY:
            return Problem(401, "key").response
        try:
            return await handler(request)
        except Problem as problem:
            return problem.response

    def subscribe(self, url: str, seal: str) -> None:
        """Register a webhook without a handshake."""
        self._hook = {"url": url, "seal": seal}

    async def write(self, phone: str, text: str) -> None:
        """Write to the line from a phone."""
        message_id = f"in-{next(self._ids)}"
        self._writers.add(phone)
        self._received.add(message_id)
        content = {"body": text}
        await self._post_event(
            event="message", message=message_id, phone=phone, name="Ann", kind="text", content=content
        )

    async def _post_event(self, **event: Any) -> None:
        event |= {"id": f"event-{next(self._ids)}", "line": self._line["line"], "at": next(self._seconds)}
        body = msgspec.json.encode([event])
        seal = hmac.new(self._hook["seal"].encode(), body, hashlib.sha256).hexdigest()
        if self._hook["url"]:
            headers = {"X-Example-Seal": seal}
            async with aiohttp.ClientSession() as http, http.post(self._hook["url"], data=body, headers=headers):
                pass

    async def _send(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "template" in body:
            known = [template for template in self.templates.values() if body["template"].items() <= template.items()]
            template = known[0] if known else None
            if template is None or template["text"].count("{{") != len(body["values"]):
                raise Problem(422, "parameters", "the template has another number of variables")
        elif body["to"] not in self._writers:
            raise Problem(422, "window", "this phone has not written recently")
        message_id = f"out-{next(self._ids)}"
        self.sent.append(body)
        for state in ("sent", "delivered"):
            await self._post_event(event="status", message=message_id, ref=body["ref"], phone=body["to"], state=state)
        return web.json_response({"message": message_id, "to": body["to"]})

    async def _mark_read(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in self._received:
            raise Problem(404, "not-found", "no such inbound message")
        return web.json_response({"done": True})

    async def _put_template(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body["text"].startswith("{{"):
            raise Problem(422, "template", "a template may not begin with a variable")
        if body["picture"] is not None and body["picture"] not in self._media:
            raise Problem(422, "template", "the picture does not exist")
        names = (body["name"], body["language"])
        known = [template for template in self.templates.values() if (template["name"], template["language"]) == names]
        template_id = known[0]["id"] if known else f"template-{next(self._ids)}"
        self.templates[template_id] = {**body, "id": template_id, "state": "approved"}
        if not known or known[0] != self.templates[template_id]:
            account = request.match_info["account"]
            await self._post_event(
                event="template",
                account=account,
                template=template_id,
                name=names[0],
                language=names[1],
                state="approved",
            )
        return web.json_response({"template": template_id})

    async def _list_templates(self, request: web.Request) -> web.Response:
        name = request.query.get("name")
        listed = [template for template in self.templates.values() if not name or template["name"] == name]
        return web.json_response({"templates": listed})

    async def _show_template(self, request: web.Request) -> web.Response:
        return web.json_response(_find_by_id(self.templates, request))

    async def _delete_template(self, request: web.Request) -> web.Response:
        del self.templates[_find_by_id(self.templates, request)["id"]]
        return web.json_response({"done": True})

    async def _upload(self, request: web.Request) -> web.Response:
        medium = f"medium-{next(self._ids)}"
        self._media[medium] = await request.read()
        return web.json_response({"medium": medium})

    async def _download(self, request: web.Request) -> web.Response:
        return web.Response(body=_find_by_id(self._media, request))

    async def _delete_medium(self, request: web.Request) -> web.Response:
        _find_by_id(self._media, request)
        del self._media[request.match_info["id"]]
        return web.json_response({"done": True})

    async def _list_lines(self, request: web.Request) -> web.Response:
        return web.json_response({"lines": [self._line]})

    async def _show_line(self, request: web.Request) -> web.Response:
        return web.json_response(_find_by_id({self._line["line"]: self._line}, request))

    async def _show_account(self, request: web.Request) -> web.Response:
        return web.json_response({"name": "Acme", "space": self._space})

    async def _show_hook(self, request: web.Request) -> web.Response:
        return web.json_response({"url": self._hook["url"]})

    async def _put_hook(self, request: web.Request) -> web.Response:
        body, echo = await request.json(), "echo-1"
        proof = hmac.new(body["seal"].encode(), echo.encode(), hashlib.sha256).hexdigest()
        query = {"echo": echo, "proof": proof}
        async with aiohttp.ClientSession() as http, http.get(body["url"], params=query) as response:
            if response.status != 200 or await response.text() != echo:
                raise Problem(422, "hook", "the URL does not complete the handshake")
        self._hook = body
        return web.json_response({"done": True})

    async def _delete_hook(self, request: web.Request) -> web.Response:
        self._hook = {"url": "", "seal": ""}
        return web.json_response({"done": True})


def _find_by_id(entries: dict[str, Any], request: web.Request) -> Any:
    entry = entries.get(request.match_info["id"])
    if entry is None:
        raise Problem(404, "not-found", "there is no such object")
    return entry
