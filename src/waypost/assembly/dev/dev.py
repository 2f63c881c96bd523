"""`waypost dev`: service and simulator in one process, with a demonstration partner."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from socket import socket
from typing import Final

from waypost.assembly import snapshot
from waypost.assembly.clock_file import open_stored_clock
from waypost.assembly.components import WEBHOOK_PATH
from waypost.assembly.dev import demo
from waypost.assembly.dev.files import ENV_FILE, make_variables, read_or_create_instance_key, written_env
from waypost.assembly.dev.partners.inbox import PartnerCallbackReceiver
from waypost.assembly.dev.partners.registry import PartnerRegistry
from waypost.assembly.dev.service_and_simulator import BaseUrls, ServiceAndSimulator
from waypost.assembly.http.host_check import HostCheck, accepted_hosts
from waypost.assembly.http.limits import graph_error_body, http_limits, raise_descriptor_limit, service_error_body
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.assembly.http.swappable_app import SwappableApp, respond_swap_failed
from waypost.assembly.snapshot import SnapshotFiles, describe_snapshot
from waypost.base.clock import ClockSetting, SystemClock, VirtualClock
from waypost.base.files import remove_others_access
from waypost.base.ids import Ids, RandomIds, SeededIds
from waypost.base.time_travel import ClockNotIdle, TimeTravel
from waypost.client.api_client import InProcessTransport
from waypost.config import Settings
from waypost.console.web.sessions import CarriedSession
from waypost.operations.metrics import ServerCounts
from waypost.simulator import SimulatorSettings, Snapshot, SnapshotBusy, read_scenario
from waypost.store.contract import WrongStore
from waypost.store.engines.sqlite import take_lock

LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_SIMULATOR_FILE: Final = "simulator.db"
_IDLE_TIMEOUT_S: Final = 10
_DRAIN_TIMEOUT_S: Final = 2


@dataclass(frozen=True, slots=True)
class DevOptions:
    """Options of `waypost dev`."""

    settings: Settings
    simulator_port: int = 8081
    memory: bool = False  # use a temporary folder, which is deleted at the end
    env_file: Path | None = ENV_FILE  # file for the variables of other programs, deleted at the end; None: not written
    read_after_ms: int | None = None  # how soon phones read messages; None: only by a control call
    start_from: Path | None = None  # a snapshot that replaces the data of the folder; a reset restores it too
    scenario: Path | None = None  # a file of faults that are armed at the start, and after a reset
    seed: str | None = None  # makes ids repeat from run to run if the clock does too; None makes random ids


@dataclass(frozen=True, slots=True)
class DevStatus:
    """URLs, variables and clock of a running `waypost dev`."""

    base_url: str
    graph_url: str
    data: Path
    store_path: Path
    variables: dict[str, str]
    ahead_ms: int  # how far the clock is ahead of the machine's
    factor: float  # its speed as a multiple of real time; 0 if it is frozen


class DevServer:
    """Service and simulator in one process.

    It is the snapshot store of the simulator's control API: to change the state, it closes both sides,
    replaces their files and opens them again, behind servers that go on listening.

    Raises at `open`: PortInUse, StoreInUse, WrongStore, SnapshotError, InvalidScenario, EnvFileInUse.

    Args:
        clock: of both sides; None: the one stored in the folder.
        ids: of both sides; None: as the options say.
    """

    def __init__(self, options: DevOptions, clock: VirtualClock | None = None, ids: Ids | None = None) -> None:
        self._options = options
        self._clock_override = clock
        self._ids_override = ids
        self._exit_stack = contextlib.AsyncExitStack()
        self._swappable_apps = (SwappableApp(), SwappableApp())
        self._change_lock = asyncio.Lock()
        self._sides: ServiceAndSimulator | None = None
        self._servers: list[ServerCounts] = []
        self._seed_snapshot: Path | None = None

    async def open(self) -> DevStatus:
        """Start everything, and return once requests are served."""
        settings, scenario = self._options.settings, self._options.scenario
        if settings.database_url is not None:
            raise WrongStore(
                "waypost dev stores its data in a file, so that it can be reset and saved: unset "
                "WAYPOST_DATABASE_URL, or run `waypost serve` on that database"
            )
        self._scenario = None if scenario is None else await asyncio.to_thread(read_scenario, scenario)
        if self._options.memory:
            temporary = Path(tempfile.mkdtemp(prefix="waypost-"))
            self._exit_stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            settings = replace(settings, data=temporary)
        sockets = (
            bind_socket(settings.host, settings.port, option="--port"),
            bind_socket(settings.host, self._options.simulator_port, option="--simulator-port"),
        )
        for bound in sockets:  # also if the start fails before a server owns them
            self._exit_stack.callback(bound.close)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        local = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else host  # noqa: S104  compared, not bound
        self._urls = BaseUrls(f"http://{local}:{port_of(sockets[0])}", f"http://{local}:{port_of(sockets[1])}")
        self._secret_key = read_or_create_instance_key(settings)
        self._settings = replace(
            settings,
            public_url=settings.public_url or self._urls.base_url,
            simulator_url=self._urls.graph_url,
            secret_key=self._secret_key,
            admin_token=settings.admin_token or demo.ADMIN_TOKEN,
            show_text=settings.show_text is not False,
            onboarding_step_s=2 if settings.onboarding_step_s is None else settings.onboarding_step_s,
            request_log_sample=1 if settings.request_log_sample is None else settings.request_log_sample,
            allowed_networks=(*LOOPBACK, *settings.allowed_networks),
        )
        self._snapshot_files = SnapshotFiles(settings.data)
        await asyncio.to_thread(self._prepare_data)
        lock = take_lock(self._settings.data / _SIMULATOR_FILE)
        self._exit_stack.callback(os.close, lock)
        self._clock = self._clock_override or open_stored_clock(settings.data)
        self._travel = TimeTravel(self._clock)
        service, simulator = self._swappable_apps
        admin_token = self._settings.admin_token or ""
        self._partners = PartnerRegistry(service, simulator, self._urls, admin_token, self._clock)
        # Closed in reverse order: servers, stages, simulator, store.
        self._exit_stack.push_async_callback(self._close_sides)
        token = await self._open_sides()
        await self._serve(sockets)
        await self._reseed_ids()
        written = make_variables(self._urls, self._settings.admin_token or "", token)
        if self._options.env_file is not None:
            self._exit_stack.enter_context(written_env(self._options.env_file, written))
        return DevStatus(
            self._urls.base_url,
            self._urls.graph_url,
            settings.data,
            settings.store_path,
            written,
            self._clock.ahead_ms,
            self._clock.setting.factor,
        )

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """Number of responses by route and outcome."""
        assert self._sides is not None, "it is not open"  # noqa: S101  a defect, not an input
        return self._sides.waypost.application.outcomes

    async def close(self) -> None:
        """Stop servers, drain stages, release leases, close stores: everything that was opened."""
        await self._exit_stack.aclose()

    async def snapshots(self) -> list[Snapshot]:
        """Return the stored snapshots, by name."""
        return await asyncio.to_thread(self._snapshot_files.list_all)

    async def save(self, name: str) -> Snapshot:
        """Save the state of both sides at one moment, under a name.

        Raises:
            SnapshotBusy: something stays in flight; the text names it.
        """
        file = self._snapshot_files.path_for(name)
        temporary = file.with_name(f".{file.name}")  # until it is known to be of one moment

        async def pack_when_idle() -> None:
            now_ms = self._clock.now_ms()
            setting = ClockSetting(now_ms, now_ms, self._clock.setting.factor)
            await _run_to_completion(
                partial(snapshot.pack, self._settings.data, temporary, setting=setting, secret_key=self._secret_key)
            )

        async with self._change_lock:
            try:
                await self._travel.run_when_idle(
                    pack_when_idle, timeout_s=_IDLE_TIMEOUT_S, pause_traffic=self._pause_traffic
                )
                temporary.replace(file)
            except ClockNotIdle as error:
                raise SnapshotBusy(str(error)) from error
            finally:
                temporary.unlink(missing_ok=True)
            return await asyncio.to_thread(describe_snapshot, file)

    async def load(self, name: str) -> None:
        """Restore a snapshot on both sides, with its clock.

        Raises:
            SnapshotError: there is no such snapshot, or it cannot be used here.
        """
        await self._switch_state(self._snapshot_files.existing_path(name))

    async def drop(self, name: str) -> None:
        """Delete a snapshot. Raises SnapshotError: there is no such snapshot."""
        self._snapshot_files.drop(name)

    def file_of(self, name: str) -> Path:
        """Return the file of a snapshot. Raises SnapshotError: there is no such snapshot."""
        return self._snapshot_files.existing_path(name)

    async def reset(self) -> None:
        """Restore the initial state of both sides: the snapshot they were started from, or the seeded data."""
        await self._switch_state(self._options.start_from)

    @contextlib.asynccontextmanager
    async def _pause_traffic(self) -> AsyncGenerator[None]:
        """Make outside requests wait; requests between both sides pass, so that work in flight completes."""
        service, simulator = self._swappable_apps
        with (
            service.pause(is_exempt=lambda scope: scope["path"].startswith(WEBHOOK_PATH)),
            simulator.pause(is_exempt=lambda scope: not scope["path"].startswith("/control/")),
        ):
            yield

    async def _switch_state(self, file: Path | None) -> None:
        """Close both sides, replace their data, and open them again; requests wait meanwhile.

        Args:
            file: a snapshot; None: the initial state, with the clock of the machine.
        """
        async with self._change_lock:
            data = self._settings.data
            image = file or self._seed_snapshot
            if image is None:
                await asyncio.to_thread(snapshot.stage_empty, data)
            else:
                await asyncio.to_thread(self._stage_snapshot, image)
            service, simulator = self._swappable_apps
            sessions = await self._end_streams()
            await asyncio.gather(
                service.close(ignored=0, timeout_s=_DRAIN_TIMEOUT_S),
                simulator.close(ignored=1, timeout_s=_DRAIN_TIMEOUT_S),
            )
            try:
                await self._close_sides(within_s=0)
                await asyncio.to_thread(snapshot.apply_staged, data)
                self._clock.apply(self._clock_setting_for(file))
                await self._open_sides()
                await self._reseed_ids()
                if self._sides is not None:
                    await self._partners.end_missing(self._sides.has_app)
                    await self._sides.waypost.console.services.sessions.restore(sessions)
            except BaseException:
                for app in self._swappable_apps:
                    app.set_application(respond_swap_failed)
                raise

    async def _end_streams(self) -> list[CarriedSession]:
        """End the console's update streams; return the sessions, which a change of state does not end."""
        if self._sides is None:
            return []
        self._sides.waypost.console.end_streams()
        return await self._sides.waypost.console.services.sessions.list_unexpired()

    def _clock_setting_for(self, file: Path | None) -> ClockSetting:
        machine_ms = SystemClock().now_ms()
        if file is None:
            return ClockSetting(machine_ms, machine_ms)
        manifest = snapshot.read_manifest(file)
        return ClockSetting(manifest.at_ms, machine_ms, manifest.factor)

    def _prepare_data(self) -> None:
        """Before anything is opened: complete an interrupted change, and restore the snapshot to start from."""
        data = self._settings.data
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = take_lock(self._settings.store_path)
        try:
            snapshot.apply_staged(data)
            self._snapshot_files.remove_temporary_files()
            if self._options.start_from is not None:
                self._stage_snapshot(self._options.start_from)
                snapshot.apply_staged(data)
            remove_others_access(data)
        finally:
            os.close(lock)

    def _stage_snapshot(self, file: Path) -> None:
        machine_ms = SystemClock().now_ms()
        snapshot.stage_snapshot(file, self._settings.data, secret_key=self._secret_key, machine_ms=machine_ms)

    def _save_seed(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="waypost-seed-"))
        self._exit_stack.callback(shutil.rmtree, folder, ignore_errors=True)
        file = folder / f"seed{snapshot.SNAPSHOT_SUFFIX}"
        setting = ClockSetting(0, 0)
        snapshot.pack(self._settings.data, file, setting=setting, secret_key=self._secret_key)
        return file

    async def _close_sides(self, *, within_s: float | None = None) -> None:
        sides, self._sides = self._sides, None
        if sides is not None:
            await sides.close(within_s=within_s)

    async def _serve(self, sockets: tuple[socket, socket]) -> None:
        raise_descriptor_limit()
        hosts, limits = accepted_hosts(self._settings), http_limits(self._settings)
        error_bodies = (service_error_body, graph_error_body)
        for app, bound, error_body in zip(self._swappable_apps, sockets, error_bodies, strict=True):
            application = HostCheck(app, hosts, error_body)
            server = HttpServer(application, bound, limits=limits, error_body=error_body)
            if app is self._swappable_apps[0]:
                self._servers.append(server.connections)
            self._exit_stack.push_async_callback(server.stop)
            await server.start()
        self._exit_stack.push_async_callback(self._end_streams)

    async def _reseed_ids(self) -> None:
        """Make the next id independent of the ids made so far, if there is a seed.

        Both sides take ids from one sequence, so the first message, which a phone has just written, must
        have been processed before.
        """
        if isinstance(self._ids, SeededIds):
            with contextlib.suppress(ClockNotIdle):  # a client is sending already
                await self._travel.advance(to_ms=self._clock.now_ms(), stop_timeout_s=_DRAIN_TIMEOUT_S)
            self._ids.reseed("from here on")

    async def _open_sides(self) -> str:
        """Open both sides, let requests in, start the queues' workers; return the app's token.

        The data seeded into an empty folder is saved, so that a reset restores it without seeding again.
        """
        seed = self._options.seed
        ids = self._ids_override or (RandomIds(self._clock) if seed is None else SeededIds(self._clock, seed))
        sides = ServiceAndSimulator(
            self._settings,
            SimulatorSettings(
                path=self._settings.data / _SIMULATOR_FILE,
                read_after_ms=self._options.read_after_ms,
                allowed_hosts=accepted_hosts(self._settings),
                least_free_mb=self._settings.least_free_mb,
                media_networks=self._settings.allowed_networks,
            ),
            self._clock,
            ids,
            travel=self._travel,
            snapshots=self,
            partners=self._partners,
            control=InProcessTransport(self._swappable_apps[1]),
        )
        sides.waypost.observability.servers = self._servers
        await sides.open(self._urls)
        self._sides = sides
        if self._scenario is not None:
            await sides.simulator.arm_scenario(self._scenario)
        if sides.is_new and self._seed_snapshot is None:
            self._seed_snapshot = await asyncio.to_thread(self._save_seed)
        self._ids = ids
        service, simulator = self._swappable_apps
        service.set_application(sides.waypost.logged_application)
        simulator.set_application(PartnerCallbackReceiver(sides.simulator.application, self._partners.find_inbox))
        return await sides.start()


async def _run_to_completion(work: Callable[[], None]) -> None:
    """Run something in a thread; if cancelled, wait for the thread too, because it cannot be stopped."""
    future = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.gather(future, return_exceptions=True)
        raise
