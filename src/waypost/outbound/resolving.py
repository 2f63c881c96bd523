"""Names to addresses, on threads of its own: a name that nobody answers for holds up no other."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

from waypost.base.http.post_client import AddrInfo, Resolve

THREADS: Final = 64
"""A look-up cannot be cut off. With the loop's own few threads, some dead names would stop all look-ups."""

KEPT_S: Final = 10
"""How long an answer is used again. Every use is vetted, so that a name may change its mind."""

MOST_KEPT: Final = 10_000


class ThreadResolver:
    """Asks the system, as every other program on the machine does; once for all who ask at one time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="resolver")
        self._asked: dict[tuple[str, int], tuple[float, asyncio.Future[list[AddrInfo]]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[AddrInfo]:
        """Every address of a name.

        Raises:
            OSError: there is none, or nobody answers.
        """
        loop = asyncio.get_running_loop()
        key = (host, port)
        known = self._asked.get(key)
        if known is None or known[0] <= loop.time() or _has_failed(known[1]):
            if len(self._asked) >= MOST_KEPT:
                self._asked.clear()
            asked = loop.run_in_executor(self._threads, _look_up, host, port)
            known = self._asked[key] = (loop.time() + KEPT_S, asked)
        # Whoever goes away takes the look-up from nobody else.
        return await asyncio.shield(known[1])

    def close(self) -> None:
        """Wait for no look-up that is under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class VettedNames(AbstractResolver):
    """The same for the general client, every answer vetted, all of its addresses.

    Args:
        resolve: gives the addresses.
        vet: raises `OSError` for one that may not be reached.
    """

    def __init__(self, resolve: Resolve, vet: Callable[[str], None]) -> None:
        self._resolve = resolve
        self._vet = vet

    async def infos(self, host: str, port: int) -> Sequence[AddrInfo]:
        """Every address of a name, all of them allowed.

        Raises:
            OSError: there is none, nobody answers, or one may not be reached.
        """
        literal = literal_in(host)
        if literal is not None:  # whether or not this system's resolver knows the spelling
            self._vet(literal)
        infos = await self._resolve(host, port)
        for info in infos:
            self._vet(str(info[4][0]))
        return infos

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Every address of a name, as the general client wants them."""
        return [
            ResolveResult(
                hostname=host,
                host=str(where[0]),
                port=port,
                family=known,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for known, _, protocol, _, where in await self.infos(host, port)
            if family in (known, socket.AF_UNSPEC)
        ]

    async def close(self) -> None:
        """Nothing is held."""


def literal_in(host: str) -> str | None:
    """The address that a host is by itself: a literal one, also with a dot or a zone at its end, or this machine.

    Source: RFC 6761, section 6.3, for names that end with `localhost`.
    """
    plain = host.rstrip(".").partition("%")[0]
    if plain.lower() == "localhost" or plain.lower().endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ip_address(plain))
    except ValueError:
        pass
    try:  # the short forms, one number, octal and hexadecimal parts
        return socket.inet_ntoa(socket.inet_aton(plain))
    except (OSError, UnicodeError):
        return None


def _look_up(host: str, port: int) -> list[AddrInfo]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _has_failed(asked: "asyncio.Future[list[AddrInfo]]") -> bool:
    return asked.done() and (asked.cancelled() or asked.exception() is not None)
