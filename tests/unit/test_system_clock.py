"""The clock of a running service, when somebody moves the machine's."""

import dataclasses

from waypost.base.clock import SystemClock

HOUR_NS = 3_600_000_000_000
HOUR_MS = 3_600_000
BEGUN_NS = 1_760_000_000_000_000_000
BEGUN_MS = BEGUN_NS // 1_000_000


@dataclasses.dataclass
class Machine:
    """Both clocks of a machine."""

    wall_ns: int = BEGUN_NS
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

    assert clock.now_ms() == BEGUN_MS + 1234


def test_clock_follows_a_jump_forward_at_once() -> None:
    machine = Machine()
    clock = machine.clock()

    machine.wall_ns += 3 * HOUR_NS

    assert clock.now_ms() == BEGUN_MS + 3 * HOUR_MS


def test_clock_goes_on_a_tenth_slower_after_a_jump_back() -> None:
    machine = Machine()
    clock = machine.clock()
    clock.now_ms()

    machine.wall_ns -= 2 * HOUR_NS
    readings: list[int] = []
    for _ in range(1000):
        machine.pass_ms(10)
        readings.append(clock.now_ms())

    assert readings == sorted(readings)
    assert readings[-1] == BEGUN_MS + 9_000


def test_clock_meets_the_machines_again_after_a_jump_back() -> None:
    machine = Machine()
    clock = machine.clock()

    machine.wall_ns -= 60_000_000_000
    machine.pass_ms(599_000)
    before = clock.now_ms() - machine.wall_ns // 1_000_000
    machine.pass_ms(20_000)

    assert before > 0
    assert clock.now_ms() == machine.wall_ns // 1_000_000
