"""How a request travels to a door: over HTTP, or straight to the service in this process."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import aiohttp

from waypost.client.responses import NotReached, Reply
from waypost.client.streaming import PIECE_BYTES, Body, Handover, Message, Pieces, size_of

_AS_IT_IS: Final = {"Accept-Encoding": "identity"}
"""Whoever hands an answer on tells its length."""


class Transport(Protocol):
    """Carries one request to a door."""

    async def __call__(self, method: str, path: str, headers: Mapping[str, str], body: Body) -> Reply:
        """Send it and give the whole answer.

        Raises:
            NotReached: nobody answers.
        """
        ...

    async def open(self, method: str, path: str, headers: Mapping[str, str], body: Body = None) -> Pieces:
        """Send it and give the answer as it comes; whoever asks closes it.

        Raises:
            NotReached: nobody answers.
        """
        ...


class OverHttp:
    """Carries requests to an address.

    Args:
        base_url: what paths begin after.
        timeout_s: for a whole answer; for one in pieces, until the next of them comes.
    """

    def __init__(self, base_url: str, *, timeout_s: float = 15) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s

    async def __call__(self, method: str, path: str, headers: Mapping[str, str], body: Body) -> Reply:
        """Send one request on a connection of its own: a command makes few."""
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
                session.request(method, f"{self._base_url}{path}", headers=headers, data=body) as response,
            ):
                return Reply(response.status, await response.read(), _lower(response.headers.items()))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotReached(f"nobody answers at {self._base_url}") from error

    async def open(self, method: str, path: str, headers: Mapping[str, str], body: Body = None) -> Pieces:
        """Send one request on a connection of its own, which is read only as fast as its pieces are taken."""
        waits = aiohttp.ClientTimeout(total=None, connect=self._timeout_s, sock_read=self._timeout_s)
        session = aiohttp.ClientSession(timeout=waits, trust_env=False)
        try:
            response = await session.request(
                method, f"{self._base_url}{path}", headers={**headers, **_AS_IT_IS}, data=body
            )
        except BaseException as error:
            await session.close()
            if isinstance(error, (aiohttp.ClientError, TimeoutError, OSError)):
                raise NotReached(f"nobody answers at {self._base_url}") from error
            raise

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in response.content.iter_chunked(PIECE_BYTES):
                    yield piece
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise NotReached(f"the answer of {self._base_url} breaks off") from error

        async def close() -> None:
            response.close()
            await session.close()

        return Pieces(response.status, _lower(response.headers.items()), pieces(), close)


Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class InProcess:
    """Carries requests straight to an ASGI application in this process, through the same door.

    Args:
        application: what answers.
        marks: members of every request's scope, by which the application knows its own process.
    """

    def __init__(self, application: Application, *, marks: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._application = application
        self._marks = marks

    async def __call__(self, method: str, path: str, headers: Mapping[str, str], body: Body) -> Reply:
        """Call the application as a server would, and gather what it says."""
        answers: list[Message] = []

        async def gather(message: Message) -> None:
            answers.append(message)

        asking = Handover(body)
        await self._application(self._scope(method, path, headers), asking.receive, gather)
        if not answers:
            raise NotReached(f"nothing answers {method} {path}")
        content = b"".join(answer.get("body", b"") for answer in answers[1:])
        return Reply(answers[0]["status"], content, _told(answers[0]))

    async def open(self, method: str, path: str, headers: Mapping[str, str], body: Body = None) -> Pieces:
        """Call the application as a server would; it goes on as its pieces are taken."""
        asking = Handover(body)
        scope = self._scope(method, path, headers)
        asking.begin(self._application(scope, asking.receive, asking.send))
        try:
            start = await asking.next()
            if start is None:
                raise NotReached(f"nothing answers {method} {path}")  # noqa: TRY301  one way out
            status, told = start["status"], _told(start)
            pieces = asking.pieces(size_of(method, status, told))
        except BaseException:
            await asking.end()
            raise
        return Pieces(status, told, pieces, asking.end)

    def _scope(self, method: str, path: str, headers: Mapping[str, str]) -> Message:
        parts = urlsplit(path)
        told = {"host": "localhost", **headers}
        return {
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


def _told(start: Message) -> dict[str, str]:
    return _lower((name.decode("latin-1"), value.decode("latin-1")) for name, value in start.get("headers", ()))


def _lower(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}
