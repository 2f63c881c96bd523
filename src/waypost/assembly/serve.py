"""`waypost serve`: the service alone, for real traffic."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from waypost.assembly.dev import demo
from waypost.assembly.http.limits import http_limits, raise_descriptor_limit
from waypost.assembly.http.servers import (
    HttpServer,
    bind_socket,
    handle_stop_signals,
    port_of,
    tune_garbage_collector,
    watch_end_of_input,
)
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock
from waypost.base.encryption import hash_secret
from waypost.base.extras import install_command
from waypost.base.files import remove_others_access
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.config import STAGES, Settings
from waypost.store.contract import StoreUnavailable
from waypost.store.media.files import check_folder
from waypost.store.properties import check_production_ready


class InvalidConfiguration(Exception):
    """A setting is missing, public or incompatible with another; the text has a fix hint."""


def check_configuration(settings: Settings) -> None:
    """Return if these settings are fit for real traffic.

    Raises:
        InvalidConfiguration: a setting is missing, public or incompatible with another.
    """
    if settings.secret_key is None:
        raise InvalidConfiguration(
            "secret_key is not set: set WAYPOST_SECRET_KEY to 64 random hex digits "
            "and keep it, because encrypted secrets cannot be decrypted with another one"
        )
    if settings.secret_key == demo.INSTANCE_KEY or settings.admin_token == demo.ADMIN_TOKEN:
        raise InvalidConfiguration("secret_key or admin_token is the demonstration's, which is public; set others")
    check_media_settings(settings)
    if settings.database_url is None and settings.workers > 1:
        raise InvalidConfiguration(
            "an SQLite store supports one process: leave --workers out, "
            "or set WAYPOST_DATABASE_URL to a PostgreSQL database"
        )
    if settings.database_url is None and settings.stages != STAGES:
        raise InvalidConfiguration(
            "an SQLite store supports one process, which runs all stages: leave --stages out, "
            "or set WAYPOST_DATABASE_URL to a PostgreSQL database"
        )


def check_media_settings(settings: Settings) -> None:
    """Return if the settings of the media bucket fit together, and its library is installed.

    Raises:
        InvalidConfiguration: they do not, or it is not.
    """
    if (settings.media_access_key_id is None) != (settings.media_secret_key is None):
        raise InvalidConfiguration(
            "media_access_key_id and media_secret_key belong together: set both, or none of them to use the "
            "credentials of the environment or of the machine's role"
        )
    if settings.media_url is not None and find_spec("obstore") is None:
        raise InvalidConfiguration(
            f"media_url needs the package obstore, which is not installed: {install_command('s3')}"
        )


_ADMIN_PATH: Final = "/admin"
_METRICS_PATH: Final = "/metrics"
_PROBE_PATHS: Final = ("/healthz", "/readyz")
_NOT_FOUND_BODY: Final = b'{"status":"error","message":"There is nothing at this path."}'


def is_admin_path(path: str) -> bool:
    """True for the admin API and the metrics."""
    path = path.rstrip("/")
    return path in (_ADMIN_PATH, _METRICS_PATH) or path.startswith(f"{_ADMIN_PATH}/")


class PathFilter:
    """An ASGI application that forwards some paths, and responds with 404 to others.

    Args:
        application: that serves them.
        is_served: returns whether a path is forwarded.
    """

    def __init__(self, application: Any, is_served: Callable[[str], bool]) -> None:
        self._application = application
        self._is_served = is_served

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        if scope["type"] != "http" or self._is_served(scope["path"]):
            await self._application(scope, receive, send)
            return
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_NOT_FOUND_BODY))]
        await send({"type": "http.response.start", "status": 404, "headers": head})
        await send({"type": "http.response.body", "body": _NOT_FOUND_BODY})


ReportReady = Callable[[str], None]
"""Called once with the URL, as soon as requests are served."""


REQUEST_DRAIN_S: Final = 5
"""How long a stop waits for open requests; a part of `stop_within_s`."""


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """One of several worker processes that a supervisor has started."""

    number: int  # from 1
    socket: int  # the descriptor of an inherited listening socket


async def serve(
    settings: Settings, clock: Clock, ids: Ids, *, ready: ReportReady, worker: WorkerIdentity | None = None
) -> None:
    """Run the service until a signal, then stop in order: servers, stages, leases, store.

    Args:
        settings: fit for real traffic.
        ready: called once requests are served.
        worker: this process among several; a worker also stops when the pipe from its supervisor closes.

    Raises:
        InvalidConfiguration: a setting is missing or public.
        PortInUse: a port is in use.
        StoreUnavailable: the store cannot be reached.
        StoreInUse: another process has the store open.
        WrongStore: the store is not for real traffic.
    """
    check_configuration(settings)
    await asyncio.to_thread(remove_others_access, settings.data)
    raise_descriptor_limit()
    limits = http_limits(settings)
    stop_event = handle_stop_signals()
    number = 0
    if worker is None:
        bound = bind_socket(settings.host, settings.port, option="--port")
    else:
        watch_end_of_input(stop_event, exit_after_s=settings.drain_s + settings.stop_within_s + 2 * REQUEST_DRAIN_S)
        number, bound = worker.number, socket.socket(fileno=worker.socket)
    metrics_socket = admin_socket = None
    extra_servers: list[HttpServer] = []
    if settings.metrics_port is not None:
        metrics_socket = bind_socket(settings.host, settings.metrics_port + number, option="WAYPOST_METRICS_PORT")
    if settings.admin_port is not None:
        host = settings.admin_host or "127.0.0.1"
        admin_socket = bind_socket(host, settings.admin_port + number, option="WAYPOST_ADMIN_PORT")
    waypost = Waypost(settings, clock, ids, process=str(number))
    await waypost.open()
    try:
        public_hashes = {hash_secret(demo.API_KEY), hash_secret(demo.CLIENT_SECRET)}
        await waypost.database.read(check_production_ready, public_hashes)
        is_shared = not waypost.database.is_exclusive or settings.media_url is not None
        if is_shared and settings.stages != ("callbacks",):
            name = await waypost.files.ensure_name(ids.new())
            await waypost.database.write(check_folder, waypost.files.location, name)
        drain_s = min(REQUEST_DRAIN_S, settings.stop_within_s)
        waypost.start()
        with contextlib.suppress(StoreUnavailable):
            if not settings.hold:
                await waypost.queue.shards.renew_if_due()  # so that the first probe finds it ready
        public: Any = waypost.logged_application
        if admin_socket is not None:
            admin = PathFilter(public, lambda path: is_admin_path(path) or path.rstrip("/") in _PROBE_PATHS)
            extra_servers.append(HttpServer(admin, admin_socket, limits=limits))
            public = PathFilter(public, lambda path: not is_admin_path(path))
        if metrics_socket is not None:
            extra_servers.append(
                HttpServer(waypost.observability.standalone_application(), metrics_socket, limits=limits)
            )
        server = HttpServer(public, bound, stop_within_s=drain_s, limits=limits)
        waypost.observability.servers = [each.connections for each in (server, *extra_servers)]
        for each in (server, *extra_servers):
            await each.start()
        tune_garbage_collector()
        ready(f"http://{settings.host}:{port_of(bound)}")
        await stop_event.wait()
        waypost.observability.mark_stopping()
        if settings.drain_s:
            server.begin_drain()
            log("assembly").info("not ready any more; the API responds on", for_s=settings.drain_s)
            await asyncio.sleep(settings.drain_s)
        until_s = time.monotonic() + settings.stop_within_s
        waypost.console.end_streams()
        await server.stop()
        await waypost.drain(within_s=max(0, until_s - time.monotonic()))
        for each in extra_servers:  # metrics and probes stay available until all stages have stopped
            await each.stop()
    finally:
        await waypost.close()
