"""The table of a circuit's steps, and how long it stays open."""

import random

import pytest

from waypost.callbacks.circuits import FAILING, PROBES_S, STEPS, Came, Circuit, State, travel_grid_ms
from waypost.callbacks.receivers import Address

CHANCE = random.Random(1)


def failed(circuit: Circuit, now_ms: int = 0, *, is_probe: bool = False, asked_ms: int = 0) -> None:
    circuit.fails(now_ms, CHANCE, is_probe=is_probe, asked_ms=asked_ms)


def test_circuit_opens_after_failures_in_a_row_and_a_success_between_starts_the_row_anew() -> None:
    circuit = Circuit()
    for _ in range(FAILING - 1):
        failed(circuit)
    circuit.takes(1)
    for _ in range(FAILING - 1):
        failed(circuit)
    assert circuit.state is State.CLOSED

    failed(circuit)

    assert circuit.state is State.OPEN


def test_each_probe_in_vain_about_doubles_the_wait_up_to_a_minute() -> None:
    circuit = Circuit(failures=FAILING - 1)
    failed(circuit)
    waits = [circuit.until_ms]
    for _ in range(8):
        circuit.step(Came.DUE)
        failed(circuit, is_probe=True)
        waits.append(circuit.until_ms)

    expected = [*PROBES_S, 60, 60]
    assert all(0.8 * s <= wait / 1000 <= 1.2 * s for wait, s in zip(waits, expected, strict=True))


def test_what_was_begun_before_the_circuit_opened_does_not_open_it_further() -> None:
    circuit = Circuit(failures=FAILING - 1)
    failed(circuit)
    until_ms = circuit.until_ms

    for _ in range(60):
        failed(circuit)

    assert (circuit.state, circuit.until_ms) == (State.OPEN, until_ms)


@pytest.mark.parametrize("state", [State.CLOSED, State.OPEN, State.HALF_OPEN])
def test_success_closes_whatever_the_state_and_forgets_the_failures(state: State) -> None:
    circuit = Circuit(state, failures=9, probes=4, failing_since_ms=5)

    circuit.takes(7)

    assert circuit == Circuit(taken_ms=7)


def test_paused_circuit_moves_only_by_being_resumed() -> None:
    moves = {came for (state, came) in STEPS if state is State.PAUSED}

    assert moves == {Came.RESUMED}


def test_receiver_that_asks_is_left_alone_for_as_long_and_for_the_longest_it_asked() -> None:
    circuit = Circuit()

    failed(circuit, 1_000, asked_ms=60_000)
    failed(circuit, 2_000, asked_ms=1_000)

    assert (circuit.state, circuit.until_ms) == (State.OPEN, 61_000)


def test_circuit_goes_on_from_what_the_store_has() -> None:
    failing, asked, neither = Circuit(), Circuit(), Circuit()

    failing.begin(10, failing_since_ms=3, asked_until_ms=9)
    asked.begin(10, failing_since_ms=3, asked_until_ms=99)
    neither.begin(10, failing_since_ms=None, asked_until_ms=None)

    assert [one.state for one in (failing, asked, neither)] == [State.HALF_OPEN, State.OPEN, State.CLOSED]
    assert asked.until_ms == 99


@pytest.mark.parametrize(
    ("failing_min", "grid_min"), [(0, None), (7.9, None), (8, 1), (15.9, 1), (16, 2), (60, 4), (64, 8), (1440, 128)]
)
def test_grid_of_a_moved_clock_is_an_eighth_of_the_failing_time_at_most(
    failing_min: float, grid_min: int | None
) -> None:
    grid_ms = travel_grid_ms(round(failing_min * 60_000))

    assert grid_ms == (None if grid_min is None else grid_min * 60_000)


def test_a_moved_clock_tries_less_often_and_the_usual_wait_is_kept_for_its_arrival() -> None:
    now_ms = 100 * 60_000 + 1
    address = Address(Circuit(State.HALF_OPEN, probes=9, failing_since_ms=1), is_known=True)
    failed(address.circuit, now_ms, is_probe=True)

    usual_ms = address.held_until_ms(now_ms)
    travelling_ms = address.held_until_ms(now_ms, is_travelling=True)

    assert usual_ms is not None
    assert 48_000 <= usual_ms - now_ms <= 72_000
    assert travelling_ms == 104 * 60_000  # the grid is of eight minutes
