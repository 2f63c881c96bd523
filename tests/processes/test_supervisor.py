"""The supervisor, with workers that do nothing but live and end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.workers import WorkersFailed, WorkerSupervisor
from waypost.config import Settings

LIVES = "print('ready', flush=True); sys.stdin.read()"


def supervisor(script: str, said: list[str], *, workers: int = 2) -> WorkerSupervisor:
    """One whose workers run a script; its lines are gathered."""
    settings = Settings(port=0, workers=workers, stop_within_s=1)
    command = [sys.executable, "-c", f"import os, sys, time; {script}"]
    return WorkerSupervisor(settings, command, print_line=said.append, restart_delays_s=(0.01,))


@asynccontextmanager
async def running(workers: WorkerSupervisor, said: list[str]) -> AsyncGenerator[None]:
    """Runs one until it answers; a signal ends it."""
    task = asyncio.create_task(workers.run(ready=said.append))
    await until(lambda: any(line.startswith("http") for line in said))
    yield
    os.kill(os.getpid(), signal.SIGTERM)
    await task


async def until(is_so: Callable[[], bool]) -> None:
    """Return when it is so."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while not is_so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)


def ready_lines(said: list[str], number: int) -> int:
    """How many workers with this number have been ready."""
    return sum(line.startswith(f"worker {number} is ready after") for line in said)


async def test_worker_that_dies_is_replaced_and_the_others_live_on(tmp_path: Path) -> None:
    said: list[str] = []
    pids = tmp_path / "pids"
    script = f"open({str(pids)!r}, 'a').write(sys.argv[2] + ' ' + str(os.getpid()) + chr(10)); {LIVES}"
    async with running(supervisor(script, said), said):
        known = dict(line.split() for line in pids.read_text().splitlines())

        os.kill(int(known["2"]), signal.SIGKILL)
        await until(lambda: ready_lines(said, 2) == 2)

    assert ready_lines(said, 1) == 1


async def test_supervisor_gives_up_on_workers_that_end_at_once() -> None:
    said: list[str] = []

    with pytest.raises(WorkersFailed, match=r"worker 1 ended 5 times within 10 s .* exit code 3"):
        await supervisor("print('ready', flush=True); sys.exit(3)", said, workers=1).run(ready=said.append)

    assert ready_lines(said, 1) == 5


async def test_supervisor_ends_as_the_first_worker_does_that_cannot_start() -> None:
    said: list[str] = []

    with pytest.raises(WorkersFailed) as failed:
        await supervisor("sys.exit(75)", said).run(ready=said.append)

    assert (str(failed.value), failed.value.code) == ("", 75)  # it has said why by itself
    assert said == []


async def test_store_that_is_away_is_no_reason_to_give_up(tmp_path: Path) -> None:
    said: list[str] = []
    tries = tmp_path / "tries"
    fails = f"open({str(tries)!r}, 'a').write('.'), os.path.getsize({str(tries)!r}) > 8 or sys.exit(75)"
    script = f"sys.argv[2] == '1' or ({fails}); {LIVES}"

    async with running(supervisor(script, said), said):
        pass

    assert ready_lines(said, 2) == 1
    assert tries.read_text() == "." * 9
