"""What came of a load, counted from outside: at the phones, at the receiver, and in the store at the end."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from crashes.load import Load
from crashes.town import Town

IN_FLIGHT: Final = 64
"""The most POSTs that one process has under way. Source: decision 0006."""

NEWS: Final = ("enqueued", "sent", "delivered", "read")
NEWS_AFTER_DOUBT: Final = ("failed", *NEWS[1:])
"""Of a message whose status came only when its doubt had ended: the one edge out of `failed`."""
INVALID_ANSWER: Final = 4002


@dataclass(frozen=True, slots=True)
class Came:
    """One callback as the receiver took it.

    Attributes:
        key: of the order: the recipient, or what else it is about.
        message_id: ours, of a message's news.
    """

    callback_id: str
    sequence: int
    body: dict[str, Any]
    key: str
    news: str
    message_id: str | None


@dataclass
class Callbacks:
    """The receiver's file, in the order of arrival."""

    came: list[Came]
    firsts: list[Came] = field(default_factory=list[Came])
    faults: list[str] = field(default_factory=list[str])
    out_of_order: int = 0
    backwards: int = 0

    def __post_init__(self) -> None:
        self._look_at_repeats()
        self._look_at_order()
        self._look_at_states()

    @property
    def duplicated(self) -> int:
        """How many came again."""
        return len(self.came) - len(self.firsts)

    def stories(self) -> dict[str, tuple[str, ...]]:
        """The news of each message in the order of arrival, repeats left out."""
        told: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        for one in self.firsts:
            if one.message_id is not None:
                told[one.message_id] += (one.news,)
        return told

    def about_no_message(self) -> int:
        """How many came that tell nothing of a message of ours: what phones wrote, and reviews."""
        return sum(one.message_id is None for one in self.firsts)

    def _look_at_repeats(self) -> None:
        known: dict[str, Came] = {}
        for one in self.came:
            first = known.setdefault(one.callback_id, one)
            if first is one:
                self.firsts.append(one)
            elif (first.sequence, first.body) != (one.sequence, one.body):
                self.faults.append(f"callback {one.callback_id} came again with other words")

    def _look_at_order(self) -> None:
        """First arrivals count up from 1 without a gap, and a repeat is never older than the newest."""
        last: defaultdict[str, int] = defaultdict(int)
        known: set[str] = set()
        for one in self.came:
            wanted = last[one.key] + (one.callback_id not in known)
            known.add(one.callback_id)
            if one.sequence != wanted:
                self.out_of_order += 1
                self.faults.append(f"{one.key}: {one.news} is {one.sequence} and not {wanted}")
            last[one.key] = max(last[one.key], one.sequence)

    def _look_at_states(self) -> None:
        reached: dict[str, int] = {}
        for one in self.firsts:
            if one.message_id is None or one.news not in NEWS:
                continue
            place = NEWS.index(one.news)
            if place <= reached.get(one.message_id, -1):
                self.backwards += 1
                self.faults.append(f"message {one.message_id} went back to {one.news}")
            reached[one.message_id] = place


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The whole account of one load.

    Attributes:
        faults: every broken promise in words; none when all were kept.
    """

    counts: Mapping[str, object]
    faults: Sequence[str]

    def table(self) -> str:
        """The counts, one a line."""
        width = max(map(len, self.counts))
        return "\n".join(f"{name:<{width}}  {count}" for name, count in self.counts.items()) + "\n"


async def reckon(
    town: Town,
    load: Load,
    in_flight: Sequence[frozenset[str]] | None,
    *,
    written_in: int,
    beside: frozenset[str] = frozenset(),
    uncertain_at_most: int | None = None,
    may_log: bool = False,
) -> Reckoning:
    """Count everything, once all has settled.

    Args:
        town: quiet, its service running.
        load: done.
        in_flight: of each kill the messages that were being sent; None where no kill ended a sender.
        written_in: how many messages phones have written.
        beside: phones that somebody else sends to, past the service.
        uncertain_at_most: the bound on messages that were ever uncertain.
        may_log: whether the service may speak of errors, since the fault was one that it has to log.
    """
    at_phones = Counter(one["callback_data"] for one in await town.deliveries() if one["to"] not in beside)
    callbacks = Callbacks(read_callbacks(town.received))
    states = town.stored.states()
    ever_uncertain = town.stored.ever_uncertain()
    at_end = {one for one, (state, _) in states.items() if state == "uncertain"}
    in_doubt = at_end | {one for one, told in states.items() if told == ("failed", INVALID_ANSWER)}
    acknowledged = set(load.acknowledged)
    lost = acknowledged - at_phones.keys() - in_doubt
    doubled = {one for one, count in at_phones.items() if count > 1}
    told = callbacks.stories()
    wanted = {one: NEWS_AFTER_DOUBT if one in ever_uncertain and "failed" in told[one] else NEWS for one in at_phones}
    wanted |= {one: ("failed",) for one in states.keys() - at_phones if states[one][0] == "failed"}
    missing = {(one, news) for one in wanted for news in wanted[one] if news not in told[one]}
    others = written_in + 1  # and the review of the template
    unexplained: set[str] = set()
    if in_flight is not None:
        unexplained = ever_uncertain - frozenset[str]().union(*in_flight)
    faults = [
        *_each("was acknowledged, is at no phone and not in doubt", lost),
        *_each("is at its phone twice", doubled),
        *_each("is at a phone and was never taken", at_phones.keys() - states.keys()),
        *_each("is at its phone and still in doubt", in_doubt & at_phones.keys()),
        *_each("became uncertain without having been in hand at a kill", unexplained),
        *(
            f"{one} was told as {told[one]} and not as {wanted.get(one, ())}"
            for one in wanted.keys() | told.keys()
            if told[one] != wanted.get(one, ())
        ),
        *callbacks.faults,
        *(f"{len(one)} were in hand at one kill" for one in in_flight or () if len(one) > IN_FLIGHT * town.processes),
        *([] if may_log else _log_faults(town)),
    ]
    if uncertain_at_most is not None and len(ever_uncertain) > uncertain_at_most:
        faults.append(f"{len(ever_uncertain)} became uncertain and not {uncertain_at_most} at most")
    if load.repeated_ids:
        faults.append(f"{load.repeated_ids} ids were answered twice")
    if callbacks.about_no_message() != others:
        faults.append(f"{callbacks.about_no_message()} other callbacks came and not {others}")
    if (sound := town.stored.is_sound()) != "ok":
        faults.append(f"the store's file is damaged: {sound}")
    counts: dict[str, object] = {
        "submitted": len(acknowledged) + load.broken + load.refused,
        "acknowledged": len(acknowledged),
        "connection broken, submitted again": load.broken,
        "answered with 500, submitted again": load.refused,
        "nobody listened, tried again": load.not_reached,
        "on disk": len(states),
        "at phones": len(at_phones),
        "written by phones": written_in,
        "lost": len(lost),
        "doubled": len(doubled),
        "in hand at each kill": _listed(len(one) for one in in_flight or ()),
        "uncertain ever": len(ever_uncertain),
        "uncertain at the end": len(at_end),
        "of these at a phone": len(at_end & at_phones.keys()),
        "failed in the end, with code 4002": len(in_doubt - at_end),
        "told failed, and arrived after all": list(wanted.values()).count(NEWS_AFTER_DOUBT),
        "callbacks expected": sum(map(len, wanted.values())) + others,
        "callbacks arrived": len(callbacks.firsts),
        "callbacks missing": len(missing),
        "callbacks duplicated": callbacks.duplicated,
        "out of order": callbacks.out_of_order,
        "states gone backwards": callbacks.backwards,
        "integrity check": sound,
    }
    return Reckoning(counts, faults)


def received_ms(path: Path) -> list[int]:
    """When the receiver took each callback."""
    return [json.loads(line)["at_ms"] for line in path.read_text(encoding="utf-8").splitlines()]


def read_callbacks(path: Path) -> list[Came]:
    """Everything that the receiver took, but the ping of its address."""
    kept = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [_came(one) for one in kept if one["callback_id"] is not None]


def _came(kept: dict[str, Any]) -> Came:
    body = kept["body"]
    payload = body["payload"]
    message_id: str | None = None
    key: str
    match body["type"]:
        case "message-event":
            key, message_id = payload["destination"], payload.get("gsId") or payload["id"]
        case "message":
            key = payload["source"]
        case _:
            key = f"{body['type']} {payload['id']}"
    return Came(kept["callback_id"], kept["sequence"], body, key, payload["type"], message_id)


def _each(what: str, which: Iterable[object]) -> list[str]:
    return [f"{one} {what}" for one in which]


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _log_faults(town: Town) -> list[str]:
    """Defects that the processes logged: a log that speaks of one while all looks well hides one."""
    return [
        f"{child.name} logged: {line}"
        for child in town.children
        for line in child.lines()
        if "[error" in line or "Traceback" in line or line.startswith(("ERROR", "CRITICAL"))
    ]
