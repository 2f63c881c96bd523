"""The HTTP proxy of an interception: intercepted hosts lead here, others are tunnelled unread or blocked."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from waypost.interception.listeners import Outcomes
from waypost.interception.request_relay import (
    CHUNK_BYTES,
    RelayedHead,
    RelayedRequestError,
    RequestRelay,
    Streams,
    pass_on,
    read_head,
    respond,
)

_CONNECT_TIMEOUT_S: Final = 30


class InterceptingProxy:
    """Serves the connections of programs that use a proxy.

    Args:
        ports: the listeners of intercepted hosts, by the port that a client names: 443 and 80.
        environment: of this process; it may name a proxy that leads out of this network.
    """

    def __init__(
        self,
        relay: RequestRelay,
        hosts: frozenset[str],
        ports: Mapping[int, int],
        outcomes: Outcomes,
        environment: Mapping[str, str],
        *,
        blocks_others: bool,
    ) -> None:
        self._relay = relay
        self._hosts = hosts
        self._ports = ports
        self._outcomes = outcomes
        self._environment = environment
        self._blocks_others = blocks_others

    async def serve(self, client: Streams) -> None:
        """Serve one connection: a tunnel, or one request for http."""
        reader, writer = client
        try:
            head = await read_head(reader)
            if head is None:
                return
            if head.method == "CONNECT":
                await self._tunnel(client, *split_authority(head.target, 443))
            elif "://" in head.target:
                await self._pass_request(client, head)
            else:
                await respond(writer, 400, "this is a proxy: a request names its URL, or is CONNECT")
        except RelayedRequestError as error:
            await respond(writer, error.status, str(error))

    async def _tunnel(self, client: Streams, host: str, port: int) -> None:
        if host in self._hosts:
            if port not in self._ports:
                raise RelayedRequestError(403, f"{host} is intercepted at the ports 443 and 80, not {port}")
            target = await asyncio.open_connection("127.0.0.1", self._ports[port], limit=CHUNK_BYTES)
        else:
            target = await self._connect(host, port, "https")
        try:
            client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await join(client, target)
        finally:
            target[1].close()

    async def _pass_request(self, client: Streams, head: RelayedHead) -> None:
        """Pass the request of a program that asks a proxy for a URL; some do so for https, too."""
        url = urlsplit(head.target)
        host, port = split_authority(url.netloc.rpartition("@")[2], 80)
        if host in self._hosts:
            await self._relay.serve(client, scheme=url.scheme, first=head)
            return
        if url.scheme != "http":
            raise RelayedRequestError(501, f"{host} is reached by CONNECT, so that nobody reads what is sent to it")
        target = await self._connect(host, port, "http")
        try:
            path = url._replace(scheme="", netloc="", path=url.path or "/").geturl()
            lines = [f"{head.method} {path} {head.version}".encode("latin-1"), b"connection: close"]
            dropped = (b"connection", b"proxy-connection", b"proxy-authorization")
            lines += [name + b": " + value for name, value in head.headers if name not in dropped]
            target[1].write(b"\r\n".join(lines) + b"\r\n\r\n")
            await join(client, target)
        finally:
            target[1].close()

    async def _connect(self, host: str, port: int, scheme: str) -> Streams:
        """Return a connection to a host that is not intercepted, by the proxy of the environment if it names one."""
        if self._blocks_others:
            self._outcomes.count_blocked(host)
            raise RelayedRequestError(403, f"{host} is not intercepted, and --block-others blocks it")
        proxy = self._environment.get(f"{scheme}_proxy") or self._environment.get(f"{scheme.upper()}_PROXY")
        bypassed = self._environment.get("no_proxy") or self._environment.get("NO_PROXY") or ""
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                if proxy and not _is_bypassed(host, bypassed):
                    streams = await _connect_by_proxy(proxy, host, port)
                else:
                    streams = await asyncio.open_connection(host, port, limit=CHUNK_BYTES)
        except (OSError, EOFError) as error:
            raise RelayedRequestError(502, f"{host}:{port} cannot be reached") from error
        self._outcomes.count_passed(host)
        return streams


def _is_bypassed(host: str, entries: str) -> bool:
    """True if NO_PROXY has the host, one of its domains, or everything."""
    suffixes = (entry.strip().lower().lstrip("*").lstrip(".") for entry in entries.split(",") if entry.strip())
    return any(not suffix or host == suffix or host.endswith(f".{suffix}") for suffix in suffixes)


async def _connect_by_proxy(proxy: str, host: str, port: int) -> Streams:
    """Return a tunnel through another proxy. Raises OSError: it refuses."""
    url = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    reader, writer = await asyncio.open_connection(url.hostname, url.port or 80, limit=CHUNK_BYTES)
    head = f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n"
    if url.username:
        credential = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        head += f"Proxy-Authorization: Basic {base64.b64encode(credential).decode()}\r\n"
    writer.write(f"{head}\r\n".encode())
    response = await reader.readuntil(b"\r\n\r\n")
    if response.split(b" ", 2)[1:2] != [b"200"]:
        writer.close()
        raise ConnectionRefusedError
    return reader, writer


async def join(one: Streams, other: Streams) -> None:
    """Pass bytes between two connections, both ways, until both have ended."""

    async def pass_and_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await pass_on(reader, writer)
        if not writer.is_closing() and writer.can_write_eof():
            writer.write_eof()

    await asyncio.gather(pass_and_end(one[0], other[1]), pass_and_end(other[0], one[1]))


def split_authority(authority: str, default_port: int) -> tuple[str, int]:
    """Return host, in lower case and without brackets, and port. Raises RelayedRequestError: it is none."""
    try:
        parts = urlsplit(f"//{authority}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise RelayedRequestError(400, f"{authority[:200]!r} is no host and port")
    return host.rstrip("."), port or default_port
