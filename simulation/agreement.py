"""At the end both sides agree: a subscription is stored as its partner left it, a message as its callbacks say.

A change without a response may have been made, or be made later: a delayed request ends after its client has gone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from simulation.client import Response
from simulation.observed import Observed
from simulation.received import by_path_and_subject, read_callbacks

ALL_STATES: Final = {"ENQUEUED", "SENT", "DELIVERED", "READ", "FAILED"}
Terms = tuple[frozenset[str], bool] | None
"""What is stored of a subscription: its modes, and whether it is active; None where there is none."""


@dataclass(frozen=True)
class Change:
    """What a request changes of a subscription; None: it stays as it is. `deletes`: nothing is left."""

    modes: frozenset[str] | None = None
    active: bool | None = None
    creates: bool = False
    deletes: bool = False

    def apply(self, terms: Terms) -> Terms:
        """Return what is stored after the request."""
        if self.deletes or (terms is None and not self.creates):
            return None
        modes, active = terms or (frozenset(), True)
        return (modes if self.modes is None else self.modes, active if self.active is None else self.active)


@dataclass
class ExpectedTerms:
    """What may be stored of one subscription: of its changes some are certain, others may come at any time."""

    certain: Terms = None
    uncertain: list[Change] = field(default_factory=list)

    def note(self, change: Change, response: Response | None) -> None:
        """Note a request and its response."""
        if response is None or response.status >= 500:
            self.uncertain.append(change)
        elif response.status < 300:
            self.certain = change.apply(self.certain)

    def possible(self) -> set[Terms]:
        """Return everything that may be stored."""
        found: set[Terms] = {self.certain}
        while more := {change.apply(terms) for terms in found for change in self.uncertain} - found:
            found |= more
        return found


def check_subscriptions(
    expected: Mapping[str, ExpectedTerms], stored: Iterable[tuple[str, str, bool]]
) -> Iterable[str]:
    """Yield the subscriptions that are not stored as their partner has left them.

    Args:
        expected: by the path of the URL.
        stored: tag, which is the path, modes and whether it is active.
    """
    found = {tag: (frozenset(modes.split(",")), bool(active)) for tag, modes, active in stored}
    for path, terms in expected.items():
        if found.get(path) not in terms.possible():
            yield f"the subscription {path} is stored as {_write(found.get(path))}, and was left as {_write(terms.certain)}"


def check_states(observed: Observed, states: Mapping[str, str]) -> Iterable[str]:
    """Yield the messages whose state is another one than the last that a subscription to all of them was told."""
    told = by_path_and_subject(read_callbacks(observed.exchanges))
    for path, terms in observed.subscriptions.items():
        if not terms.is_steady or not {*terms.modes} >= ALL_STATES:
            continue
        for message_id, events in told[path].items():
            last = events[-1].event
            if message_id in states and last != states[message_id]:
                yield f"{message_id} is stored as {states[message_id]}, and {path} was told {last} last"


def _write(terms: Terms) -> str:
    return "deleted" if terms is None else f"{','.join(sorted(terms[0]))} {'active' if terms[1] else 'paused'}"
