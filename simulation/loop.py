"""The loop of a run: simloom's, without what it does at each step for uses that we do not have.

simloom keeps each step as a dictionary, each choice as a checked object, asks of each callback whether it is a coroutine,
and collects garbage; that is a sixth of the time of a run. Here a step is a tuple, and a choice a number. Monitors are
not asked. What ran on a crashed host is dropped: nothing of a run is used after its end.
"""

import asyncio
import contextvars
import hashlib
import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from operator import attrgetter
from typing import Any, Final

from greenlet import getcurrent
from simloom._context import current_host
from simloom._loop import SimLoop
from simloom._patches import DEFAULT_WALL_EPOCH, patched_environment
from simloom._world import World as SimulatedMachines

MAX_STEPS_PER_INSTANT: Final = 200_000


class Trace:
    """What a run did, step by step: (virtual s, the choice, of how many, what ran), and simloom's own events."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.metadata: dict[str, Any] = {}

    def emit(self, kind: str, t: float, **fields: Any) -> None:
        """Append an event."""
        self.steps.append((t, kind, *fields.values()))

    def digest(self) -> str:
        """Return the same for the same steps."""
        return hashlib.sha256(repr(self.steps).encode()).hexdigest()


class Draws:
    """Numbers of a seed: which step is next, and how long a packet takes. All are 0 if it is first in, first out."""

    is_replay = False

    def __init__(self, seed: int, *, is_fifo: bool) -> None:
        self.random = (lambda: 0.0) if is_fifo else random.Random(seed).random

    def draw(self, _label: str, bound: int) -> int:
        """Return a number from 0 to below the bound."""
        return int(self.random() * bound)


class CallbackSequence:
    """Callbacks that run one after the other, each at a step that the scheduler chooses."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[contextvars.Context, Callable[..., Any], tuple[Any, ...]]] = deque()

    def add(self, context: contextvars.Context, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Run a callback after those added before."""
        self._waiting.append((context, callback, args))
        if len(self._waiting) == 1:
            self._schedule()

    def _schedule(self) -> None:
        asyncio.get_running_loop().call_soon(self._run, context=self._waiting[0][0])

    def _run(self) -> None:
        _, callback, args = self._waiting.popleft()
        if self._waiting:
            self._schedule()
        callback(*args)


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash is its number: so the order of a set of tasks is the same in each process."""

    number = 0

    def __hash__(self) -> int:
        """Return the number."""
        return self.number


class StepHandle(asyncio.Handle):
    """A handle that asks nobody whether the loop is debugged."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: Any, context: contextvars.Context | None) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._callback, self._args, self._loop = callback, args, loop
        self._cancelled, self._repr = False, None


class TimerStepHandle(StepHandle, asyncio.TimerHandle):
    """The same for a timer."""

    __slots__ = ()

    def __init__(self, when: float, callback: Any, args: Any, loop: Any, context: contextvars.Context | None) -> None:
        StepHandle.__init__(self, callback, args, loop, context)
        self._when, self._scheduled = when, True


class SeededLoop(SimLoop):
    """The loop of one run.

    Attributes:
        trace: what it did.
        machines: simloom's hosts, disks and network.
        errors: of callbacks, timers and threads. Each is a defect, which nobody gets, and ends the run: somebody may
            wait for ever for what it has kept from happening.
        thread_delay_s: how late each call of a thread begins.
    """

    def __init__(self, draws: Draws) -> None:
        self.trace = Trace()
        super().__init__(draws, log=self.trace, gc_interval=0, max_steps_per_instant=MAX_STEPS_PER_INSTANT)  # type: ignore[arg-type]
        self._draw = draws.random
        self._steps = self.trace.steps
        self.machines = SimulatedMachines(self)  # attaches the network
        self.errors: list[BaseException] = []
        self._stuck_since = 0
        self._alarms: list[tuple[int, int, Callable[[], None]]] = []  # at which step, its number, what to call
        self._alarms_made = 0
        self._suspended: dict[Any, list[asyncio.Handle]] = {}  # by host, what is to run when it continues
        self._resumed: dict[Any, asyncio.Event] = {}
        self.thread_delay_s = 0.0
        # Asked several times at each step: without a function of Python
        self.time = partial(attrgetter("_now"), self)
        self.get_debug = bool

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> asyncio.Handle:
        """Run a callback at a step at this time."""
        if self._closed:
            raise RuntimeError("event loop is closed")
        handle = StepHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        """Run a callback at a step; those of a thread, which is a greenlet, run in their order, as asyncio promises."""
        sequence = getattr(getcurrent(), "callbacks", None)
        if sequence is None:
            return self.call_soon(callback, *args, context=context)
        return sequence.add(context or contextvars.copy_context(), callback, args)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a virtual time."""
        if self._closed:
            raise RuntimeError("event loop is closed")
        handle = TimerStepHandle(when, callback, args, self, context)
        self._timer_seq += 1
        heapq.heappush(self._scheduled, (when, self._timer_seq, handle))
        return handle

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        """Run a coroutine."""
        if self._closed:
            raise RuntimeError("event loop is closed")
        number = self._task_creation_seq = self._task_creation_seq + 1
        NumberedTask.number = number  # the constructor asks for the hash
        task = NumberedTask(coro, loop=self, name=name or f"task {number}", context=context)
        task.number = number
        host = current_host.get()
        if host is not None:
            host._register(task)
        self._task_order[task] = number
        return task

    def after_steps(self, count: float, call: Callable[[], None]) -> int:
        """Call a function, between two steps, after so many of them; return the number that cancels it."""
        self._alarms_made += 1
        heapq.heappush(self._alarms, (len(self._steps) + max(1, int(count)), self._alarms_made, call))
        return self._alarms_made

    def cancel_alarm(self, number: int) -> None:
        """Do not call the function of `after_steps`, if it was not called."""
        self._alarms = sorted(alarm for alarm in self._alarms if alarm[1] != number)

    def suspend(self, host: Any) -> None:
        """Run no step of a host until `resume`: no task, callback, timer or greenlet."""
        self._suspended[host] = []
        self._resumed[host] = asyncio.Event()

    def resume(self, host: Any) -> None:
        """Let a host take its steps again, if it is suspended; all that became ready meanwhile is ready at once."""
        if host in self._suspended:
            self._ready += self._suspended.pop(host)
            self._resumed.pop(host).set()

    def is_suspended(self, host: Any) -> bool:
        """Return True if a host takes no steps."""
        return host in self._suspended

    async def wait_until_resumed(self, host: Any) -> None:
        """Return when a host is not suspended."""
        while host in self._resumed:
            await self._resumed[host].wait()

    def _run_once(self) -> None:
        """Take steps until the loop is stopped."""
        ready, scheduled, steps, draw = self._ready, self._scheduled, self._steps, self._draw
        while not self._stopping:
            if not ready:
                while scheduled and scheduled[0][2]._cancelled:
                    heapq.heappop(scheduled)
                if not scheduled:
                    self._report_deadlock()
                self._now = max(self._now, scheduled[0][0])
                self._stuck_since = len(steps)
            while scheduled and scheduled[0][0] <= self._now:
                ready.append(heapq.heappop(scheduled)[2])
            count = len(ready)
            index = int(draw() * count) if count > 1 else 0
            handle = ready.pop(index)
            if handle._cancelled:
                continue
            if self._suspended:
                waiting = self._suspended.get(handle._context.get(current_host))
                if waiting is not None:
                    waiting.append(handle)
                    continue
            callback = handle._callback
            owner = getattr(callback, "__self__", None)
            is_task = type(owner) is NumberedTask
            if self._crashed_hosts and self._is_of_crashed_host(handle, owner if is_task else None):
                continue
            steps.append((self._now, index, count, owner.number if is_task else getattr(callback, "__qualname__", "")))
            if len(steps) - self._stuck_since > MAX_STEPS_PER_INSTANT:
                self._instant_steps = MAX_STEPS_PER_INSTANT
                self._detect_livelock()
            try:
                handle._context.run(callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  asyncio would log it
                self.errors.append(error)
                self.stop()
            while self._alarms and self._alarms[0][0] <= len(steps):
                heapq.heappop(self._alarms)[2]()

    def _is_of_crashed_host(self, handle: Any, task: Any) -> bool:
        """True for a step of a task that a crash has ended, or any other callback from the context of such a host."""
        if task is not None:
            return id(task) in self._crashed_ids
        host = handle._context.get(current_host)
        return host is not None and host.crashed


def run(
    main: Callable[[], Coroutine[Any, Any, Any]], seed: int, is_fifo: bool = False
) -> tuple[Any, SeededLoop, BaseException | None]:
    """Run a coroutine under a seed.

    Args:
        is_fifo: True if steps run in the order in which they become ready, and packets take no time.

    Returns:
        Its result, the loop, which is closed, and its exception. What was still running is dropped.
    """
    loop = SeededLoop(Draws(seed, is_fifo=is_fifo))
    asyncio.set_event_loop(loop)
    measured = time.thread_time
    time.thread_time = loop.time
    result, error = None, None
    try:
        with patched_environment(loop, virtual_time=True, seed_randomness=True, wall_epoch=DEFAULT_WALL_EPOCH):
            try:
                result = loop.run_until_complete(main())
            except Exception as raised:  # noqa: BLE001  it is returned
                error = raised
    finally:
        time.thread_time = measured
        asyncio.set_event_loop(None)
        loop.close()
    return result, loop, error
