"""Table: the conditions under which this process should get work, for `/readyz` and a metric.

Each check returns a sentence when it fails. Sentences contain no path, no address and no phone number:
the endpoint needs no credential.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waypost import __version__
from waypost.base.telemetry.logs import log
from waypost.queue.queue import JobQueue
from waypost.queue.worker import StageWorker
from waypost.store.database import Database, probe_write, stored_revision
from waypost.store.tables import REVISION

STORE_CHECK_TIMEOUT_S: Final = 2
"""How long the store has to respond to a check."""

CHECKS_CACHE_S: Final = 1
"""How long the results of the checks are returned again, so that requests cannot load the store."""


@dataclass(slots=True)
class CheckedServices:
    """The parts of a process that are checked."""

    database: Database
    queue: JobQueue
    name: str  # of this process
    folder: Path  # where the store and the media are
    least_free_mb: int
    stuck_s: float  # for how long a queue's loop may be in one step: longer than any call takes
    # those that this process runs, with the task that runs each once it has been started
    stages: Mapping[str, tuple[StageWorker, asyncio.Task[None] | None]]
    # the other tasks that run for as long as the process does, by name
    loops: Mapping[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    # returns why the simulator in this process does not work; None where there is none
    simulator: Callable[[], str] | None = None
    stopping: bool = False
    held: bool = False


ReadinessCheck = Callable[[CheckedServices], str | Awaitable[str]]
"""Returns an empty text when it passes."""


async def _can_read_store(services: CheckedServices) -> str:
    return await _check_store(services.database.read(stored_revision), "read", _schema_problem)


async def _can_write_store(services: CheckedServices) -> str:
    joins = (services.database.join, services.database.join_from_request)  # these may use separate connections
    for join in joins:
        problem = await _check_store(join(probe_write, services.name), "write")
        if problem:
            return problem
    return ""


def _queues_are_worked(services: CheckedServices) -> str:
    if services.held:
        return ""
    for name, (stage, task) in services.stages.items():
        if task is None:
            return f"the queue {name} is not worked yet"
        if task.done():
            return f"the queue {name} is no longer worked"
        if stage.loop_busy_s > services.stuck_s:
            return f"the queue {name} has been in one step for {stage.loop_busy_s:.0f} s"
        if stage.failures:
            return f"the queue {name} has failed {stage.failures} times in a row"
    return ""


def _loops_run(services: CheckedServices) -> str:
    ended = next((name for name, task in services.loops.items() if task.done()), None)
    return "" if ended is None else f"{ended} has ended"


async def _has_disk_space(services: CheckedServices) -> str:
    usage = await asyncio.to_thread(shutil.disk_usage, services.folder)
    free_mb = usage.free // 1_000_000
    return "" if free_mb >= services.least_free_mb else f"only {free_mb} MB are free on the store's disk"


READINESS_CHECKS: Final[Mapping[str, tuple[ReadinessCheck, str]]] = {  # Source: decision 0046
    # check, passes when
    "stopping": (
        lambda services: "the service is stopping" if services.stopping else "",
        "The process is not stopping.",
    ),
    "held": (
        lambda services: "the service is held: it sends nothing and accepts nothing" if services.held else "",
        "The process was not started with `--hold`.",
    ),
    "store_damage": (  # damage stays until a restart on a restored store
        lambda services: f"the store is damaged: {services.database.damage}" if services.database.damage else "",
        "Nothing that this process has read in the store was damaged.",
    ),
    "store_reads": (
        _can_read_store,
        "The store responds to a read within 2 s, and its schema is not older than this version's.",
    ),
    "store_writes": (_can_write_store, "A write is on disk within 2 s."),
    "queues": (_queues_are_worked, "The loop of each queue runs, makes progress, and does not fail."),
    "loops": (_loops_run, "The loops that delete and sweep alongside the queues run."),
    "simulator": (
        lambda services: "" if services.simulator is None else services.simulator(),
        "The simulator of `waypost dev` delivers webhooks, reviews templates and runs its phones.",
    ),
    "leases": (
        lambda services: (
            "" if services.held or services.queue.shards.are_leases_valid else "its leases could not be renewed in time"
        ),
        "The leases are renewed, where several processes share a store.",
    ),
    "disk": (_has_disk_space, "There is enough free space on the store's disk for the work already accepted."),
}


async def _run_check(check: ReadinessCheck, services: CheckedServices) -> str:
    result = check(services)
    return result if isinstance(result, str) else await result


class Readiness:
    """Runs all checks, at most once a second; its probes need no credential, and show only why a check fails."""

    def __init__(self, services: CheckedServices) -> None:
        self.services = services
        self._running_checks: asyncio.Task[dict[str, str]] | None = None
        self._reasons: dict[str, str] = {}
        self._until_s = 0.0
        self._was_ready = True
        self._log = log("operations")

    async def reasons(self) -> dict[str, str]:
        """Return for each check why it fails; an empty text where it passes."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._until_s and bool(self._reasons.get("stopping")) == self.services.stopping:
            return self._reasons
        if self._running_checks is None or self._running_checks.done():
            self._running_checks = asyncio.create_task(self._run_checks())
        return await asyncio.shield(self._running_checks)

    async def _run_checks(self) -> dict[str, str]:
        results = await asyncio.gather(*(_run_check(check, self.services) for check, _ in READINESS_CHECKS.values()))
        self._reasons = dict(zip(READINESS_CHECKS, results, strict=True))
        self._until_s = asyncio.get_running_loop().time() + CHECKS_CACHE_S
        failing = {name: why for name, why in self._reasons.items() if why}
        if bool(failing) == self._was_ready and not self.services.stopping:
            self._log.warning("not ready", **failing) if failing else self._log.info("ready again")
        self._was_ready = not failing
        return self._reasons

    def routes(self) -> list[Route]:
        """Return the routes of both probes."""
        return [Route("/healthz", self._healthz), Route("/readyz", self._readyz)]

    async def _healthz(self, _request: Request) -> Response:
        """Return 200: a process whose loop runs can respond; whether it can work, `/readyz` shows."""
        return JSONResponse({"status": "ok", "version": __version__})

    async def _readyz(self, _request: Request) -> Response:
        """Return 200 where every check passes; otherwise 503, with the reason of each check that fails."""
        reasons = await self.reasons()
        failing = {name: why for name, why in reasons.items() if why}
        checks = {name: why or "ok" for name, why in reasons.items()}
        status = "not ready" if failing else "ready"
        return JSONResponse({"status": status, "checks": checks}, 503 if failing else 200)


async def _check_store(query: Awaitable[Any], action: str, judge: Callable[[Any], str] = lambda _result: "") -> str:
    try:
        async with asyncio.timeout(STORE_CHECK_TIMEOUT_S):
            return judge(await query)
    except TimeoutError:
        return f"the store did not {action} within {STORE_CHECK_TIMEOUT_S} s"
    except Exception as error:  # noqa: BLE001  whatever keeps the store from responding
        return f"the store did not {action}: {type(error).__name__}"


def _schema_problem(revision: int | None) -> str:
    if revision is None or revision >= REVISION:
        return ""
    return f"the store's schema has revision {revision}, and this version needs {REVISION}"
