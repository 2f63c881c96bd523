"""Media links of messages, fetched: whether the operator could download what a message refers to.

Only links into the networks of the settings are fetched. Nothing is stored; status, type and size are checked.
"""

import asyncio
import socket
from collections.abc import Coroutine, Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from yarl import URL

from waypost.base.error_texts import error_text
from waypost.base.http.connection_pools import AddrInfo, ConnectionPools
from waypost.base.http.http_client import HttpClient, OpenResponse
from waypost.base.json_values import object_of, objects_in, text_or_none
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.media_kinds import SUPPORTED_MEDIA_KINDS, SupportedMediaKind, check_size

_TIMEOUT_S: Final = 10
_CONNECT_S: Final = 5
_IDLE_S: Final = 2
_MAX_PER_HOST: Final = 8
_MAX_FETCHES: Final = 128
_MAX_REDIRECTS: Final = 3
_REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
_BEGINNING_BYTES: Final = 32
_KINDS: Final = {kind.name: kind for kind in SUPPORTED_MEDIA_KINDS}


class OperatorMediaLink(NamedTuple):
    """A link in a message, and the kind of media that it must lead to."""

    kind: str
    url: str


class _NotReachable(OSError):
    """An address in no network of the settings."""


class MediaLinkFetcher:
    """Fetches links: some at a time, and few of one host, so that a slow host delays only its own messages.

    Args:
        networks: which may be reached.
    """

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = [ip_network(network) for network in networks]
        self._fetches = asyncio.Semaphore(_MAX_FETCHES)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._client: HttpClient | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_fetching(self) -> bool:
        """True while a task fetches links."""
        return bool(self._tasks)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that fetches links in a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def is_on(self) -> bool:
        """True if anything may be reached."""
        return bool(self._networks)

    def may_reach(self, link: OperatorMediaLink) -> bool:
        """True if a link may lead into one of the networks; of a name, this is known when it is resolved."""
        host = URL(link.url).raw_host or ""
        address = "127.0.0.1" if host == "localhost" else host
        try:
            return self._is_allowed(address)
        except ValueError:  # a name
            return any(not network.is_loopback for network in self._networks)

    async def find_problem(self, link: OperatorMediaLink) -> str | None:
        """Fetch a link, and return why the operator could not use it; None if it could, or may not fetch it here."""
        host = self._hosts.setdefault(URL(link.url).raw_host or "", asyncio.Semaphore(_MAX_PER_HOST))
        async with host, self._fetches:
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    return await self._fetch(link)
            except _NotReachable:
                return None
            except TimeoutError:
                return f"Downloading media from weblink failed: no complete response within {_TIMEOUT_S} s"
            except (OSError, ValueError) as error:
                if isinstance(error.__cause__, _NotReachable):
                    return None
                return f"Downloading media from weblink failed: {error_text(error)}"[:200]

    async def close(self) -> None:
        """Cancel the tasks, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    async def _fetch(self, link: OperatorMediaLink) -> str | None:
        url = URL(link.url)
        if self._client is None:
            pools = ConnectionPools(
                max_per_address=_MAX_PER_HOST,
                idle_s=_IDLE_S,
                connect_s=_CONNECT_S,
                make_socket=self._make_socket,
                resolve=self._resolve,
            )
            self._client = HttpClient(pools, max_body_bytes=0)
        kind = _KINDS[link.kind]
        for _ in range(_MAX_REDIRECTS + 1):
            async with self._client.stream("GET", url, {}, timeout_s=_TIMEOUT_S) as response:
                location = dict(response.headers).get("location")
                if response.status not in _REDIRECT_STATUSES or location is None:
                    return await _check_response(kind, response)
                url = url.join(URL(location))
        return f"Downloading media from weblink failed: it redirects more than {_MAX_REDIRECTS} times"

    def _is_allowed(self, host: str) -> bool:
        address = ip_address(host.partition("%")[0])
        return any(address in network for network in self._networks)

    async def _resolve(self, host: str, port: int) -> Sequence[AddrInfo]:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        if not all(self._is_allowed(str(info[4][0])) for info in infos):
            raise _NotReachable(f"{host} is in no network that the simulator may reach")
        return infos

    def _make_socket(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        if not self._is_allowed(str(address[0])):
            raise _NotReachable(f"{address[0]} is in no network that the simulator may reach")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def find_links(rendered: dict[str, Any]) -> Iterator[OperatorMediaLink]:
    """Yield the links of a message that the operator would fetch: its media, its header, and its cards' headers."""
    media = object_of(rendered.get("media"))
    if link := text_or_none(media.get("link")):
        yield OperatorMediaLink(str(media.get("kind")), link)
    for shown in (rendered, *objects_in(rendered.get("cards"))):
        header = object_of(shown.get("header"))
        for kind in _KINDS:
            if link := text_or_none(object_of(header.get(kind)).get("link")):
                yield OperatorMediaLink(kind, link)


async def _check_response(kind: SupportedMediaKind, response: OpenResponse) -> str | None:
    """Return what is wrong with a response: its status, its type, or its size. Source: facts 5.2 (131053), 6.1."""
    if response.status != 200:
        return f"Downloading media from weblink failed with http code {response.status}"
    mime_type = dict(response.headers).get("content-type", "").partition(";")[0].strip().lower()
    if mime_type not in kind.mime_types:
        expected = ", ".join(kind.mime_types)
        return f"Unsupported {kind.name} mime type {mime_type or 'none'}. Please use one of {expected}."
    size_bytes, beginning = 0, b""
    async for chunk in response:
        beginning += chunk[: _BEGINNING_BYTES - len(beginning)]
        size_bytes += len(chunk)
        if size_bytes > kind.max_bytes:
            break
    try:
        check_size(kind, size_bytes, beginning)
    except GraphApiError as error:
        return str(object_of(error.error.get("error_data")).get("details") or error.error["message"])
    return None
