"""One door, over HTTP or straight to the service in this process."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import unquote, urlencode, urlsplit

import aiohttp
import msgspec

from waypost.client.answers import DoorRefused, NotReached, Reply, read_answer

__all__ = ("Door", "DoorRefused", "InProcess", "NotReached", "OverHttp", "Reply", "Transport")


class Transport(Protocol):
    """Carries one request to a door."""

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        """Send it and give the answer.

        Raises:
            NotReached: nobody answers.
        """
        ...


class OverHttp:
    """Carries requests to an address."""

    def __init__(self, base_url: str, *, timeout_s: float = 15) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        """Send one request on a connection of its own: a command makes few."""
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout, trust_env=False) as session,
                session.request(
                    method, f"{self._base_url}{path}", headers=headers, data=body
                ) as response,
            ):
                why = response.headers.get("Waypost-Reason", "")
                return Reply(response.status, await response.read(), why)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotReached(f"nobody answers at {self._base_url}") from error


Application = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]


class InProcess:
    """Carries requests straight to an ASGI application in this process, through the same door.

    Args:
        application: what answers.
        marks: members of every request's scope, by which the application knows its own process.
    """

    def __init__(
        self, application: Application, *, marks: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._application = application
        self._marks = marks

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply:
        """Call the application as a server would."""
        parts = urlsplit(path)
        told = {"host": "localhost", **headers}
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), text.encode()) for name, text in told.items()],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 0),
            **self._marks,
        }
        answers: list[MutableMapping[str, Any]] = []

        asked, gone = [body or b""], asyncio.Event()

        async def receive() -> MutableMapping[str, Any]:
            if asked:
                return {"type": "http.request", "body": asked.pop(), "more_body": False}
            await gone.wait()  # an answer in pieces listens meanwhile whether somebody hangs up
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            answers.append(message)

        await self._application(scope, receive, send)
        content = b"".join(answer.get("body", b"") for answer in answers[1:])
        said = {name.lower(): value for name, value in answers[0].get("headers", ())}
        return Reply(answers[0]["status"], content, said.get(b"waypost-reason", b"").decode())


class Door:
    """Calls of one door, with its credential.

    Args:
        transport: how requests travel.
        headers: of every request, the credential among them.
    """

    def __init__(self, transport: Transport, headers: Mapping[str, str]) -> None:
        self._transport = transport
        self._headers = dict(headers)

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """A call that takes and gives JSON.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        headers = {**self._headers, "Content-Type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        return read_answer(
            await self._transport(method, path, headers, content), f"{method} {path}"
        )

    async def file(self, path: str, content: bytes, *, name: str, media_type: str) -> Any:
        """Upload a file, as the field `file` of a multipart form; gives JSON.

        Args:
            path: of the call, which is a POST.
            content: the bytes.
            name: of the file.
            media_type: what they are said to be.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        boundary = f"waypost-{sha256(content).hexdigest()}"  # a text cannot hold its own digest
        told = re.sub(r'["\r\n]', "_", name)
        said = re.sub(r"[\r\n]", "", media_type)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{told}"\r\n'
            f"Content-Type: {said}\r\n\r\n"
        )
        body = b"".join([head.encode(), content, f"\r\n--{boundary}--\r\n".encode()])
        headers = {**self._headers, "Content-Type": f"multipart/form-data; boundary={boundary}"}
        return read_answer(await self._transport("POST", path, headers, body), f"POST {path}")

    async def form(self, method: str, path: str, fields: Mapping[str, str]) -> Any:
        """A call that takes a form and gives JSON.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        return read_answer(await self._transport(method, path, headers, urlencode(fields).encode()))
