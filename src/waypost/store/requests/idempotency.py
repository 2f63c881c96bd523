"""Responses stored under idempotency keys, so that a repeated request is not carried out again.

A row is added by the transaction that carries out the request, so neither can exist without the
other. If that transaction is not all of the work, a row without a response is added first: it names
the process that works on it, and when it expires (decision 0044).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, bindparam, delete, literal_column, select, tuple_, update

from waypost.domain.message import Message
from waypost.store.bulk_statements import store_time_ms
from waypost.store.messages.messages import record_messages
from waypost.store.sql import read_one, row_values, upsert
from waypost.store.tables import idempotency_keys as keys

WorkResult = TypeVar("WorkResult")

KEY_RETENTION_MS: Final = 24 * 60 * 60 * 1000  # how long a response is retained
KEY_LEASE_MS: Final = 120_000
"""How long a request may run before its key may be used again: four times what the slowest needs."""


def encryption_context(partner_id: int, route: str, key: str) -> str:
    """Return the owner that the response of a request is encrypted for."""
    return f"idempotency {partner_id} {route} {key}"


class IdempotencyKeyLost(Exception):
    """The work took so long that another request has claimed its key."""


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request and its key."""

    partner_id: int
    route: str  # method and path, and the app's id where the path has one
    key: str
    body_hash: bytes  # SHA-256 of its content
    at_ms: int  # now; a store with a clock of its own uses that clock
    app_id: str | None = None  # of the request; None: the partner's own
    holder: str | None = None  # the process that has marked the key as running; None: there is no mark


class EarlierRequest(NamedTuple):
    """The earlier request of a key."""

    body_hash: bytes
    app_id: str | None
    response: bytes | None  # encrypted; None while the request is running


def find_earlier_request(connection: Connection, request: KeyedRequest) -> EarlierRequest | None:
    """Return the earlier request of a key that has not expired; None if there is none."""
    parameters = _key_parameters(request)
    return read_one(connection, _SELECT_UNEXPIRED, EarlierRequest._make, **parameters, now_ms=request.at_ms)


def mark_running(connection: Connection, request: KeyedRequest) -> EarlierRequest | None:
    """Mark a key as running for `KEY_LEASE_MS` at most; if it has an earlier request, return that one instead."""
    return _insert_keys(connection, [(request, None)], store_time_ms(connection, request.at_ms), KEY_LEASE_MS)[0]


def has_unknown_outcome(connection: Connection, request: KeyedRequest) -> bool:
    """Return True if the same request was begun before and its outcome is unknown. Call it before `mark_running`."""
    return request.body_hash in connection.execute(_SELECT_WITHOUT_RESPONSE, _key_parameters(request)).scalars().all()


def unmark_running(connection: Connection, request: KeyedRequest) -> None:
    """Remove the mark of a request that was not carried out: its key may be used again at once."""
    connection.execute(_DELETE_MARK, _key_parameters(request) | {"where_holder": request.holder})


def mark_outcome_unknown(connection: Connection, request: KeyedRequest) -> None:
    """End the mark of a request whose outcome is unknown: its key may be used again at once, but the row stays."""
    now_ms = store_time_ms(connection, request.at_ms)
    connection.execute(_EXPIRE_MARK, _key_parameters(request) | {"where_holder": request.holder, "until_ms": now_ms})


def write_keyed(
    connection: Connection,
    request: KeyedRequest,
    work: Callable[[Connection], WorkResult],
    encode_response: Callable[[WorkResult], bytes],
) -> EarlierRequest | None:
    """Run a write and store its response, in one transaction, unless the key has an earlier request.

    Args:
        encode_response: returns the encrypted response for the result; an exception undoes everything.

    Returns:
        The earlier request of the key, and then nothing is done; None: it is done.

    Raises:
        IdempotencyKeyLost: the mark of the request's holder has expired, and another request has the key.
    """
    now_ms = store_time_ms(connection, request.at_ms)
    if request.holder is None:
        earlier = _insert_keys(connection, [(request, None)], now_ms, KEY_RETENTION_MS)[0]
        if earlier is not None:
            return earlier
    response = encode_response(work(connection))
    parameters = _key_parameters(request) | {"encrypted": response, "until_ms": now_ms + KEY_RETENTION_MS}
    statement = _STORE_RESPONSE
    if request.holder is not None:
        parameters["where_holder"] = request.holder
        statement = _STORE_RESPONSE.where(_IS_MARKED)
    if connection.execute(statement, parameters).rowcount != 1:
        raise IdempotencyKeyLost(request.key)
    return None


def record_keyed_messages(
    connection: Connection, accepted: Sequence[tuple[KeyedRequest, Message, bytes]]
) -> list[EarlierRequest | None]:
    """Write messages whose keys are new, with their jobs and responses, in one transaction.

    Args:
        accepted: each with its request and its encrypted response; everything that waits at this moment.

    Returns:
        For each, the earlier request of its key, and then it is not written; None: it is written.
    """
    now_ms = store_time_ms(connection, max(request.at_ms for request, _, _ in accepted))
    keyed = [(request, response) for request, _, response in accepted]
    earlier = _insert_keys(connection, keyed, now_ms, KEY_RETENTION_MS)
    new = [message for (_, message, _), found in zip(accepted, earlier, strict=True) if found is None]
    if new:
        record_messages(connection, new)
    return earlier


def delete_expired(connection: Connection, now_ms: int, at_most: int) -> int:
    """Delete expired keys, the oldest first; return how many.

    A request without a response is retained for a day after its key has expired.
    """
    now_ms = store_time_ms(connection, now_ms)
    is_over = (keys.c.expires_on_ms <= now_ms) & (
        keys.c.response.is_not(None) | (keys.c.expires_on_ms <= now_ms - KEY_RETENTION_MS)
    )
    expired = (
        select(keys.c.partner_id, keys.c.route, keys.c.key).where(is_over).order_by(keys.c.expires_on_ms).limit(at_most)
    )
    row_key = tuple_(keys.c.partner_id, keys.c.route, keys.c.key)
    # Checked twice: the key may have been claimed meanwhile.
    return connection.execute(delete(keys).where(row_key.in_(expired), is_over)).rowcount


def _insert_keys(
    connection: Connection, requests: Sequence[tuple[KeyedRequest, bytes | None]], now_ms: int, life_ms: int
) -> list[EarlierRequest | None]:
    """Add a row for each new key; return the earlier requests of the others.

    Of two with one key the first is added, and the second finds it. Rows are added in the order of
    their keys, so that no two processes deadlock; this may wait for another process's transaction.
    """
    row_keys = [(request.partner_id, request.route, request.key) for request, _ in requests]
    first: dict[tuple[int, str, str], int] = {}
    for index, row_key in enumerate(row_keys):
        first.setdefault(row_key, index)
    rows = [
        row_values(keys, request, response=response, expires_on_ms=now_ms + life_ms)
        for request, response in (requests[index] for _, index in sorted(first.items()))
    ]
    added = {tuple(row) for row in connection.execute(_INSERT_KEYS[life_ms], rows)}
    earlier: list[EarlierRequest | None] = []
    for index, row_key in enumerate(row_keys):
        if row_key in added and first[row_key] == index:
            earlier.append(None)
            continue
        row = connection.execute(_SELECT_KEY, _key_parameters(requests[index][0])).one()  # locked by the insert
        earlier.append(EarlierRequest._make(row))
    return earlier


def _key_parameters(request: KeyedRequest) -> dict[str, Any]:
    return {"where_partner_id": request.partner_id, "where_route": request.route, "where_key": request.key}


def _build_insert(life_ms: int) -> Any:
    """Return an insert that also replaces expired rows, and returns the keys of the rows it wrote.

    A row that is added now will expire at `now + life`; so what expires by `that - life` has expired.
    """
    statement = upsert(keys)
    columns = ("body_hash", "app_id", "holder", "response", "expires_on_ms")
    now_ms = statement.excluded.expires_on_ms - literal_column(str(life_ms))
    return statement.on_conflict_do_update(
        index_elements=[keys.c.partner_id, keys.c.route, keys.c.key],
        set_={name: statement.excluded[name] for name in columns},
        where=keys.c.expires_on_ms <= now_ms,
    ).returning(keys.c.partner_id, keys.c.route, keys.c.key)


_INSERT_KEYS: Final = {life_ms: _build_insert(life_ms) for life_ms in (KEY_RETENTION_MS, KEY_LEASE_MS)}
_IS_KEY: Final = (
    (keys.c.partner_id == bindparam("where_partner_id"))
    & (keys.c.route == bindparam("where_route"))
    & (keys.c.key == bindparam("where_key"))
)
_SELECT_KEY: Final = select(keys.c.body_hash, keys.c.app_id, keys.c.response).where(_IS_KEY)
_SELECT_UNEXPIRED: Final = _SELECT_KEY.where(keys.c.expires_on_ms > bindparam("now_ms"))
_IS_MARKED: Final = keys.c.response.is_(None) & (keys.c.holder == bindparam("where_holder"))
_DELETE_MARK: Final = delete(keys).where(_IS_KEY, _IS_MARKED)
_EXPIRE_MARK: Final = update(keys).where(_IS_KEY, _IS_MARKED).values(expires_on_ms=bindparam("until_ms"))
_SELECT_WITHOUT_RESPONSE: Final = select(keys.c.body_hash).where(_IS_KEY, keys.c.response.is_(None))
_STORE_RESPONSE: Final = (
    update(keys)
    .where(_IS_KEY)
    .values(response=bindparam("encrypted"), expires_on_ms=bindparam("until_ms"), holder=None)
)
