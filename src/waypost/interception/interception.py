"""One interception: its listeners, its files, and the program that it is for."""

import contextlib
import shutil
import ssl
import tempfile
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from waypost.base.clock import SystemClock
from waypost.interception.authority import PrivateAuthority
from waypost.interception.child import InterceptedChild, NameMap, NamesUnavailable
from waypost.interception.child_variables import PROXY_VARIABLES, make_child_variables, uses_proxy
from waypost.interception.connect_redirection import ConnectRedirection
from waypost.interception.hosts import HOST_NAMES, HOSTS, SandboxSide
from waypost.interception.listeners import LOOPBACK, LoopbackListener, Outcomes, ServeConnection
from waypost.interception.proxy import InterceptingProxy
from waypost.interception.request_relay import RelayTarget, RequestRelay, Streams
from waypost.interception.trust_files import write_trust_files

MAPPED_ADDRESS: Final = "127.112.97.1"
"""Of loopback; the name map leads the hosts there, and nobody else has a use for it."""


class InterceptionMethod(StrEnum):
    """The method by which the hosts lead here."""

    AUTO = "auto"
    NAMES = "names"
    PROXY = "proxy"


class Interception:
    """Listens for the intercepted hosts until it is closed.

    Attributes:
        outcomes: of hosts that are not intercepted.
        proxy_url: of the proxy.
        names_unavailable: why there is no name map, if there is none and it was tried.

    Args:
        urls: base URL of each side of the sandbox.
        blocks_others: hosts that are not intercepted are blocked; else they are passed through, unread.
    """

    def __init__(self, urls: Mapping[SandboxSide, str], *, blocks_others: bool) -> None:
        self._relay = RequestRelay({host.name: RelayTarget(urls[host.side]) for host in HOSTS})
        self._blocks_others = blocks_others
        self._exit_stack = contextlib.AsyncExitStack()
        self._ports: dict[int, int] = {}
        self.outcomes = Outcomes()
        self.proxy_url = ""
        self.names_unavailable = ""

    async def open(self, environment: Mapping[str, str]) -> None:
        """Make the authority and its files, and listen.

        Args:
            environment: of the child without us.
        """
        authority = PrivateAuthority(sorted(HOST_NAMES), SystemClock().now_ms())

        async def serve_tls(client: Streams) -> None:
            connection: ssl.SSLObject = client[1].get_extra_info("ssl_object")
            host = authority.host_of(connection.context)
            if host is not None:
                await self._relay.serve(client, scheme="https", host=host)

        async def serve_plain(client: Streams) -> None:
            await self._relay.serve(client, scheme="http")

        context = authority.server_context(self.outcomes.count_blocked)
        self._ports[443] = self._listen(serve_tls, context)
        self._ports[80] = self._listen(serve_plain, None)
        proxy = InterceptingProxy(
            self._relay, HOST_NAMES, self._ports, self.outcomes, environment, blocks_others=self._blocks_others
        )
        self.proxy_url = f"http://{LOOPBACK}:{self._listen(proxy.serve, None)}"
        folder = Path(tempfile.mkdtemp(prefix="waypost-intercept-"))
        self._exit_stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._environment = dict(environment)
        self._files = write_trust_files(
            folder, authority.certificate_pem, MAPPED_ADDRESS, HOST_NAMES, self._environment
        )

    @property
    def requests(self) -> Counter[str]:
        """Number of requests that were passed to the sandbox, by host."""
        return self._relay.requests

    @property
    def has_system_authorities(self) -> bool:
        """True if the child can verify other hosts, too."""
        return self._files.has_system_authorities

    def proxy_variables(self) -> dict[str, str]:
        """Return what to set in the environment of a program that reaches the hosts by the proxy."""
        return make_child_variables(self._environment, self._files, self.proxy_url)

    def start(self, child: InterceptedChild, way: InterceptionMethod) -> tuple[InterceptedChild, InterceptionMethod]:
        """Start a program whose launcher waits; return it, and how the hosts lead here.

        Raises:
            NamesUnavailable: `way` is names, and this machine does not allow them.
        """
        chosen = InterceptionMethod.PROXY
        if way is not InterceptionMethod.PROXY:
            try:
                child.prepare(NameMap(self._files.binds, HOSTS[0].name, MAPPED_ADDRESS))
                chosen = InterceptionMethod.NAMES
            except NamesUnavailable as error:
                if way is InterceptionMethod.NAMES:
                    raise
                self.names_unavailable = str(error)
                child = InterceptedChild(child.command, child.blocked)
        self._exit_stack.callback(child.kill)
        if chosen is InterceptionMethod.PROXY:
            child.prepare(None)
        if child.redirected is not None:
            block = self.outcomes.count_blocked if self._blocks_others else None
            redirection = ConnectRedirection(child.redirected, MAPPED_ADDRESS, self._ports, block)
            self._exit_stack.callback(redirection.close)
        variables = dict(self._environment)
        proxy_url = self.proxy_url if chosen is InterceptionMethod.PROXY or uses_proxy(variables) else ""
        changed = make_child_variables(variables, self._files, proxy_url)
        if proxy_url:
            changed |= {name: proxy_url for name in PROXY_VARIABLES if name in variables}
        child.run(variables | changed)
        return child, chosen

    async def close(self) -> None:
        """End the program if it still runs, stop listening, and delete the files."""
        await self._exit_stack.aclose()

    def _listen(self, serve: ServeConnection, context: ssl.SSLContext | None) -> int:
        """Return the port of a new listener."""
        listener = LoopbackListener(serve, context, self.outcomes)
        self._exit_stack.push_async_callback(listener.close)
        return listener.port
