"""A receiver of callbacks that subscribes, prints and forwards each callback, and unsubscribes at the end."""

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from errno import ECONNREFUSED
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

from waypost.assembly.http.servers import HttpServer, bind_socket, handle_stop_signals, port_of
from waypost.base.clock import SystemClock
from waypost.base.http.hosts import hostname_of, is_loopback
from waypost.base.json_values import object_or_none, text_or_none
from waypost.cli.connections import admin_client, partner_client
from waypost.cli.tables import format_moment
from waypost.client.api_client import ApiResponseError, ApiUnreachable, HttpTransport

NEEDED: Final = ("PARTNER_URL", "APP_ID", "APP_TOKEN")
"""Variables that it reads."""
FORWARD_TIMEOUT_S: Final = 10
"""For a response of the application; the service itself waits for the receiver as long."""
_PASSED_ON: Final = ("content-type", "user-agent", "x-", "webhook-", "waypost-")
"""Beginnings of the names of headers that are forwarded: those of the callback, and none of the connection."""
_NO_RESPONSE: Final = 502
_CHECK_INTERVAL_S: Final = 1
"""Time between two readings of the subscriptions: a reset or another snapshot takes the listener's away."""
_TAG_PREFIX: Final = "listen-"
_OWN_TAG: Final = re.compile(r"(?:listen|mcp)-([1-9][0-9]{0,4})")
_PROBE_TIMEOUT_S: Final = 2
_STRANGERS: Final = (401, 403)
"""Statuses of a service that does not know our token: another one has the address now."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Options of a listener: the callbacks that it receives, and where it sends them."""

    modes: str  # of the subscription, separated by commas
    # names of events or types; callbacks of others are accepted, and neither printed nor forwarded. Empty: all.
    events: frozenset[str] = frozenset()
    # URL of an application; its response becomes the receiver's. None: every callback is accepted.
    forward_to: str | None = None
    pretty: bool = False  # print one line for people instead of the JSON
    port: int = 0  # to receive on; 0 takes a free one

    def fingerprint(self) -> str:
        """Return a digest of everything but the port, and of the terminal or file to which this process prints."""
        output = os.fstat(1)
        terminal = os.ttyname(1) if os.isatty(1) else ""  # a terminal that was closed has no name any more
        options = asdict(self) | {"events": sorted(self.events), "port": None}
        shown = json.dumps([options, output.st_dev, output.st_ino, output.st_rdev, terminal], sort_keys=True)
        return hashlib.sha256(shown.encode()).hexdigest()


async def listen(
    variables: Mapping[str, str],
    options: ListenOptions,
    *,
    print_line: Callable[[str], None],
    ready_fd: int | None = None,
) -> None:
    """Receive callbacks of one app until a signal; `ready_fd` gets one byte once the subscription is active.

    Raises:
        PortInUse: the port is in use.
    """
    bound = bind_socket("127.0.0.1", options.port, option="--port")
    server = HttpServer(ListeningReceiver(options, print_line), bound)
    await server.start()
    url = f"http://127.0.0.1:{port_of(bound)}/callbacks"
    fields = {"modes": options.modes, "tag": f"{_TAG_PREFIX}{port_of(bound)}", "url": url, "version": "2"}
    subscription = ListenerSubscription(variables, fields)
    try:
        await delete_abandoned_subscriptions(variables)
        await subscription.create()
        print_line(f"Ready: listening at {url}" + ("; Ctrl+C stops" if ready_fd is None else ""))
        if ready_fd is not None:
            os.write(ready_fd, b"1")
            os.close(ready_fd)
        if await subscription.keep(handle_stop_signals(), print_line):
            await subscription.delete()
    finally:
        await server.stop()


async def find_listener(variables: Mapping[str, str], options: ListenOptions) -> tuple[str, int] | None:
    """Return the URL and the process id of a listener of this app that prints the same to the same place; else None."""
    for row in await ListenerSubscription(variables, {}).rows():
        port = str(row["tag"]).removeprefix(_TAG_PREFIX)
        url = f"http://127.0.0.1:{port}/callbacks"
        if row["url"] != url or options.port not in (0, int(port)):
            continue
        try:
            response = await HttpTransport(f"http://127.0.0.1:{port}", timeout_s=_PROBE_TIMEOUT_S)(
                "GET", "/callbacks", {}, None
            )
            body = object_or_none(json.loads(response.body)) or {}
        except (ApiUnreachable, ValueError):
            continue
        if body.get("fingerprint") == options.fingerprint():
            return url, int(body["pid"])
    return None


async def delete_abandoned_subscriptions(variables: Mapping[str, str]) -> None:
    """Delete the app's subscriptions of killed receivers on this machine: few are allowed, and all would count.

    Only those that `waypost listen` and `waypost mcp` create, by tag and URL, and of which nobody has the port: a
    connection to it fails at once. Only of a service on this machine: another one's receivers are on another machine.
    """
    if not is_loopback(hostname_of(variables["PARTNER_URL"])):
        return
    path = f"/partner/app/{variables['APP_ID']}/subscription"
    for row in await ListenerSubscription(variables, {}).rows():
        tag = _OWN_TAG.fullmatch(str(row["tag"]))
        if tag and row["url"] == f"http://127.0.0.1:{tag[1]}/callbacks" and await _has_no_listener(int(tag[1])):
            with suppress(ApiResponseError):  # another command may just have deleted it
                await partner_client(variables).json("DELETE", f"{path}/{row['id']}")


async def _has_no_listener(port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), _PROBE_TIMEOUT_S)
    except (OSError, OverflowError) as error:  # also a timeout
        return isinstance(error, OSError) and error.errno == ECONNREFUSED
    writer.close()
    return False


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


class ListenerSubscription:
    """The subscription of a listener. It is created again when the service no longer has it."""

    def __init__(self, variables: Mapping[str, str], fields: Mapping[str, str]) -> None:
        self._client = partner_client(variables)
        self._path = f"/partner/app/{variables['APP_ID']}/subscription"
        self._fields = fields
        self._reader, self._list_path = self._client, self._path
        if variables.get("ADMIN_URL") and variables.get("ADMIN_TOKEN"):  # a partner's requests are in the request log
            self._reader = admin_client(variables)
            self._list_path = f"/admin/subscriptions?app_id={variables['APP_ID']}"

    async def create(self) -> dict[str, Any]:
        """Subscribe, and return the subscription."""
        return (await self._client.form("POST", self._path, self._fields))["subscription"]

    async def rows(self) -> list[dict[str, Any]]:
        """Return the app's subscriptions."""
        return (await self._reader.json("GET", self._list_path))["subscriptions"]

    async def keep(self, stop_event: asyncio.Event, print_line: Callable[[str], None]) -> bool:
        """Subscribe again whenever the subscription is missing, and print it, until the event is set; return True.

        Return False earlier if the service is another one now: it does not know the token.
        """
        printed = ""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop_event.wait(), _CHECK_INTERVAL_S)
                return True
            try:
                subscription_id = self._id_in(await self.rows())
            except ApiUnreachable:  # it may be starting again
                continue
            except ApiResponseError as error:
                if error.status in _STRANGERS:
                    print_line("The listener stops: another service has this address now, and does not know its token")
                    return False
                continue
            line = ""
            if subscription_id is None:
                line = await self._create_again()
            if line and line != printed:
                print_line(line)
            printed = line

    async def _create_again(self) -> str:
        """Subscribe, and return a line about it; empty if the service does not respond."""
        try:
            await self.create()
        except ApiUnreachable:
            return ""
        except ApiResponseError as error:
            return f"Not subscribed any more, and the subscription cannot be created again: {error}"
        return "Subscribed again: the service no longer had the subscription, as after a reset or a snapshot"

    async def delete(self) -> None:
        """Unsubscribe, unless the service no longer has the subscription."""
        subscription_id = self._id_in((await self._client.json("GET", self._path))["subscriptions"])
        if subscription_id is not None:
            await self._client.json("DELETE", f"{self._path}/{subscription_id}")

    def _id_in(self, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return the id of our subscription, by tag and URL: another may have its former id; None: it is missing."""
        return next(
            (row["id"] for row in rows if all(row[name] == self._fields[name] for name in ("tag", "url"))), None
        )


class ListeningReceiver:
    """The ASGI application that receives callbacks."""

    def __init__(self, options: ListenOptions, print_line: Callable[[str], None]) -> None:
        self._options = options
        self._print_line = print_line

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Respond with the application's status, or with 200 if callbacks are not forwarded.

        A GET responds with the process id and the fingerprint, by which a second `listen --background` finds this one.
        """
        if scope.get("method") == "GET":
            content = json.dumps({"pid": os.getpid(), "fingerprint": self._options.fingerprint()}).encode()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": content})
            return
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
        payload = object_or_none((callback or {}).get("payload")) or {}
        is_ping = (callback or {}).get("type") == "user-event" and payload.get("type") in (None, "sandbox-start")
        if callback is None or is_ping:
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


async def _forward(url: str, headers: Mapping[str, str], body: bytes) -> tuple[int | None, str, int]:
    """Post a callback to an application, bytes and signature unchanged; return status or None, error, ms taken."""
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


_BY_TYPE: Final = ("message-event", "template-event", "account-event", "user-event", "onboarding-event")
"""Types whose payload has the name of the event as its own type."""


def event_names(callback: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that `--events` accepts for a callback: its event, and its type."""
    kind = text_or_none(callback.get("type")) or ""
    payload = object_or_none(callback.get("payload")) or {}
    event = text_or_none(payload.get("type"))
    return (event, kind) if event else (kind,)


def summarise(callback: Mapping[str, Any]) -> str:
    """Return event, id and other end of a callback, for people."""
    kind = text_or_none(callback.get("type")) or ""
    payload = object_or_none(callback.get("payload")) or {}
    name, *_ = event_names(callback)
    shown = name if kind in _BY_TYPE or name == kind else f"{kind} ({name})"
    ids = (payload.get("gsId"), payload.get("id"), payload.get("elementName"))
    people = (payload.get("destination"), payload.get("source"), payload.get("phone"))
    about = next((text for text in ids if text_or_none(text)), "")
    person = next((text for text in people if text_or_none(text)), "")
    return "  ".join(part for part in (f"{shown:<20}", str(about), str(person)) if part).rstrip()
