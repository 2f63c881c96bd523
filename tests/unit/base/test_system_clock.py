"""The clock of a running service when the machine's clock is changed."""

import dataclasses
import subprocess
import sys
import time
from typing import Final

import pytest

from waypost.base.clock import SystemClock

HOUR_NS = 3_600_000_000_000
HOUR_MS = 3_600_000
START_NS = 1_760_000_000_000_000_000
START_MS = START_NS // 1_000_000


@dataclasses.dataclass
class Machine:
    """Both clocks of a machine."""

    wall_ns: int = START_NS
    steady_ns: int = 12345

    def pass_ms(self, ms: int) -> None:
        self.wall_ns += ms * 1_000_000
        self.steady_ns += ms * 1_000_000

    def clock(self) -> SystemClock:
        return SystemClock(machine_ns=lambda: self.wall_ns, steady_ns=lambda: self.steady_ns)


def test_clock_reads_as_the_machine_does() -> None:
    machine = Machine()
    clock = machine.clock()

    machine.pass_ms(1234)

    assert clock.now_ms() == START_MS + 1234


def test_clock_follows_a_jump_forward_at_once() -> None:
    machine = Machine()
    clock = machine.clock()

    machine.wall_ns += 3 * HOUR_NS

    assert clock.now_ms() == START_MS + 3 * HOUR_MS


def test_clock_runs_a_tenth_slower_after_a_jump_back() -> None:
    machine = Machine()
    clock = machine.clock()
    clock.now_ms()

    machine.wall_ns -= 2 * HOUR_NS
    readings: list[int] = []
    for _ in range(1000):
        machine.pass_ms(10)
        readings.append(clock.now_ms())

    assert readings == sorted(readings)
    assert readings[-1] == START_MS + 9_000


def test_clock_agrees_with_the_machines_again_after_a_jump_back() -> None:
    machine = Machine()
    clock = machine.clock()

    machine.wall_ns -= 60_000_000_000
    machine.pass_ms(599_000)
    before = clock.now_ms() - machine.wall_ns // 1_000_000
    machine.pass_ms(20_000)

    assert before > 0
    assert clock.now_ms() == machine.wall_ns // 1_000_000


ASLEEP_S: Final = 3600
HAS_SLEPT: Final = ("unshare", "--time", "--boottime", str(ASLEEP_S))
"""Runs a program as on a machine that has slept for an hour since it was started."""
READ_BOTH: Final = """
import time
from waypost.base.clock import SystemClock, VirtualClock
print(*(clock.real_ms() - time.monotonic_ns() // 1_000_000 for clock in (SystemClock(), VirtualClock())))
"""


def can_create_time_namespace() -> bool:
    """True if this system has time namespaces, and lets us create one."""
    try:
        return not subprocess.run([*HAS_SLEPT, "true"], capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def test_steady_clock_counts_what_the_machine_has_slept() -> None:
    """A process that wakes up must find its leases expired, as the processes that claimed them do."""
    if not can_create_time_namespace():
        pytest.skip("needs a time namespace")
    read = subprocess.run([*HAS_SLEPT, sys.executable, "-c", READ_BOTH], capture_output=True, check=True, text=True)

    ahead_ms = [int(offset) for offset in read.stdout.split()]

    here_ms = SystemClock().real_ms() - time.monotonic_ns() // 1_000_000  # the machine itself may have slept
    assert [round((offset - here_ms) / 1000) for offset in ahead_ms] == [ASLEEP_S, ASLEEP_S]
