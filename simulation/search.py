"""Many seeds on all cores: each runs in a process of its own, forked from one that has run a world before.

So each begins with the same memory, nothing of one run reaches another, and imports and compiled statements are there.
"""

import contextlib
import gc
import logging
import os
import pickle
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from simulation import story, warm
from simulation.choices import Choices
from simulation.configuration import FIFO, Configuration
from simulation.defects import keep_defects
from simulation.loop import run
from simulation.machine import replace_machine
from simulation.media_folder import watch_files
from simulation.postgresql import DatabaseServer, replace_driver, running_database_server
from simulation.process import end_hosts, watch_connections
from simulation.runs import Result, Run
from simulation.world import run_world

FRAMES: Final = 8
"""Of an exception."""
WITHIN_S: Final = 300
"""Of real time: then a run is ended, and has failed."""
_MEMORY: Final = Path("/dev/shm")


class Search:
    """Runs many runs on some cores. A context manager, which removes their folders.

    Args:
        jobs: how many at once; None: one on each core.
        with_digest: whether results have it; it takes some milliseconds.
        on_postgresql: whether there are servers of PostgreSQL for the runs whose configuration asks for it.
    """

    def __init__(self, jobs: int | None = None, *, with_digest: bool = False, on_postgresql: bool = False) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self._with_digest = with_digest
        self._on_postgresql = on_postgresql
        self._at_end = contextlib.ExitStack()
        self._servers: list[DatabaseServer] = []
        self._nth = 0
        """Of the runs at once, which this process is."""
        self._transports: list[Any] = []
        self._folder = tempfile.TemporaryDirectory(
            prefix="simulation-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None
        )

    def __enter__(self) -> "Search":
        """Replace the machine, and run a world, so that each process begins with what it will need."""
        keep_defects()
        logging.disable()
        replace_machine(self._transports)
        watch_connections()
        end_hosts()
        watch_files()
        warm.prepare()
        tempfile.tempdir = self._folder.name
        if self._on_postgresql:  # one for each run at once: a lock or a transaction of one would reach another
            self._servers = [self._at_end.enter_context(running_database_server()) for _ in range(self.jobs)]
            replace_driver()
        self.run_here(Run(0, Configuration(messages=2, has_faults=False, postgresql=self._on_postgresql)))
        gc.collect()
        gc.freeze()
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the folders."""
        self._at_end.close()
        tempfile.tempdir = None
        self._folder.cleanup()

    def run_here(self, one: Run) -> Result:
        """Run in this process; what it leaves behind may change the next run."""
        began_s = time.perf_counter()
        result = Result(one)
        choices = Choices(one.seed, off=one.off, only=one.only)
        story.begin()
        schedule = one.configuration.schedule
        with contextlib.ExitStack() as stack:
            database = None
            if one.configuration.postgresql:
                if not self._servers:
                    raise RuntimeError("there is no server of PostgreSQL")
                database = stack.enter_context(self._servers[self._nth].database(choices))

            async def main() -> Any:
                return await run_world(choices, self._transports, one.configuration, database)

            outcome, loop, error = run(main, int(schedule) if schedule.isdecimal() else one.seed, schedule == FIFO)
        errors = loop.errors or ([] if error is None else [error])
        if errors:
            result.broken = ["".join(traceback.format_exception(each, limit=-FRAMES)).rstrip() for each in errors]
        else:
            result.broken = [str(problem) for problem in outcome.broken]
            result.summary, result.states = str(outcome), outcome.states
        result.steps = len(loop.trace.steps)
        result.digest = loop.trace.digest() if self._with_digest else ""
        result.kinds = choices.counts
        result.decisions, result.events = choices.made, story.told()
        result.took_s = time.perf_counter() - began_s
        return result

    def run_all(self, runs: Iterable[Run], *, all_events: bool = False) -> Iterator[Result]:
        """Yield the results of runs as they end. The rest is not begun when the caller stops, and what runs is ended."""
        waiting = iter(runs)
        with selectors.DefaultSelector() as pipes, contextlib.ExitStack() as at_end:
            running: dict[int, tuple[Run, int, list[bytes]]] = {}  # by pipe
            free = list(range(self.jobs))
            numbers: dict[int, int] = {}  # which of the runs at once, by pipe
            at_end.callback(_end_all, running)
            while True:
                while len(running) < self.jobs and (one := next(waiting, None)) is not None:
                    self._nth = free.pop()
                    pipe, process = self._fork(one, all_events=all_events)
                    running[pipe], numbers[pipe] = (one, process, []), self._nth
                    pipes.register(pipe, selectors.EVENT_READ)
                if not running:
                    return
                for ready, _ in pipes.select():
                    pipe = ready.fd
                    one, process, chunks = running[pipe]
                    if chunk := os.read(pipe, 1 << 20):
                        chunks.append(chunk)
                        continue
                    pipes.unregister(pipe)
                    os.close(pipe)
                    del running[pipe]
                    free.append(numbers.pop(pipe))
                    _, status = os.waitpid(process, 0)
                    yield _read(one, status, b"".join(chunks))

    def _fork(self, one: Run, *, all_events: bool) -> tuple[int, int]:
        """Return the reading end of the pipe of a run, and its process."""
        reading, writing = os.pipe()
        process = os.fork()
        if process:
            os.close(writing)
            return reading, process
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            gc.disable()  # it is a quarter of the time of a run, which ends before its garbage matters
            signal.alarm(WITHIN_S)
            result = self.run_here(one)
            if not result.broken and not all_events:
                result = replace(result, decisions=[], events=[])
            for decision in result.decisions:
                decision.value, decision.details = str(decision.value), [*map(str, decision.details)]
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(result, pipe)
            code = 0
        except BaseException:  # noqa: BLE001  the process ends here, whatever happens
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


def _read(one: Run, status: int, text: bytes) -> Result:
    if status == 0:
        return pickle.loads(text)
    ended = f"signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else f"status {status}"
    return Result(one, broken=[f"the process of the run ended with {ended}; it may take {WITHIN_S} s"])


def _end_all(running: dict[int, tuple[Run, int, list[bytes]]]) -> None:
    for pipe, (_, process, _) in running.items():
        os.close(pipe)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
