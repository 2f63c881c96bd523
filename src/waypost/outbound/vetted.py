"""Resolve, vet, connect to what was vetted, follow nothing."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from waypost.base.posts import Posts, Resolve
from waypost.outbound.addresses import is_public
from waypost.outbound.resolving import ThreadResolver, VettedNames

Network = str

IDLE_S: Final = 2
CONNECT_S: Final = 5
PER_ADDRESS: Final = 256  # whoever posts shares out by subscription; several may share a host
MOST_ANSWER_BYTES: Final = 4096


class NotAllowed(OSError):
    """The address is not public; nothing was connected."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: None when there was no answer.
        body: its first 4 KiB.
        error: why there was none.
    """

    status: int | None
    duration_ms: int
    body: bytes = b""
    headers: Mapping[str, str] | None = None
    error: str | None = None


HELD: Final = "the service is held: it calls nobody"


class VettedClient:
    """Posts to addresses that partners chose, and gets what stands behind them.

    A name is refused where any of its addresses is not public. Each connection is vetted again where
    its socket is made, so literal addresses and rebinding are seen too. No redirect is followed, no
    proxy of the environment is used.

    Args:
        allowed_networks: ranges that may be reached although they are not public.
        timeout_s: for one whole request. Source: facts 4.6.
        resolve: gives the addresses of a name; the system does unless given.
    """

    def __init__(
        self,
        *,
        allowed_networks: Sequence[Network] = (),
        timeout_s: float = 10,
        resolve: Resolve | None = None,
        held: bool = False,
    ) -> None:
        self._held = held
        self._allowed = [ip_network(network) for network in allowed_networks]
        self._system = ThreadResolver()
        self._names = VettedNames(resolve or self._system, self.vet)
        self._timeout_s = timeout_s
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=CONNECT_S)
        self._session: aiohttp.ClientSession | None = None
        self._posts = Posts(
            per_address=PER_ADDRESS,
            idle_s=IDLE_S,
            connect_s=CONNECT_S,
            keep_bytes=MOST_ANSWER_BYTES,
            make_socket=self._vetted_socket,
            resolve=self._names.infos,
        )

    async def open(self) -> None:
        """Make the connection pool."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                limit_per_host=PER_ADDRESS,
                keepalive_timeout=IDLE_S,
                resolver=self._names,
                socket_factory=self._vetted_socket,
            ),
            timeout=self._timeout,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close the pools."""
        await self._posts.close()
        if self._session is not None:
            await self._session.close()
        self._system.close()

    async def check(self, url: str) -> str | None:
        """Why an address may not be called, as far as can be known without calling it; None where it may.

        A name that nobody answers for now may be called: it may be there later, and is vetted again then.
        """
        if self._held:
            return HELD
        try:
            host = URL(url).raw_host or ""
            async with asyncio.timeout(CONNECT_S):
                await self._names.infos(host, 0)
        except (NotAllowed, ValueError) as error:  # an address that cannot be read is none
            return _why(error)
        except (OSError, TimeoutError):
            return None
        return None

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        may_go: Callable[[], bool] | None = None,
    ) -> Answer:
        """Post bytes and say what came back; never raises for what the other side does.

        An answer counts from its status on: a body that breaks off, or does not end, changes nothing.

        Args:
            url: of a partner's choice.
            body: sent as it is.
            headers: to send.
            may_go: asked in the moment before it is sent.
        """
        if self._session is None:
            raise RuntimeError("the client is not open")
        if self._held:
            return Answer(None, 0, error=HELD)
        began_ns = time.monotonic_ns()
        try:
            reply = await self._posts.post(
                url, body, headers, within_s=self._timeout_s, may_go=may_go
            )
        except (OSError, ValueError) as error:
            return Answer(None, _since_ms(began_ns), error=_why(error))
        return Answer(reply.status, _since_ms(began_ns), reply.body, CIMultiDict(reply.headers))

    async def get(
        self,
        url: str,
        take: Callable[[bytes], Awaitable[None]],
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Get bytes, handed on as they come, and say what came back; the body is not in the answer.

        Only a 200 is read. An answer of another status, one that is encoded, and one that breaks off
        are told apart by `status` and `error`.

        Args:
            url: of a partner's choice.
            take: is given each part. What it raises ends the call, and is raised here.
            headers: to send.
        """
        if self._session is None:
            raise RuntimeError("the client is not open")
        if self._held:
            return Answer(None, 0, error=HELD)
        began_ns = time.monotonic_ns()
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        try:
            async with self._session.get(url, headers=sent, allow_redirects=False) as response:
                status, told = response.status, response.headers
                if status != 200:
                    return Answer(status, _since_ms(began_ns), headers=told)
                encoding = told.get("Content-Encoding", "identity").lower()
                if encoding != "identity":
                    error = f"its answer is encoded as {encoding[:20]}"
                    return Answer(None, _since_ms(began_ns), headers=told, error=error)
                async for part in response.content.iter_any():
                    await _hand_on(part, take)
                return Answer(status, _since_ms(began_ns), headers=told)
        except asyncio.CancelledError:
            raise
        except _NotTaken as not_taken:
            raise not_taken.error from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Answer(None, _since_ms(began_ns), error=_why(error))

    def vet(self, host: str) -> None:
        """Refuse an address that may not be reached.

        Raises:
            NotAllowed: not public, and in no allowed network.
        """
        address = ip_address(host.partition("%")[0])
        if is_public(address):
            return
        plain = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        for network in self._allowed:
            if address in network or (plain is not None and plain in network):
                return
        raise NotAllowed(f"{host} is not a public address, and not in allowed_networks")

    def _vetted_socket(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, where = info
        self.vet(str(where[0]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


class _NotTaken(Exception):
    """Whoever took the parts has failed, not the other side."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def _hand_on(part: bytes, take: Callable[[bytes], Awaitable[None]]) -> None:
    try:
        await take(part)
    except Exception as error:
        raise _NotTaken(error) from error


def _since_ms(began_ns: int) -> int:
    return (time.monotonic_ns() - began_ns) // 1_000_000


def _why(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, NotAllowed) else error
    return f"{type(cause).__name__}: {cause}"[:500] or type(cause).__name__
