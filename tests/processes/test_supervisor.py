"""The supervisor, with workers that only start and end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.workers import WorkersFailed, WorkerSupervisor
from waypost.config import Settings

RUNS_UNTIL_EOF = "print('ready', flush=True); sys.stdin.read()"


def create_supervisor(script: str, lines: list[str], *, workers: int = 2) -> WorkerSupervisor:
    """Return a supervisor whose workers run a script; its lines are collected."""
    settings = Settings(port=0, workers=workers, stop_within_s=1)
    command = [sys.executable, "-c", f"import os, sys, time; {script}"]
    return WorkerSupervisor(settings, command, print_line=lines.append, restart_delays_s=(0.01,))


@asynccontextmanager
async def run_supervisor(workers: WorkerSupervisor, lines: list[str]) -> AsyncGenerator[None]:
    """Run a supervisor until it is ready; end it with a signal."""
    task = asyncio.create_task(workers.run(ready=lines.append))
    await wait_until(lambda: any(line.startswith("http") for line in lines))
    yield
    os.kill(os.getpid(), signal.SIGTERM)
    await task


async def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition is true."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while not condition():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0.01)


def ready_lines(lines: list[str], number: int) -> int:
    """Return how often the worker with this number has been ready."""
    return sum(line.startswith(f"worker {number} is ready after") for line in lines)


async def test_worker_that_dies_is_replaced_and_the_others_keep_running(tmp_path: Path) -> None:
    lines: list[str] = []
    pids = tmp_path / "pids"
    script = f"open({str(pids)!r}, 'a').write(sys.argv[2] + ' ' + str(os.getpid()) + chr(10)); {RUNS_UNTIL_EOF}"
    async with run_supervisor(create_supervisor(script, lines), lines):
        pids_by_number = dict(line.split() for line in pids.read_text().splitlines())

        os.kill(int(pids_by_number["2"]), signal.SIGKILL)
        await wait_until(lambda: ready_lines(lines, 2) == 2)

    assert ready_lines(lines, 1) == 1


async def test_supervisor_fails_if_a_worker_ends_immediately_five_times() -> None:
    lines: list[str] = []

    with pytest.raises(WorkersFailed, match=r"worker 1 ended 5 times within 10 s .* exit code 3"):
        await create_supervisor("print('ready', flush=True); sys.exit(3)", lines, workers=1).run(ready=lines.append)

    assert ready_lines(lines, 1) == 5


async def test_supervisor_ends_with_the_exit_code_of_the_first_worker_that_cannot_start() -> None:
    lines: list[str] = []

    with pytest.raises(WorkersFailed) as failed:
        await create_supervisor("sys.exit(75)", lines).run(ready=lines.append)

    assert (str(failed.value), failed.value.code) == ("", 75)  # the worker prints the reason itself
    assert lines == []


async def test_supervisor_keeps_retrying_while_the_store_is_unavailable(tmp_path: Path) -> None:
    lines: list[str] = []
    attempts = tmp_path / "tries"
    fails = f"open({str(attempts)!r}, 'a').write('.'), os.path.getsize({str(attempts)!r}) > 8 or sys.exit(75)"
    script = f"sys.argv[2] == '1' or ({fails}); {RUNS_UNTIL_EOF}"

    async with run_supervisor(create_supervisor(script, lines), lines):
        pass

    assert ready_lines(lines, 2) == 1
    assert attempts.read_text() == "." * 9
