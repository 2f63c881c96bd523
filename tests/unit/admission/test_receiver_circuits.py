"""The transitions of a circuit, and how long it stays open."""

import random

import pytest

from waypost.admission.circuits import CIRCUIT_TRANSITIONS, RECEIVER_CIRCUITS, Circuit, CircuitEvent, CircuitState
from waypost.admission.receivers import CallbackReceiver
from waypost.base.backoff import travel_grid_ms

CHANCE = random.Random(1)
OPEN_AFTER_FAILURES = RECEIVER_CIRCUITS.thresholds[None].failures
PROBE_DELAYS_S = RECEIVER_CIRCUITS.probe_delays_s


def record_failure(circuit: Circuit, now_ms: int = 0, *, is_probe: bool = False, retry_after_ms: int = 0) -> None:
    if is_probe:
        circuit.begin_probe(1, now_ms)
    circuit.record_failure(1, now_ms, CHANCE, retry_after_ms=retry_after_ms)


def test_circuit_opens_after_consecutive_failures_and_a_success_resets_the_count() -> None:
    circuit = Circuit(RECEIVER_CIRCUITS)
    for _ in range(OPEN_AFTER_FAILURES - 1):
        record_failure(circuit)
    circuit.record_success(1)
    for _ in range(OPEN_AFTER_FAILURES - 1):
        record_failure(circuit)
    assert circuit.state is CircuitState.CLOSED

    record_failure(circuit)

    assert circuit.state is CircuitState.OPEN


def test_probes_are_seconds_apart_for_minutes_and_then_up_to_a_minute() -> None:
    circuit = Circuit(RECEIVER_CIRCUITS, failures=OPEN_AFTER_FAILURES - 1)
    record_failure(circuit)
    waits = [circuit.until_ms]
    for _ in range(len(PROBE_DELAYS_S) + 1):
        circuit.apply(CircuitEvent.DUE)
        record_failure(circuit, is_probe=True)
        waits.append(circuit.until_ms)

    expected = [*PROBE_DELAYS_S, 60, 60]
    assert all(0.8 * s <= wait / 1000 <= 1.2 * s for wait, s in zip(waits, expected, strict=True))


def test_attempts_started_before_the_circuit_opened_do_not_extend_it() -> None:
    circuit = Circuit(RECEIVER_CIRCUITS, failures=OPEN_AFTER_FAILURES - 1)
    record_failure(circuit)
    until_ms = circuit.until_ms

    for _ in range(60):
        record_failure(circuit)

    assert (circuit.state, circuit.until_ms) == (CircuitState.OPEN, until_ms)


def test_success_of_a_call_begun_before_a_retry_after_does_not_end_the_pause() -> None:
    """Two callbacks are in flight: one gets 429 with Retry-After, and then the other 200."""
    circuit = Circuit(RECEIVER_CIRCUITS)
    record_failure(circuit, 1_000, retry_after_ms=30_000)

    circuit.record_success(1_001)

    assert circuit.state is CircuitState.OPEN
    assert circuit.blocked_until_ms(30_999) == 31_000
    assert circuit.blocked_until_ms(31_000) is None


@pytest.mark.parametrize("state", [CircuitState.CLOSED, CircuitState.OPEN, CircuitState.HALF_OPEN])
def test_success_closes_the_circuit_in_any_state_and_resets_the_failures(state: CircuitState) -> None:
    circuit = Circuit(RECEIVER_CIRCUITS, state, failures=9, probes=4, failing_since_ms=5)

    circuit.record_success(7)

    assert (circuit.state, circuit.failures, circuit.failing_since_ms) == (CircuitState.CLOSED, 0, None)
    assert circuit.succeeded_ms == 7
    for _ in range(OPEN_AFTER_FAILURES):
        record_failure(circuit, 8)
    assert circuit.probes == 1


def test_paused_circuit_changes_only_by_being_resumed() -> None:
    moves = {event for (state, event) in CIRCUIT_TRANSITIONS if state is CircuitState.PAUSED}

    assert moves == {CircuitEvent.RESUMED}


def test_longest_retry_after_of_a_receiver_is_respected() -> None:
    circuit = Circuit(RECEIVER_CIRCUITS)

    record_failure(circuit, 1_000, retry_after_ms=60_000)
    record_failure(circuit, 2_000, retry_after_ms=1_000)

    assert (circuit.state, circuit.until_ms) == (CircuitState.OPEN, 61_000)


def test_circuit_is_restored_from_the_store() -> None:
    failing, waiting, healthy = (Circuit(RECEIVER_CIRCUITS) for _ in range(3))

    failing.restore(10, failing_since_ms=3, retry_after_until_ms=9)
    waiting.restore(10, failing_since_ms=3, retry_after_until_ms=99)
    healthy.restore(10, failing_since_ms=None, retry_after_until_ms=None)

    assert [circuit.state for circuit in (failing, waiting, healthy)] == [
        CircuitState.HALF_OPEN,
        CircuitState.OPEN,
        CircuitState.CLOSED,
    ]
    assert waiting.until_ms == 99


@pytest.mark.parametrize(
    ("failing_min", "grid_min"),
    [(0, None), (0.4, None), (0.5, 0.5), (7.9, 0.5), (8, 1), (15.9, 1), (16, 2), (60, 4), (64, 8), (1440, 128)],
)
def test_grid_of_a_moved_clock_is_an_eighth_of_the_failing_time_at_most(
    failing_min: float, grid_min: float | None
) -> None:
    grid_ms = travel_grid_ms(round(failing_min * 60_000))

    assert grid_ms == (None if grid_min is None else grid_min * 60_000)


def test_moving_clock_retries_less_often_and_the_usual_wait_applies_when_it_stops() -> None:
    now_ms = 100 * 60_000 + 1
    receiver = CallbackReceiver(
        circuit=Circuit(RECEIVER_CIRCUITS, CircuitState.HALF_OPEN, probes=len(PROBE_DELAYS_S), failing_since_ms=1),
        is_known=True,
    )
    record_failure(receiver.circuit, now_ms, is_probe=True)

    usual = receiver.not_before(now_ms)
    travelling = receiver.not_before(now_ms, is_travelling=True)

    assert usual is not None
    assert travelling is not None
    assert 48_000 <= usual.until_ms - now_ms <= 72_000
    assert travelling.until_ms == 104 * 60_000  # the grid is of eight minutes
