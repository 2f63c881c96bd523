"""Resolve, vet, connect to what was vetted; a GET follows a few redirects, each vetted like the first URL."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final, NamedTuple

from yarl import URL

from waypost.base.http.connection_pools import ConnectionPools, Resolve
from waypost.base.http.http_client import HttpClient, OpenResponse
from waypost.base.http.post_client import PostClient
from waypost.outbound.addresses import ThreadResolver, VettedResolver, is_public
from waypost.outbound.failures import AddressNotAllowed, plain_reason

Network = str

OUTBOUND_IDLE_S: Final = 2
OUTBOUND_CONNECT_TIMEOUT_S: Final = 5
MAX_CONNECTIONS_PER_HOST: Final = 256  # the sender limits each subscription; several may share a host
MAX_RESPONSE_BYTES: Final = 4096
MAX_REDIRECTS: Final = 3
REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)


class OutboundResponse(NamedTuple):
    """The response to a request, or why there was none."""

    status: int | None  # None when there was no response
    duration_ms: int
    body: bytes = b""  # its first 4 KiB
    headers: Mapping[str, str] | None = None  # with lower-case names, of which the last counts
    error: str | None = None  # why there was none, in plain words


OUTBOUND_HELD_ERROR: Final = "the service was started with --hold and makes no outgoing calls"


class VettedClient:
    """Posts to URLs that partners chose, and gets the content of such URLs.

    A name is rejected where any of its addresses is not public. Each connection is vetted again where
    its socket is made, so literal addresses and rebinding are covered too. A post follows no redirect, a
    get at most three, and each is resolved and vetted like the first URL (decision 0067). No proxy
    of the environment is used.

    Args:
        allowed_networks: ranges that may be reached although they are not public.
        timeout_s: for one whole request. Source: facts 4.6.
        resolve: returns the addresses of a name; the system's resolver unless given.
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
        self._system_resolver = ThreadResolver()
        self._vetted_resolver = VettedResolver(resolve or self._system_resolver, self.vet)
        self._timeout_s = timeout_s
        self._is_open = False
        pools = ConnectionPools(
            max_per_address=MAX_CONNECTIONS_PER_HOST,
            idle_s=OUTBOUND_IDLE_S,
            connect_s=OUTBOUND_CONNECT_TIMEOUT_S,
            make_socket=self._vetted_socket,
            resolve=self._vetted_resolver.resolve_all,
        )
        self._posts = PostClient(pools, max_body_bytes=MAX_RESPONSE_BYTES)
        self._gets = HttpClient(pools, max_body_bytes=MAX_RESPONSE_BYTES)

    async def open(self) -> None:
        """Allow requests."""
        self._is_open = True

    async def close(self) -> None:
        """Close the pools."""
        self._is_open = False
        await self._posts.close()
        await self._gets.close()
        self._system_resolver.close()

    async def check_url(self, url: str) -> str | None:
        """Return why a URL may not be called, as far as this is known without calling it; None where it may.

        A name that cannot be resolved now may be called: it may exist later, and is vetted again then.
        """
        if self._held:
            return OUTBOUND_HELD_ERROR
        try:
            host = URL(url).raw_host or ""
            async with asyncio.timeout(OUTBOUND_CONNECT_TIMEOUT_S):
                await self._vetted_resolver.resolve_all(host, 0)
        except (AddressNotAllowed, ValueError) as error:  # a URL that cannot be parsed may not be called
            return plain_reason(error)
        except (OSError, TimeoutError):
            return None
        return None

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, may_send: Callable[[], bool] | None = None
    ) -> OutboundResponse:
        """Post bytes and return the response; never raise for what the other side does.

        A response counts from its status on: a body that breaks off, or does not end, changes nothing.

        Args:
            url: of a partner's choice.
            body: sent as it is.
            may_send: checked just before it is sent.
        """
        if not self._is_open:
            raise RuntimeError("the client is not open")
        if self._held:
            return OutboundResponse(None, 0, error=OUTBOUND_HELD_ERROR)
        began_ns = time.monotonic_ns()
        try:
            reply = await self._posts.post(url, body, headers, timeout_s=self._timeout_s, may_send=may_send)
        except (OSError, ValueError) as error:
            return OutboundResponse(None, _elapsed_ms(began_ns), error=plain_reason(error))
        took_ms = (time.monotonic_ns() - began_ns) // 1_000_000
        return OutboundResponse(reply.status, took_ms, reply.body, dict(reply.headers))

    async def get(
        self, url: str, receive_chunk: Callable[[bytes], Awaitable[None]], *, headers: Mapping[str, str] | None = None
    ) -> OutboundResponse:
        """Get bytes, passed on as they come, and return the response without its body.

        Only a 200 is read; redirects are followed. A response with another status, one that is encoded, and
        one that breaks off are distinguished by `status` and `error`.

        Args:
            url: of a partner's choice.
            receive_chunk: receives each part. An error that it raises ends the call, and is raised here.
        """
        if not self._is_open:
            raise RuntimeError("the client is not open")
        if self._held:
            return OutboundResponse(None, 0, error=OUTBOUND_HELD_ERROR)
        began_ns = time.monotonic_ns()
        sent = headers or {}
        try:
            current_url = URL(url)
            async with asyncio.timeout(self._timeout_s):
                for _ in range(MAX_REDIRECTS + 1):
                    async with self._gets.stream("GET", current_url, sent, timeout_s=None) as response:
                        status, response_headers = response.status, dict(response.headers)
                        if status not in REDIRECT_STATUSES or "location" not in response_headers:
                            error = await _read_body(response, response_headers, receive_chunk)
                            final_status = None if error else status
                            return OutboundResponse(
                                final_status, _elapsed_ms(began_ns), headers=response_headers, error=error
                            )
                        # headers meant for one URL are sent to no other
                        current_url, sent = resolve_redirect(current_url, response_headers["location"]), {}
                error = f"it redirects more than {MAX_REDIRECTS} times"
                return OutboundResponse(None, _elapsed_ms(began_ns), error=error)
        except asyncio.CancelledError:
            raise
        except InvalidRedirect as redirect_error:
            return OutboundResponse(None, _elapsed_ms(began_ns), error=str(redirect_error))
        except _ChunkReceiverFailed as receiver_error:
            raise receiver_error.error from None
        except (OSError, ValueError) as error:
            return OutboundResponse(None, _elapsed_ms(began_ns), error=plain_reason(error))

    def vet(self, host: str) -> None:
        """Raise an error for an address that may not be reached.

        Raises:
            AddressNotAllowed: not public, and in no allowed network.
        """
        address = ip_address(host.partition("%")[0])
        if is_public(address):
            return
        plain = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        for network in self._allowed:
            if address in network or (plain is not None and plain in network):
                return
        raise AddressNotAllowed(f"{host} is not a public address, and not in allowed_networks")

    def _vetted_socket(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        self.vet(str(address[0]))
        vetted_socket = socket.socket(family, kind, protocol)
        vetted_socket.setblocking(False)
        return vetted_socket


class InvalidRedirect(Exception):
    """A redirect that is not followed; the text is the reason."""


def resolve_redirect(base_url: URL, location: str) -> URL:
    """Return the URL that a redirect names, without a user and password.

    Raises:
        InvalidRedirect: it is not http or https, or leads from https to http.
    """
    try:
        named_url = URL(location)
        target = URL() if named_url.scheme and not named_url.raw_host else base_url.join(named_url).with_user(None)
    except ValueError:
        target = URL()
    if target.scheme not in ("http", "https") or not target.raw_host:
        raise InvalidRedirect("it redirects to what is not an http or https address")
    if base_url.scheme == "https" and target.scheme == "http":
        raise InvalidRedirect("it redirects from https to http")
    return target


async def _read_body(
    response: OpenResponse, headers: Mapping[str, str], receive_chunk: Callable[[bytes], Awaitable[None]]
) -> str | None:
    """Pass on the body of a 200; return why it cannot be read, or None. Any other status has no body here."""
    if response.status != 200:
        return None
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        return f"its response is encoded as {encoding[:20]}"
    async for chunk in response:
        await _pass_chunk(chunk, receive_chunk)
    return None


class _ChunkReceiverFailed(Exception):
    """An error of the caller's `receive_chunk`, not of the other side."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def _pass_chunk(chunk: bytes, receive_chunk: Callable[[bytes], Awaitable[None]]) -> None:
    try:
        await receive_chunk(chunk)
    except Exception as error:
        raise _ChunkReceiverFailed(error) from error


def _elapsed_ms(began_ns: int) -> int:
    return (time.monotonic_ns() - began_ns) // 1_000_000
