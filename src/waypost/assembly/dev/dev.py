"""`waypost dev`: service and simulator in one process, with a demonstration partner."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import socket
from typing import Final

from waypost.assembly.clock_file import kept_clock
from waypost.assembly.dev import demo
from waypost.assembly.dev.files import ENV_FILE, instance_key, variables, write_env
from waypost.assembly.dev.service_and_simulator import Pair, Places
from waypost.assembly.http.host_check import HostCheck, accepted_hosts, graph_error, service_error
from waypost.assembly.http.limits import graph_error_body, limits_of, raise_descriptor_limit, service_error_body
from waypost.assembly.http.servers import HttpServer, bind, port_of
from waypost.assembly.http.swappable_app import Gate, out_of_order
from waypost.assembly.service import WEBHOOK_PATH
from waypost.assembly.snapshots import snapshot
from waypost.assembly.snapshots.snapshot_files import Shelf, snapshot_of
from waypost.base.clock import Bearing, SystemClock, VirtualClock
from waypost.base.files import tighten
from waypost.base.ids import Ids, RandomIds, SeededIds
from waypost.base.time_travel import NotSettled, Travel
from waypost.client.api_client import InProcess
from waypost.config import Settings
from waypost.console.web.sessions import Carried
from waypost.operations.metrics import ServerCounts
from waypost.simulator import SimulatorSettings, Snapshot, SnapshotBusy, read_scenario
from waypost.store.contract import WrongStore
from waypost.store.engines.sqlite import take_lock

LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
_SIMULATOR: Final = "simulator.db"
_REST_WITHIN_S: Final = 10
_LEAVE_WITHIN_S: Final = 2


@dataclass(frozen=True, slots=True)
class DevOptions:
    """How to start.

    Attributes:
        memory: keep nothing: a temporary folder that goes at the end.
        env_file: where to write what other programs need to know.
        read_after_ms: how soon phones read what they get; None when they are told to.
        start_from: a snapshot that takes the place of what is in the folder; also what a reset goes back to.
        scenario: a file of faults that are armed at the start, and after a reset.
        seed: new ids repeat from run to run where the clock does too; None makes them by chance.
    """

    settings: Settings
    simulator_port: int = 8081
    memory: bool = False
    env_file: Path = ENV_FILE
    read_after_ms: int | None = None
    start_from: Path | None = None
    scenario: Path | None = None
    seed: str | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """Where everything is, once it runs.

    Attributes:
        ahead_ms: how far the clock is ahead of the machine's.
        factor: how many times as fast it runs; 0 stands still.
    """

    base_url: str
    graph_url: str
    data: Path
    variables: dict[str, str]
    ahead_ms: int
    factor: float


class Dev:
    """Service and simulator in one process; opened, and closed in the opposite order.

    It is the keeper of the simulator's control door: it brings both sides to another state by closing
    them, exchanging their files and opening them anew, behind servers that go on listening.

    Raises at `open`: PortInUse, StoreInUse, WrongStore, SnapshotError, InvalidScenario.

    Args:
        options: how to start.
        clock: both sides'; None: one that is kept in the folder.
        ids: both sides'; None: as the options say.
    """

    def __init__(self, options: DevOptions, clock: VirtualClock | None = None, ids: Ids | None = None) -> None:
        self._options = options
        self._given_clock = clock
        self._given_ids = ids
        self._opened = contextlib.AsyncExitStack()
        self._gates = (Gate(), Gate())
        self._changing = asyncio.Lock()
        self._pair: Pair | None = None
        self._servers: list[ServerCounts] = []
        self._seed_image: Path | None = None

    async def open(self) -> Running:
        """Start everything and return once it answers."""
        settings, scenario = self._options.settings, self._options.scenario
        if settings.database_url is not None:
            raise WrongStore(
                "waypost dev keeps its store in a file, so that it can be reset and saved: unset "
                "WAYPOST_DATABASE_URL, or run `waypost serve` on that database"
            )
        self._scenario = None if scenario is None else await asyncio.to_thread(read_scenario, scenario)
        if self._options.memory:
            temporary = Path(tempfile.mkdtemp(prefix="waypost-"))
            self._opened.callback(shutil.rmtree, temporary, ignore_errors=True)
            settings = settings.model_copy(update={"data": temporary})
        sockets = (
            bind(settings.host, settings.port, option="--port"),
            bind(settings.host, self._options.simulator_port, option="--simulator-port"),
        )
        for bound in sockets:  # also when the start fails before a server has them
            self._opened.callback(bound.close)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        local = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else host  # noqa: S104  compared, not bound
        self._places = Places(f"http://{local}:{port_of(sockets[0])}", f"http://{local}:{port_of(sockets[1])}")
        self._secret_key = instance_key(settings)
        self._settings = settings.model_copy(
            update={
                "public_url": settings.public_url or self._places.base_url,
                "secret_key": self._secret_key,
                "admin_token": settings.admin_token or demo.ADMIN_TOKEN,
                "show_text": settings.show_text or "show_text" not in settings.model_fields_set,
                "allowed_networks": (*LOOPBACK, *settings.allowed_networks),
            }
        )
        self._shelf = Shelf(settings.data)
        await asyncio.to_thread(self._put_in_place)
        lock = take_lock(self._settings.data / _SIMULATOR)
        self._opened.callback(os.close, lock)
        self._clock = self._given_clock or kept_clock(settings.data)
        self._travel = Travel(self._clock)
        # What is opened first is closed last: doors, stages, simulator, store.
        self._opened.push_async_callback(self._close_pair)
        token = await self._begin()
        await self._serve(sockets)
        await self._turn_ids()
        known = variables(self._places, self._settings.admin_token or "", token)
        write_env(self._options.env_file, known)
        return Running(
            self._places.base_url,
            self._places.graph_url,
            settings.data,
            known,
            self._clock.ahead_ms,
            self._clock.bearing.factor,
        )

    @property
    def tally(self) -> Counter[tuple[str, str]]:
        """How often each route has answered what."""
        assert self._pair is not None, "it is not open"  # noqa: S101  a defect, not an input
        return self._pair.waypost.application.tally

    async def close(self) -> None:
        """Stop doors, drain stages, hand back leases, close stores: whatever had been opened."""
        await self._opened.aclose()

    async def snapshots(self) -> list[Snapshot]:
        """What is kept, by name."""
        return await asyncio.to_thread(self._shelf.all)

    async def save(self, name: str) -> Snapshot:
        """Keep the state of both sides as it is at one moment, under a name.

        Raises:
            SnapshotBusy: something stays in flight; it is named.
        """
        file = self._shelf.place_of(name)
        beside = file.with_name(f".{file.name}")  # until it is known to be of one moment

        async def look() -> None:
            now_ms = self._clock.now_ms()
            bearing = Bearing(now_ms, now_ms, self._clock.bearing.factor)
            await _to_its_end(
                partial(snapshot.pack, self._settings.data, beside, bearing=bearing, secret_key=self._secret_key)
            )

        async with self._changing:
            try:
                await self._travel.at_rest(look, within_s=_REST_WITHIN_S, pause_traffic=self._pause_traffic)
                beside.replace(file)
            except NotSettled as error:
                raise SnapshotBusy(str(error)) from error
            finally:
                beside.unlink(missing_ok=True)
            return await asyncio.to_thread(snapshot_of, file)

    async def load(self, name: str) -> None:
        """Put both sides where they were when it was saved, the clock included.

        Raises:
            SnapshotError: there is none of that name, or it cannot be used here.
        """
        await self._change_to(self._shelf.file_of(name))

    async def drop(self, name: str) -> None:
        """Forget one.

        Raises:
            SnapshotError: there is none of that name.
        """
        self._shelf.drop(name)

    def file_of(self, name: str) -> Path:
        """The file of one.

        Raises:
            SnapshotError: there is none of that name.
        """
        return self._shelf.file_of(name)

    async def reset(self) -> None:
        """Put both sides where they started: at the snapshot they were started from, or at the seed."""
        await self._change_to(self._options.start_from)

    @contextlib.asynccontextmanager
    async def _pause_traffic(self) -> AsyncGenerator[None]:
        """Make requests from outside wait; what one side sends the other passes, so that it comes to its end."""
        service, simulator = self._gates
        with (
            service.paused(passing=lambda scope: scope["path"].startswith(WEBHOOK_PATH)),
            simulator.paused(passing=lambda scope: not scope["path"].startswith("/control/")),
        ):
            yield

    async def _change_to(self, file: Path | None) -> None:
        """Close both sides, exchange what they keep, and open them anew; requests wait meanwhile.

        Args:
            file: a snapshot; None begins anew, with the clock of the machine.
        """
        async with self._changing:
            data = self._settings.data
            image = file or self._seed_image
            if image is None:
                await asyncio.to_thread(snapshot.clear, data)
            else:
                await asyncio.to_thread(self._lay_ready, image)
            service, simulator = self._gates
            sessions = await self._end_streams()
            await asyncio.gather(
                service.shut(leaving=0, within_s=_LEAVE_WITHIN_S), simulator.shut(leaving=1, within_s=_LEAVE_WITHIN_S)
            )
            try:
                await self._close_pair(within_s=0)
                await asyncio.to_thread(snapshot.finish, data)
                self._clock.take(self._bearing_of(file))
                await self._begin()
                await self._turn_ids()
                if self._pair is not None:
                    await self._pair.waypost.console.parts.sessions.keep(sessions)
            except BaseException:
                for gate in self._gates:
                    gate.open(out_of_order)
                raise

    async def _end_streams(self) -> list[Carried]:
        """Let go of whoever looks at the console; gives who is signed in, and stays so."""
        if self._pair is None:
            return []
        self._pair.waypost.console.end_streams()
        return await self._pair.waypost.console.parts.sessions.alive()

    def _bearing_of(self, file: Path | None) -> Bearing:
        machine_ms = SystemClock().now_ms()
        if file is None:
            return Bearing(machine_ms, machine_ms)
        page = snapshot.read_page(file)
        return Bearing(page.at_ms, machine_ms, page.factor)

    def _put_in_place(self) -> None:
        """Before anything is opened: take a change to its end, and start from a snapshot."""
        data = self._settings.data
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = take_lock(self._settings.store_path)
        try:
            snapshot.finish(data)
            self._shelf.sweep()
            if self._options.start_from is not None:
                self._lay_ready(self._options.start_from)
                snapshot.finish(data)
            tighten(data)
        finally:
            os.close(lock)

    def _lay_ready(self, file: Path) -> None:
        machine_ms = SystemClock().now_ms()
        snapshot.unpack(file, self._settings.data, secret_key=self._secret_key, machine_ms=machine_ms)

    def _keep_seed(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="waypost-seed-"))
        self._opened.callback(shutil.rmtree, folder, ignore_errors=True)
        file = folder / f"seed{snapshot.SUFFIX}"
        bearing = Bearing(0, 0)
        snapshot.pack(self._settings.data, file, bearing=bearing, secret_key=self._secret_key)
        return file

    async def _close_pair(self, *, within_s: float | None = None) -> None:
        pair, self._pair = self._pair, None
        if pair is not None:
            await pair.close(within_s=within_s)

    async def _serve(self, sockets: tuple[socket, socket]) -> None:
        raise_descriptor_limit()
        hosts, limits = accepted_hosts(self._settings), limits_of(self._settings)
        refused = (service_error, graph_error)
        failed = (service_error_body, graph_error_body)
        sides = zip(self._gates, sockets, refused, failed, strict=True)
        for gate, bound, host_error, error_body in sides:
            application = HostCheck(gate, hosts, host_error)
            server = HttpServer(application, bound, limits=limits, error_body=error_body)
            if gate is self._gates[0]:
                self._servers.append(server.connections)
            self._opened.push_async_callback(server.stop)
            await server.start()
        self._opened.push_async_callback(self._end_streams)

    async def _turn_ids(self) -> None:
        """With a seed: whatever has been made so far, and however long ago, the next id is the same.

        Both sides take ids from one row, so that the first message, which a phone has just written,
        must have come to its end.
        """
        if isinstance(self._ids, SeededIds):
            with contextlib.suppress(NotSettled):  # somebody is sending already
                await self._travel.advance(to_ms=self._clock.now_ms(), within_s=_LEAVE_WITHIN_S)
            self._ids.turn_to("from here on")

    async def _begin(self) -> str:
        """Open both sides, let requests in, work the queues; gives the app's token.

        What is seeded into an empty folder is kept: a reset goes back to it, and need not seed anew.
        """
        seed = self._options.seed
        ids = self._given_ids or (RandomIds(self._clock) if seed is None else SeededIds(self._clock, seed))
        pair = Pair(
            self._settings,
            SimulatorSettings(
                path=self._settings.data / _SIMULATOR,
                read_after_ms=self._options.read_after_ms,
                allowed_hosts=accepted_hosts(self._settings),
                least_free_mb=self._settings.least_free_mb,
            ),
            self._clock,
            ids,
            travel=self._travel,
            keeper=self,
            control=InProcess(self._gates[1]),
        )
        pair.waypost.outside.servers = self._servers
        await pair.open(self._places)
        self._pair = pair
        if self._scenario is not None:
            await pair.simulator.arm_scenario(self._scenario)
        if pair.is_new and self._seed_image is None:
            self._seed_image = await asyncio.to_thread(self._keep_seed)
        self._ids = ids
        for gate, side in zip(self._gates, (pair.waypost, pair.simulator), strict=True):
            gate.open(side.application)
        return await pair.start()


async def _to_its_end(work: Callable[[], None]) -> None:
    """Do something in a thread; who is cut off meanwhile waits all the same, for a thread goes on."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise
