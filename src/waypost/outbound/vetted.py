"""Resolve, vet, connect to what was vetted; a GET follows a few redirects, each vetted like the first address."""

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

from waypost.base.http.post_client import Posts, Resolve
from waypost.outbound.failures import NotAllowed, plain_reason
from waypost.outbound.public_addresses import is_public
from waypost.outbound.resolving import ThreadResolver, VettedNames

Network = str

IDLE_S: Final = 2
CONNECT_S: Final = 5
PER_ADDRESS: Final = 256  # whoever posts shares out by subscription; several may share a host
MOST_ANSWER_BYTES: Final = 4096
MOST_REDIRECTS: Final = 3
REDIRECTS: Final = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: None when there was no answer.
        body: its first 4 KiB.
        error: why there was none, in plain words.
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
    its socket is made, so literal addresses and rebinding are seen too. A post follows no redirect, a
    get at most three, and each is resolved and vetted as if it had been given (decision 0067). No proxy
    of the environment is used.

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
            return plain_reason(error)
        except (OSError, TimeoutError):
            return None
        return None

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, may_go: Callable[[], bool] | None = None
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
            reply = await self._posts.post(url, body, headers, within_s=self._timeout_s, may_go=may_go)
        except (OSError, ValueError) as error:
            return Answer(None, _since_ms(began_ns), error=plain_reason(error))
        return Answer(reply.status, _since_ms(began_ns), reply.body, CIMultiDict(reply.headers))

    async def get(
        self, url: str, take: Callable[[bytes], Awaitable[None]], *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Get bytes, handed on as they come, and say what came back; the body is not in the answer.

        Only a 200 is read; redirects are followed. An answer of another status, one that is encoded, and one that breaks off
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
            where = URL(url)
            async with asyncio.timeout(self._timeout_s):
                for _ in range(MOST_REDIRECTS + 1):
                    async with self._session.get(where, headers=sent, allow_redirects=False) as response:
                        status, told = response.status, response.headers
                        if status not in REDIRECTS or "Location" not in told:
                            error = await _read_whole(response, take)
                            answered = None if error else status
                            return Answer(answered, _since_ms(began_ns), headers=told, error=error)
                        where, sent = redirected(where, told["Location"]), _WITHOUT_CREDENTIALS
                error = f"it redirects more than {MOST_REDIRECTS} times"
                return Answer(None, _since_ms(began_ns), error=error)
        except asyncio.CancelledError:
            raise
        except WrongRedirect as wrong:
            return Answer(None, _since_ms(began_ns), error=str(wrong))
        except _NotTaken as not_taken:
            raise not_taken.error from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Answer(None, _since_ms(began_ns), error=plain_reason(error))

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


class WrongRedirect(Exception):
    """A redirect that is not followed; the text says why."""


_WITHOUT_CREDENTIALS: Final = {"Accept-Encoding": "identity"}
"""The headers of a redirected request: what was meant for one address is sent to no other."""


def redirected(where: URL, location: str) -> URL:
    """The address that a redirect names, without a user and password.

    Raises:
        WrongRedirect: it is no address of http or https, or leads from https to http.
    """
    try:
        given = URL(location)
        target = URL() if given.scheme and not given.raw_host else where.join(given).with_user(None)
    except ValueError:
        target = URL()
    if target.scheme not in ("http", "https") or not target.raw_host:
        raise WrongRedirect("it redirects to what is no http or https address")
    if where.scheme == "https" and target.scheme == "http":
        raise WrongRedirect("it redirects from https to http")
    return target


async def _read_whole(response: aiohttp.ClientResponse, take: Callable[[bytes], Awaitable[None]]) -> str | None:
    """Hand on the body of a 200; say why it cannot be read, or None. Any other status has no body here."""
    if response.status != 200:
        return None
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity":
        return f"its answer is encoded as {encoding[:20]}"
    async for part in response.content.iter_any():
        await _hand_on(part, take)
    return None


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
