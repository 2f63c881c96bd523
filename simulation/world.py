"""One run, put together: service, operator, two partners, phones and an administrator, in one folder."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from simulation.accounts import PORTS, REJECTS_UNTIL_S, Receiver, make_partners, seed_operator, seed_service
from simulation.administrator import Administrator
from simulation.agreement import check_states, check_subscriptions
from simulation.choices import Choices, declare
from simulation.configuration import Configuration
from simulation.defects import take_defects
from simulation.disk import Disk
from simulation.erasure import ErasedPerson
from simulation.faults import Faults, MachineClock
from simulation.files import (
    FileActor,
    Site,
    check_downloads,
    find_incomplete,
    find_lost_files,
    find_wrong_copies,
    make_old,
)
from simulation.key_keeper import KeyKeeper
from simulation.leftovers import count_tasks, find_leftovers, find_running
from simulation.machine import listen_at
from simulation.meanwhile import Meanwhile
from simulation.media_folder import MediaFolder, forget
from simulation.memory import MemoryCheck
from simulation.observed import Observed
from simulation.partners import PHONES, PartnerActor
from simulation.phones import Phone, Reviewer
from simulation.postgresql import DatabaseRun, ProcessConnections
from simulation.process import STARTED_AGAIN_AFTER_S, Killer, Process, ProcessDied
from simulation.promises import Promises
from simulation.revocation import find_accepted_after_revocation
from simulation.second_round import SecondRound
from simulation.sending import check_limits, check_requests
from simulation.service_settings import ServiceSettings
from simulation.storage_faults import StorageFaults
from simulation.stores import StoreQueries
from simulation.suspension import ProcessClock, Suspender
from simulation.timing import check_timing
from waypost.assembly.http.servers import HttpServer
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import SeededIds
from waypost.simulator import Simulator, SimulatorSettings

FAULTS_FOR_S: Final = 30
LEASES_END_WITHIN_S: Final = 20
"""After a process was killed or stood still, until another one works what it had leased."""
KILLS_FOR_S: Final = 30
HEALED_WITHIN_S: Final = 900
"""Longer than the longest delay of a retry after faults of a minute."""
LATEST_RETRY_S: Final = 43_200
"""A clock that jumps forward, and a person who retries, use up the shorter delays: the next one may be of this length, the
last of a callback, a fifth longer."""
LOOK_EVERY_S: Final = 20
GROUPS_END_WITHIN_S: Final = 80
"""A group of the queue stays in memory for a minute after its last job; connections end earlier."""
REJECTED: Final = (3, 0, 10)

declare(
    {"a receiver rejects a callback": "a receiver rejected one of its callbacks for some minutes, or most of an hour"}
)


@dataclass
class Outcome:
    """What a run did, and the promises that it broke."""

    acknowledged: int = 0
    callbacks: int = 0
    states: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return one line for a person."""
        states, faults = ({str(name): count for name, count in sorted(c.items())} for c in (self.states, self.faults))
        return (
            f"{self.acknowledged} acknowledged {states}, {self.callbacks} callbacks, {self.virtual_s:.0f} s, {faults}"
        )


class World:
    """Everything in one run.

    Args:
        choices: of the seed, which is the one of the ids as well.
        transports: all ends of connections of the simulated network.
        configuration: what the run is, beside its seed.
        database: of PostgreSQL; None: SQLite.
    """

    def __init__(
        self,
        folder: Path,
        choices: Choices,
        transports: list[Any],
        configuration: Configuration,
        database: DatabaseRun | None = None,
    ) -> None:
        self._choices, self._has_faults = choices, configuration.has_faults
        self._configuration = configuration
        self._transports = transports
        self.observed = Observed(processes=configuration.processes)
        machine_clock = MachineClock()
        self.clock = SystemClock(machine_ns=machine_clock.machine_ns, steady_ns=machine_clock.steady_ns)
        numbers = range(configuration.processes)
        self._clocks = [ProcessClock(self.clock) for _ in numbers]
        self._ports = [PORTS["service"] + 10 * nth for nth in numbers]
        self.faults = Faults(choices, self.observed, machine_clock, transports, PORTS | {"service": self._ports})
        self.simulator = Simulator(
            SimulatorSettings(
                path=folder / "simulator.db",
                deliver_after_ms=20,
                gather_ms=choices.pick("statuses are gathered for", (5, 3000)),
                review_delay_ms=500,
            ),
            self.clock,
            SeededIds(self.clock, f"operator {choices.seed}"),
        )
        self._database = database
        if database is not None:
            database.failures = self.observed.storage_failures
        self._memory = MemoryCheck(choices)
        self._starts = 0
        url = None if database is None else database.url
        self._settings = ServiceSettings(choices, self.observed, folder, url)
        self._are_held = [False for _ in numbers]
        self._disk = Disk(folder / "waypost.db", choices.seed) if database is None else None
        self._site, self._media = Site(), folder / "media"
        self._media_folder = None if self._disk is None else MediaFolder(self._media, self._disk)
        self._storage_faults = [] if self._disk is None else [StorageFaults(self._disk, choices, self.observed)]
        self._connections = [] if database is None else [ProcessConnections(database) for _ in numbers]
        self.processes = [self._make_process(nth) for nth in numbers]
        self.partners = make_partners()
        self._stores = StoreQueries(folder, None if database is None else self._read)
        self.promises = Promises(self.observed, self.partners, self._stores)

    async def _read(self, query: str) -> list[Any]:
        if self._database is not None:
            return await self._database.read(query)
        return await self.processes[0].waypost.database.read(lambda connection: list(connection.execute(text(query))))

    def _make_process(self, nth: int) -> Process:
        name = f"service {nth}" if nth else "service"
        serve = partial(self._observe, name="service")
        connections = self._connections[nth] if self._connections else None
        make = partial(self._make_service, nth)
        process = Process(name, self._ports[nth], make, storage=self._disk, connections=connections, serve=serve)
        process.on_end = self._start_again
        return process

    def _make_service(self, nth: int) -> Waypost:
        self._starts += 1
        ids = SeededIds(self.clock, f"service {self._choices.seed} {self._starts}")
        return Waypost(self._settings.make(hold=self._are_held[nth]), self._clocks[nth], ids, process=str(nth))

    async def open(self) -> None:
        """Start everything, and seed the partners on both sides."""
        await self.simulator.open()
        for partner in self.partners:
            await seed_operator(self.simulator, partner)
        self._receivers = receivers = {name: self._make_receiver() for name in PORTS if name.startswith("receiver")}
        others = {"operator": self.simulator.application, "site": self._site, **receivers}
        self._servers = [
            HttpServer(self._observe(application, name), listen_at(PORTS[name])) for name, application in others.items()
        ]
        for server in self._servers:
            await server.start()
        first, *more = self.processes
        await first.start(self._seed_service)
        for process in more:
            await process.supervise_start()

    async def _seed_service(self, waypost: Waypost) -> None:
        for partner in self.partners:
            await seed_service(waypost, partner, self._choices, self.observed)

    def _make_receiver(self) -> Receiver:
        kind = "a receiver rejects a callback"
        if not self._choices.happens(kind, 0.2) or not self._has_faults:
            return Receiver()
        until_s = self._choices.pick("until", REJECTS_UNTIL_S, of=kind)
        return Receiver(self._choices.pick("callback", REJECTED, of=kind), until_s)

    def _observe(self, application: Any, name: str) -> Any:
        inside = self.observed.inside(application)
        around = self.faults.around(inside, name) if self._has_faults else inside
        return self.observed.outside(around, name)

    async def _start_again(self, process: Process) -> None:
        """Start a process that has ended by itself, as a supervisor does."""
        with self.observed.interruption():
            async with process.lifecycle:
                while not process.is_running:
                    await asyncio.sleep(STARTED_AGAIN_AFTER_S)
                    with contextlib.suppress(ProcessDied):
                        await process.supervise_start()

    async def suspend(self, for_s: float) -> None:
        """Let a process stand still when it next waits for somebody."""
        nth = self._choices.pick("process", range(len(self.processes)))
        settles_s = LEASES_END_WITHIN_S if self._connections else 0
        suspender = Suspender(self.processes[nth], self._clocks[nth], self._choices, self.observed, settles_s)
        await suspender.suspend_once(for_s)

    async def restart(self, hold_s: float | None) -> None:
        """Stop a process as a signal does, and start it again; for `hold_s` with the setting `hold`, if given."""
        await self._restart(self._choices.pick("process", range(len(self.processes))), hold_s)

    async def restart_each(self) -> None:
        """Restart the processes, one after the other."""
        for nth in range(len(self.processes)):
            await self._restart(nth, None)

    async def _restart(self, nth: int, hold_s: float | None) -> None:
        process = self.processes[nth]
        with self.observed.interruption(), contextlib.suppress(ProcessDied):  # then it is started again after the kill
            async with process.lifecycle:
                await process.stop()
                self._settings.change()
                if hold_s is not None:
                    await self._hold(nth, hold_s)
                await process.supervise_start()

    async def _hold(self, nth: int, hold_s: float) -> None:
        """Start a process with the setting `hold`, and stop it after this time, or when it is killed."""
        self._are_held[nth] = True
        try:
            await self.processes[nth].supervise_start()
            held_s = asyncio.get_running_loop().time()
            await asyncio.sleep(hold_s)
            if len(self.processes) == 1 and self.processes[nth].is_running:
                self.observed.held.append((held_s, asyncio.get_running_loop().time()))
            await self.processes[nth].stop()
        finally:
            self._are_held[nth] = False

    async def run(self, count: int) -> Outcome:
        """Let everybody act under faults, heal, wait until no work is left, and check every promise."""
        tasks_before = count_tasks()
        self._memory.begin(self.processes[0].waypost)
        if self._has_faults:
            for faults in (self.faults, *self._storage_faults):
                faults.start()
            if self._database is not None:
                self._database.start_faults()
        interrupting = asyncio.gather(*self._interrupt_processes())
        check_acknowledged = self.promises.check_acknowledged
        actors = [
            PartnerActor(one, self._choices, self.observed, self._ports, check_acknowledged) for one in self.partners
        ]
        self._file_actors = [
            FileActor(
                one, self._choices, self.observed, self._ports, self._media, self._site, actor.send, check_acknowledged
            )
            for one, actor in zip(self.partners, actors, strict=True)
        ]
        phones = [Phone(number, self.simulator, self.partners, self._choices) for number in PHONES]
        administrator = Administrator(self.partners, self.simulator, self._choices, self.observed, self.restart)
        person = ErasedPerson(self.partners, self.simulator, self._choices, self.observed)
        key_keeper = KeyKeeper(administrator.call, self._settings, self._choices, self.restart_each)
        await asyncio.gather(
            *(actor.send_messages(count // len(actors)) for actor in actors),
            *(actor.work() for actor in (*actors, *self._file_actors)),
            *(phone.use() for phone in phones),
            Reviewer(self.simulator, self._choices).work(),
            administrator.work(),
            person.live(),
            key_keeper.work(),
        )
        await interrupting
        if self._has_faults:
            await asyncio.sleep(FAULTS_FOR_S)
            for faults in (self.faults, *self._storage_faults):
                await faults.stop()
            if self._database is not None:
                await self._database.stop_faults()
        await self._wait_until_idle()
        meanwhile = Meanwhile(self.observed, self._receivers, self._choices, self.restart, self.suspend)
        second_round = SecondRound(
            self.partners, self.observed, self.simulator, self.promises, self._choices, meanwhile
        )
        await second_round.run(list(self._receivers.values()), self.clock.now_ms())
        self.observed.broken += await find_accepted_after_revocation(self.partners, self._ports)
        await self._check_files()
        (sent,) = self._stores.read_operator("SELECT callback_data FROM messages WHERE is_inbound=0")
        await person.end(self._read, sent)
        await asyncio.sleep(GROUPS_END_WITHIN_S)
        in_flight = [one for process in self.processes for one in await process.waypost.describe_in_flight()]
        self.observed.broken += find_running(tasks_before, self._transports, in_flight)
        await self.promises.check_end()
        apps = [app for partner in self.partners for app in partner.apps]
        self.observed.broken += find_leftovers([process.waypost for process in self.processes])
        for process in self.processes:
            self.observed.broken += self._memory.find_growth(process.waypost)
        rows = await self._read("SELECT id, app_id, destination, state FROM messages")
        subscriptions = await self._read("SELECT tag, modes, active FROM subscriptions")
        expected = {path: terms for partner in self.partners for path, terms in partner.expected_terms.items()}
        self.observed.broken += [
            *check_timing(self.observed, apps),
            *check_requests(self.observed, [row[:3] for row in rows]),
            *check_states(self.observed, {row.id: row.state for row in rows}),
            *check_subscriptions(expected, subscriptions),
            *check_limits(self.observed),
            *take_defects(),
        ]
        return Outcome(
            acknowledged=len(self.observed.acknowledged),
            callbacks=sum(one.site.startswith("receiver") for one in self.observed.exchanges),
            states=Counter(row.state for row in rows),
            faults=self._choices.counts,
            virtual_s=asyncio.get_running_loop().time(),
            broken=self.observed.broken,
        )

    async def _check_files(self) -> None:
        """Check that each file comes back, and that none is left that nobody has."""
        await check_downloads(self._file_actors, self.observed)
        if self._disk is not None:  # where processes share a folder, it may be another's for an hour
            self.observed.broken += find_incomplete(self._media)
        make_old(self._media)
        first = self.processes[0]
        await first.run(first.waypost.media_sweep.sweep)
        rows = await self._read("SELECT sha256 FROM media UNION SELECT sha256 FROM inbound_media")
        self.observed.broken += find_lost_files(self._media, {name for (name,) in rows if name is not None})
        queries = (
            "SELECT callback_data, content FROM messages WHERE is_inbound=0",
            ("SELECT key, body FROM state WHERE kind = 'media'"),
        )
        self.observed.broken += find_wrong_copies(self._file_actors, *self._stores.read_operator(*queries))

    def _interrupt_processes(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield what kills and suspends processes while everybody acts."""
        if not self._has_faults:
            return
        until_s = asyncio.get_running_loop().time() + KILLS_FOR_S
        settles_s = LEASES_END_WITHIN_S if self._connections else 0
        for nth, process in enumerate(self.processes):
            storage = self._connections[nth] if self._connections else self._disk
            killer = Killer(process, self._choices, self.observed, storage, settles_s)
            yield killer.run(self._configuration.kills, until_s)
            suspender = Suspender(process, self._clocks[nth], self._choices, self.observed, settles_s)
            yield suspender.run(self._configuration.suspensions, until_s)

    async def _wait_until_idle(self) -> None:
        """Return when no job is left, or too late; look every few seconds whether something stands still."""
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + HEALED_WITHIN_S
        latest_s = until_s + LATEST_RETRY_S
        while now_s() < until_s:
            await asyncio.sleep(LOOK_EVERY_S if self._has_faults else 1)
            if await self.promises.check_progress(self.clock.now_ms()):
                return
            if self.observed.broken:
                continue  # and what is broken for good would be waited for during hours
            retried_s = now_s() + (self.promises.next_retry_ms - self.clock.now_ms()) / 1000
            until_s = max(until_s, min(retried_s + 3 * LOOK_EVERY_S, latest_s))
        await self.promises.check_progress(self.clock.now_ms(), is_last=True)

    async def close(self) -> None:
        """Stop everything, as signals do."""
        for process in self.processes:
            await process.stop()
        for server in self._servers:
            await server.stop()
        await self.simulator.close()
        if self._disk is not None:
            self._disk.close()
        if self._media_folder is not None:
            forget(self._media_folder)


async def run_world(
    choices: Choices, transports: list[Any], configuration: Configuration, database: DatabaseRun | None
) -> Outcome:
    """Run a world in a folder of its own."""
    transports.clear()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), choices, transports, configuration, database)
        await world.open()
        outcome = await world.run(configuration.messages)
        await world.close()
        return outcome
