"""A receiver of callbacks that subscribes, prints and forwards each callback, and unsubscribes at the end."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

from waypost.assembly.http.servers import HttpServer, bind_socket, port_of, wait_for_signal
from waypost.base.clock import SystemClock
from waypost.base.json_values import object_or_none
from waypost.cli.live.callback_summary import event_names, summarise
from waypost.cli.live.environment import partner_client
from waypost.cli.output.tables import format_moment
from waypost.client.api_client import ApiUnreachable, HttpTransport

NEEDED: Final = ("PARTNER_URL", "APP_ID", "APP_TOKEN")
"""Variables that it reads."""
FORWARD_TIMEOUT_S: Final = 10
"""For a response of the application; the service itself waits for the receiver as long."""
_PASSED_ON: Final = ("content-type", "user-agent", "x-", "webhook-", "waypost-")
"""Beginnings of the names of headers that are forwarded: those of the callback, and none of the connection."""
_NO_RESPONSE: Final = 502


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Options of a listener: the callbacks that it receives, and where it sends them.

    Attributes:
        modes: of the subscription, separated by commas.
        events: names of events or types; callbacks of others are accepted, and neither printed nor forwarded.
            Empty: all.
        forward_to: URL of an application; its response becomes the receiver's. None: every callback is accepted.
        pretty: print one line for people instead of the JSON.
        port: to receive on; 0 takes a free one.
    """

    modes: str
    events: frozenset[str] = frozenset()
    forward_to: str | None = None
    pretty: bool = False
    port: int = 0


async def listen(
    variables: Mapping[str, str],
    options: ListenOptions,
    *,
    print_line: Callable[[str], None],
    ready_fd: int | None = None,
) -> None:
    """Receive callbacks of one app until a signal.

    Args:
        variables: of the running `waypost dev`.
        options: of the command.
        print_line: prints a line.
        ready_fd: a pipe that gets one byte, and is closed, once the subscription is active.

    Raises:
        ApiResponseError: the subscription was rejected.
        ApiUnreachable: the service does not respond.
        PortInUse: the port is in use.
    """
    bound = bind_socket("127.0.0.1", options.port, option="--port")
    server = HttpServer(ListeningReceiver(options, print_line), bound)
    await server.start()
    client = partner_client(variables)
    path = f"/partner/app/{variables['APP_ID']}/subscription"
    url = f"http://127.0.0.1:{port_of(bound)}/callbacks"
    fields = {"modes": options.modes, "tag": f"listen-{port_of(bound)}", "url": url, "version": "2"}
    try:
        response = await client.form("POST", path, fields)
        print_line(f"Ready: listening at {url}" + ("; Ctrl+C stops" if ready_fd is None else ""))
        if ready_fd is not None:
            os.write(ready_fd, b"1")
            os.close(ready_fd)
        await wait_for_signal()
        await client.json("DELETE", f"{path}/{response['subscription']['id']}")
    finally:
        await server.stop()


def listen_in_background(options: Sequence[str], *, print_line: Callable[[str], None]) -> int:
    """Start `waypost listen` as a separate process; return 0 once it listens, else its exit code."""
    is_ready, ready_fd = os.pipe()
    command = [sys.executable, "-m", "waypost", "listen", *options, "--ready-fd", str(ready_fd)]
    listener = subprocess.Popen(command, pass_fds=(ready_fd,), stdin=subprocess.DEVNULL)  # noqa: S603  our own
    os.close(ready_fd)
    with os.fdopen(is_ready, "rb") as pipe:
        if not pipe.read(1):  # it ended, and has printed why
            return listener.wait() or 1
    print_line(f"stop the listener with: kill {listener.pid}")
    listener.returncode = 0  # it outlives this process, which does not wait for it
    return 0


class ListeningReceiver:
    """The ASGI application that receives callbacks.

    Args:
        options: of the command.
        print_line: prints a line.
    """

    def __init__(self, options: ListenOptions, print_line: Callable[[str], None]) -> None:
        self._options = options
        self._print_line = print_line

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Respond with the application's status, or with 200 if callbacks are not forwarded."""
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        status = await self._handle(headers, body)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def _handle(self, headers: Mapping[str, str], body: bytes) -> int:
        """Print and forward one callback, and return the status of the response."""
        try:
            callback = object_or_none(json.loads(body))
        except ValueError:
            return 200
        if callback is None or _is_ping(callback):
            return 200
        names = event_names(callback)
        if self._options.events and self._options.events.isdisjoint(names):
            return 200
        if self._options.forward_to is None:
            self._print_callback(callback, "")
            return 200
        status, error, duration_ms = await _forward(self._options.forward_to, headers, body)
        outcome = f"{status}" if status else error
        self._print_callback(callback, f"  -> {self._options.forward_to}  {outcome} in {duration_ms} ms")
        return status or _NO_RESPONSE

    def _print_callback(self, callback: Mapping[str, Any], forward: str) -> None:
        if self._options.pretty:
            self._print_line(f"{format_moment(SystemClock().now_ms())}  {summarise(callback)}{forward}")
            return
        self._print_line(json.dumps(callback, ensure_ascii=False))
        if forward:
            self._print_line(f"{summarise(callback)}{forward}")


def _is_ping(callback: Mapping[str, Any]) -> bool:
    """Return True for the callback that verifies an endpoint URL."""
    payload = object_or_none(callback.get("payload")) or {}
    return callback.get("type") == "user-event" and payload.get("type") in (None, "sandbox-start")


async def _forward(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int | None, str, int]:
    """Post a callback to an application: the same bytes, its signature among the headers.

    Returns:
        The status, None without a response; the error, empty with one; the duration in ms.
    """
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    transport = HttpTransport(f"{parts.scheme}://{parts.netloc}", timeout_s=FORWARD_TIMEOUT_S)
    passed_on = {name: value for name, value in headers.items() if name.startswith(_PASSED_ON)}
    began = perf_counter()
    try:
        response = await transport("POST", path, passed_on, body)
    except ApiUnreachable:
        return None, "no response", round((perf_counter() - began) * 1000)
    return response.status, "", round((perf_counter() - began) * 1000)
