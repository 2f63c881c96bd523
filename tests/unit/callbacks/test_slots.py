"""Who gets one of the places in flight, by how each address has been lately."""

from waypost.base.clock import ManualClock
from waypost.callbacks.circuits import Circuit, CircuitState
from waypost.callbacks.receivers import CallbackReceiver
from waypost.callbacks.slots import CROWDED_SHARE, CROWDED_SLOTS, REPLAY_SHARE, SLOW_POOL, SLOW_SHARE, ConcurrencySlots
from waypost.queue.job import Job
from waypost.store.callbacks.subscriptions import live_group, replay_group
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import QueueName


class Lobby:
    """Asks for places, and remembers who was let ask again."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: list[str] = []
        self.places = ConcurrencySlots(self.clock, self.told.append)
        self._position = 0

    def knows(self, subscription: int, *, was_slow: bool = False, circuit: Circuit | None = None) -> None:
        address = CallbackReceiver(circuit or Circuit(), is_known=True, was_slow=was_slow)
        self.places.receivers[subscription] = address

    def ask(self, group: str, *, is_replay: bool = False) -> Job | None:
        """A new entry that has got a place; None where its group is held."""
        self._position += 1
        subject = JobSubject(SubjectKind.CALLBACK, "id")
        entry = Job(self._position, QueueName.CALLBACKS, group, "key", subject, 0, 0, 0, False, is_replay=is_replay)
        hold = self.places.acquire(entry, self.clock.now_ms(), 0)
        assert hold is None or hold.until_ms > self.clock.now_ms()
        return entry if hold is None else None

    def fill(self, subscription: int) -> list[Job]:
        """All places that an address gets now; at most as many as the queue has for one group."""
        got: list[Job] = []
        while len(got) < 64 and (entry := self.ask(live_group(subscription))) is not None:
            got.append(entry)
        return got


def test_quick_address_gets_all_its_places_while_many_are_free() -> None:
    lobby = Lobby()
    lobby.knows(1)

    assert len(lobby.fill(1)) == 64


def test_address_nobody_has_looked_at_gets_one_place() -> None:
    lobby = Lobby()

    assert len(lobby.fill(1)) == 1


def test_slow_address_gets_few_places() -> None:
    lobby = Lobby()
    lobby.knows(1, was_slow=True)

    assert len(lobby.fill(1)) == SLOW_SHARE


def test_address_that_keeps_callbacks_waiting_is_slow_before_it_has_answered() -> None:
    lobby = Lobby()
    lobby.knows(1)
    assert lobby.ask(live_group(1))
    lobby.clock.advance(ms=1_000)

    assert len(lobby.fill(1)) == SLOW_SHARE - 1


def test_all_slow_addresses_together_leave_half_of_the_places_to_the_quick_ones() -> None:
    lobby = Lobby()
    for subscription in range(1, 41):
        lobby.knows(subscription, was_slow=True)
    lobby.knows(99)

    taken = sum(len(lobby.fill(subscription)) for subscription in range(1, 41))

    assert taken == SLOW_POOL
    assert lobby.places.slots_in_use == SLOW_POOL
    assert lobby.ask(live_group(99))


def test_slow_places_go_to_whoever_has_waited_longest() -> None:
    lobby = Lobby()
    for subscription in range(1, 19):
        lobby.knows(subscription, was_slow=True)
    full = [lobby.fill(subscription) for subscription in range(1, 17)]
    assert lobby.ask(live_group(17)) is None
    assert lobby.ask(live_group(18)) is None
    lobby.told.clear()

    lobby.places.release(full[0][0])

    assert live_group(17) in lobby.told
    assert live_group(18) not in lobby.told
    assert lobby.ask(live_group(1)) is None  # whose place it was waits behind the others
    assert lobby.ask(live_group(18)) is None
    assert lobby.ask(live_group(17))


def test_addresses_that_turn_slow_all_at_once_do_not_take_every_place() -> None:
    lobby = Lobby()
    for subscription in range(1, 11):
        lobby.knows(subscription)

    taken = [len(lobby.fill(subscription)) for subscription in range(1, 11)]

    assert sum(taken) <= CROWDED_SLOTS + 8 * CROWDED_SHARE
    assert min(taken) == CROWDED_SHARE


def test_open_circuit_lets_nothing_through_and_then_one() -> None:
    lobby = Lobby()
    lobby.knows(1, circuit=Circuit(CircuitState.OPEN, until_ms=lobby.clock.now_ms() + 1_000))
    assert lobby.fill(1) == []

    lobby.clock.advance(ms=1_000)

    assert len(lobby.fill(1)) == 1
    assert lobby.places.receivers[1].circuit.state is CircuitState.HALF_OPEN


def test_paused_subscription_is_looked_at_when_something_is_heard_of_it() -> None:
    lobby = Lobby()
    lobby.knows(1, circuit=Circuit(CircuitState.PAUSED))
    assert lobby.fill(1) == []

    lobby.places.receivers[1].may_have_changed = True
    [look] = lobby.fill(1)
    lobby.places.release(look)

    assert lobby.fill(1) == []
    lobby.places.receivers[1].may_have_changed = True
    assert lobby.fill(1) == []  # so soon after the last look
    lobby.clock.advance(ms=2_000)
    assert len(lobby.fill(1)) == 1


def test_replays_of_an_address_get_few_places_beside_its_live_callbacks() -> None:
    lobby = Lobby()
    lobby.knows(1)

    replays = [lobby.ask(replay_group(1), is_replay=True) for _ in range(REPLAY_SHARE + 5)]

    assert sum(entry is not None for entry in replays) == REPLAY_SHARE
    assert lobby.ask(live_group(1))


def test_quick_address_gets_all_its_places_also_where_slow_ones_have_taken_theirs() -> None:
    lobby = Lobby()
    for subscription in range(1, 41):
        lobby.knows(subscription, was_slow=True)
        lobby.fill(subscription)
    lobby.knows(99)

    assert len(lobby.fill(99)) == 64
