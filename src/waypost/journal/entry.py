"""An entry as a stage holds it."""

from dataclasses import dataclass

from waypost.store.journal import Lane


@dataclass(slots=True, eq=False)
class Entry:
    """One hand-off, claimed for as long as this process holds its shard's lease.

    Attributes:
        ref: what it is about: a word for the kind where the lane has several, and an id.
        attempt: how many tries have been made before this one.
        was_in_hand: it was being sent when its worker died; it may have arrived.
        in_hand: it is being sent right now.
        held_since_ms: when this process first saw it fail; not kept in the store.
    """

    position: int
    lane: Lane
    group: str
    order_key: str
    ref: str
    due_ms: int
    attempt: int
    defects: int
    was_in_hand: bool
    in_hand: bool = False
    held_since_ms: int | None = None
