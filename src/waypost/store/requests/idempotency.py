"""Answers kept under idempotency keys, so that a request that comes again is not carried out again.

A row is added by the transaction that carries the request out, so neither can be there without the
other. Where that transaction is not the whole of the work, a row without an answer is added first:
it says who works on it, and until when it counts (decision 0044).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, bindparam, delete, literal_column, select, tuple_, update

from waypost.domain.message import Message
from waypost.store.bulk_statements import WAYS
from waypost.store.messages.messages import record_messages
from waypost.store.sql import insert_or
from waypost.store.tables import idempotency_keys as keys

Result = TypeVar("Result")

LIFE_MS: Final = 24 * 60 * 60 * 1000
"""How long an answer is kept."""
LEASE_MS: Final = 120_000
"""How long a request may be worked on before its key may be used again: four times what the slowest takes."""


class LostKey(Exception):
    """The work took so long that its key has been given to another request."""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request and its key.

    Attributes:
        route: method and path, and the app's id where the path has one.
        body_hash: SHA-256 of what it says.
        at_ms: now; a store with a clock of its own goes by that one.
        app_id: of whose request; None: the partner's own.
        holder: who has marked the key as being worked on; None: nobody did.
    """

    partner_id: int
    route: str
    key: str
    body_hash: bytes
    at_ms: int
    app_id: str | None = None
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a key holds already.

    Attributes:
        answer: sealed; None while the request is being worked on.
    """

    body_hash: bytes
    app_id: str | None
    answer: bytes | None


def earlier_request(connection: Connection, asked: KeyedRequest) -> Earlier | None:
    """What a key holds that has not run out; None: nothing."""
    row = connection.execute(_LOOK, _at(asked) | {"now_ms": asked.at_ms}).one_or_none()
    return None if row is None else Earlier(row.body_hash, row.app_id, row.answer)


def mark_running(connection: Connection, asked: KeyedRequest) -> Earlier | None:
    """Mark a key as being worked on by the request's holder, for `LEASE_MS` at most.

    Returns:
        What the key holds already, and then nothing is marked; None: it is marked.
    """
    now_ms = _now_ms(connection, asked.at_ms)
    return _add(connection, [(asked, None)], now_ms, LEASE_MS)[0]


def was_begun(connection: Connection, asked: KeyedRequest) -> bool:
    """Whether the same request was begun before, and nobody knows what came of it. To be asked before it is marked."""
    return asked.body_hash in connection.execute(_LEFT, _at(asked)).scalars().all()


def unmark_running(connection: Connection, asked: KeyedRequest) -> None:
    """The request was not carried out: its key may be used again at once."""
    connection.execute(_UNMARK, _at(asked) | {"its_holder": asked.holder})


def leave_running(connection: Connection, asked: KeyedRequest) -> None:
    """Nobody knows whether the request was carried out: its key may be used again at once, and that is remembered."""
    now_ms = _now_ms(connection, asked.at_ms)
    connection.execute(_LEAVE, _at(asked) | {"its_holder": asked.holder, "until_ms": now_ms})


def write_keyed(
    connection: Connection, asked: KeyedRequest, work: Callable[[Connection], Result], answer: Callable[[Result], bytes]
) -> Earlier | None:
    """Do a write and keep its answer, in one transaction, unless the key holds something already.

    Args:
        connection: within a transaction.
        asked: the request.
        work: the write.
        answer: the sealed answer for what the write gave; what it raises undoes everything.

    Returns:
        What the key holds already, and then nothing is done; None: it is done.

    Raises:
        LostKey: the mark of the request's holder has run out, and another has the key.
    """
    now_ms = _now_ms(connection, asked.at_ms)
    if asked.holder is None:
        found = _add(connection, [(asked, None)], now_ms, LIFE_MS)[0]
        if found is not None:
            return found
    sealed = answer(work(connection))
    given = _at(asked) | {"sealed": sealed, "until_ms": now_ms + LIFE_MS}
    statement = _ANSWERED
    if asked.holder is not None:
        given["its_holder"] = asked.holder
        statement = _ANSWERED.where(_IS_MARKED)
    if connection.execute(statement, given).rowcount != 1:
        raise LostKey(asked.key)
    return None


def record_keyed_messages(
    connection: Connection, accepted: Sequence[tuple[KeyedRequest, Message, bytes]]
) -> list[Earlier | None]:
    """Write messages whose keys hold nothing, with their entries and answers, in one transaction.

    Args:
        connection: within a transaction.
        accepted: each with its request and its sealed answer; everything that waits at this moment.

    Returns:
        Of each what its key holds already, and then it is not written; None: it is written.
    """
    now_ms = _now_ms(connection, max(asked.at_ms for asked, _, _ in accepted))
    kept = [(asked, answer) for asked, _, answer in accepted]
    found = _add(connection, kept, now_ms, LIFE_MS)
    new = [message for (_, message, _), held in zip(accepted, found, strict=True) if held is None]
    if new:
        record_messages(connection, new)
    return found


def delete_expired(connection: Connection, now_ms: int, at_most: int) -> int:
    """Delete keys that have run out, the oldest first; give how many.

    Of a request that has no answer it is remembered for a day that it was begun.
    """
    now_ms = _now_ms(connection, now_ms)
    is_over = (keys.c.expires_on_ms <= now_ms) & (
        keys.c.answer.is_not(None) | (keys.c.expires_on_ms <= now_ms - LIFE_MS)
    )
    expired = (
        select(keys.c.partner_id, keys.c.route, keys.c.key).where(is_over).order_by(keys.c.expires_on_ms).limit(at_most)
    )
    place = tuple_(keys.c.partner_id, keys.c.route, keys.c.key)
    # Asked twice: it may have been taken meanwhile.
    return connection.execute(delete(keys).where(place.in_(expired), is_over)).rowcount


def _add(
    connection: Connection, given: Sequence[tuple[KeyedRequest, bytes | None]], now_ms: int, life_ms: int
) -> list[Earlier | None]:
    """Add a row for each key that holds nothing; of the others give what they hold.

    Of two with one key the first is added, and the second finds it. Rows are added in the order of
    their keys, so that no two processes wait for each other; one waits for another's transaction here.
    """
    places = [(asked.partner_id, asked.route, asked.key) for asked, _ in given]
    first: dict[tuple[int, str, str], int] = {}
    for nth, place in enumerate(places):
        first.setdefault(place, nth)
    rows = [
        {
            "partner_id": asked.partner_id,
            "route": asked.route,
            "key": asked.key,
            "body_hash": asked.body_hash,
            "app_id": asked.app_id,
            "holder": asked.holder,
            "answer": answer,
            "expires_on_ms": now_ms + life_ms,
        }
        for asked, answer in (given[nth] for _, nth in sorted(first.items()))
    ]
    added = {tuple(row) for row in connection.execute(_ADD[life_ms], rows)}
    found: list[Earlier | None] = []
    for nth, place in enumerate(places):
        if place in added and first[place] == nth:
            found.append(None)
            continue
        row = connection.execute(_HELD, _at(given[nth][0])).one()  # the insert has locked it
        found.append(Earlier(row.body_hash, row.app_id, row.answer))
    return found


def _at(asked: KeyedRequest) -> dict[str, Any]:
    return {"its_partner": asked.partner_id, "its_route": asked.route, "its_key": asked.key}


def _now_ms(connection: Connection, at_ms: int) -> int:
    """Now, by the store's own clock where it has one: several machines' clocks differ."""
    store_ms: int | None = connection.info[WAYS].now_ms(connection)
    return at_ms if store_ms is None else store_ms


def _adding(life_ms: int) -> Any:
    """Add rows, also in the place of such as have run out; gives the keys of those that were added.

    When a row is added now, it will run out at `now + life`; so what runs out by `that - life` has.
    """
    statement = insert_or(keys)
    named = ("body_hash", "app_id", "holder", "answer", "expires_on_ms")
    now_ms = statement.excluded.expires_on_ms - literal_column(str(life_ms))
    return statement.on_conflict_do_update(
        index_elements=[keys.c.partner_id, keys.c.route, keys.c.key],
        set_={name: statement.excluded[name] for name in named},
        where=keys.c.expires_on_ms <= now_ms,
    ).returning(keys.c.partner_id, keys.c.route, keys.c.key)


_ADD: Final = {life_ms: _adding(life_ms) for life_ms in (LIFE_MS, LEASE_MS)}
_IS_ITS: Final = (
    (keys.c.partner_id == bindparam("its_partner"))
    & (keys.c.route == bindparam("its_route"))
    & (keys.c.key == bindparam("its_key"))
)
_HELD: Final = select(keys.c.body_hash, keys.c.app_id, keys.c.answer).where(_IS_ITS)
_LOOK: Final = _HELD.where(keys.c.expires_on_ms > bindparam("now_ms"))
_IS_MARKED: Final = keys.c.answer.is_(None) & (keys.c.holder == bindparam("its_holder"))
_UNMARK: Final = delete(keys).where(_IS_ITS, _IS_MARKED)
_LEAVE: Final = update(keys).where(_IS_ITS, _IS_MARKED).values(expires_on_ms=bindparam("until_ms"))
_LEFT: Final = select(keys.c.body_hash).where(_IS_ITS, keys.c.answer.is_(None))
_ANSWERED: Final = (
    update(keys).where(_IS_ITS).values(answer=bindparam("sealed"), expires_on_ms=bindparam("until_ms"), holder=None)
)
