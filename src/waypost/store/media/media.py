"""Rows of media: uploads of partners, the operator's copies of them, and media from recipients."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

from waypost.domain.media import InboundMedia, UploadedMedia
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, complete_jobs, enqueue_jobs
from waypost.store.sql import RowReader, read_all, read_one, row_values, upsert
from waypost.store.tables import inbound_media, media, media_copies

_read_media: Final = RowReader(UploadedMedia)
_read_inbound_media: Final = RowReader(InboundMedia)

MAX_QUERY_NAMES: Final = 5_000
"""How many media ids and handles one query may contain; SQLite allows about 32,000 parameters."""
MAX_DELETED_MEDIA_ROWS: Final = 1_000

_CONTENT_SIZES: Final = (
    select(func.max(media.c.size_bytes).label("size"))
    .where(media.c.partner_id == bindparam("partner_id"), media.c.expires_on_ms > bindparam("now_ms"))
    .group_by(media.c.sha256)
    .subquery()
)
_STORED_BYTES: Final = select(func.coalesce(func.sum(_CONTENT_SIZES.c.size), 0))
_DELETE_EXPIRED: Final = [
    delete(table).where(
        tuple_(*table.primary_key.columns).in_(
            select(*table.primary_key.columns)
            .where(table.c.expires_on_ms <= bindparam("now_ms"))
            .limit(bindparam("at_most", type_=Integer))
        )
    )
    for table in (media_copies, media, inbound_media)
]


def add_media(connection: Connection, uploads: Sequence[UploadedMedia]) -> list[bool]:
    """Store uploads whose bytes are on disk; False for one whose id or handle exists already."""
    statement = upsert(media).on_conflict_do_nothing().returning(media.c.id)  # its count of rows is unknown
    rows = (row_values(media, upload) for upload in uploads)
    return [connection.execute(statement, row).one_or_none() is not None for row in rows]


def media_of_app(connection: Connection, app_id: str, media_id: str, now_ms: int) -> UploadedMedia | None:
    """Return one unexpired upload of an app."""
    is_live = (media.c.id == media_id, media.c.expires_on_ms > now_ms)
    return read_one(connection, select(media).where(*is_live, media.c.app_id == app_id), _read_media)


def live_media(connection: Connection, media_id: str, now_ms: int) -> UploadedMedia | None:
    """Return one unexpired upload by its id, of any app: only for callers that have proved their access."""
    is_live = (media.c.id == media_id, media.c.expires_on_ms > now_ms)
    return read_one(connection, select(media).where(*is_live), _read_media)


@dataclass(frozen=True, slots=True)
class MediaReferences:
    """The media that one submission refers to."""

    partner_id: int
    # where the operator must have them: the operator account's id with that of a number, or with `app` and the
    # operator's app id
    location: str
    references: tuple[str, ...]  # media ids and handles, ours or not


def stored_bytes(connection: Connection, partner_id: int, now_ms: int) -> int:
    """Return how many bytes of unexpired uploads a partner has; the same content counts once."""
    return int(connection.execute(_STORED_BYTES, {"partner_id": partner_id, "now_ms": now_ms}).scalar_one())


@dataclass(frozen=True, slots=True)
class KnownMediaCopies:
    """The known media among references."""

    copies: dict[str, str]  # the operator's ids, by reference; one that is not ours is not included
    missing: dict[str, UploadedMedia]  # ours that the operator does not have at the location, by reference


def find_copies(
    connection: Connection, requests: Sequence[MediaReferences], now_ms: int, *, with_expired: bool = False
) -> list[KnownMediaCopies]:
    """Look up references of submissions, among the partner's own media only; expired media count as not ours.

    Two queries for all of them together, unless there are very many.

    Args:
        with_expired: also those that have expired and are still there: a template keeps its samples, and the next
            sweep renews them.
    """
    names = sorted({name for request in requests for name in request.references})
    partners = {request.partner_id for request in requests if request.references}
    uploads: dict[tuple[int, str], UploadedMedia] = {}
    copies: dict[tuple[str, str], str] = {}
    for begin in range(0, len(names), MAX_QUERY_NAMES):
        some = names[begin : begin + MAX_QUERY_NAMES]
        rows = connection.execute(_select_uploads(partners, some, 0 if with_expired else now_ms)).all()
        for row in rows:
            upload = _read_media(row)
            uploads.update({(row.partner_id, name): upload for name in (row.id, row.handle) if name})
        if rows:
            known = select(media_copies).where(
                media_copies.c.media_id.in_([row.id for row in rows]), media_copies.c.expires_on_ms > now_ms
            )
            copies.update({(row.media_id, row.location): row.operator_id for row in connection.execute(known)})
    results = [KnownMediaCopies({}, {}) for _ in requests]
    for request, result in zip(requests, results, strict=True):
        for reference in request.references:
            upload = uploads.get((request.partner_id, reference))
            if upload is None:
                continue
            operator_id = copies.get((upload.id, request.location))
            if operator_id is None:
                result.missing[reference] = upload
            else:
                result.copies[reference] = operator_id
    return results


@dataclass(frozen=True, slots=True)
class OperatorCopy:
    """The operator's id of an upload at one location, and when it expires."""

    media_id: str
    location: str
    operator_id: str
    expires_on_ms: int


def record_copies(connection: Connection, copies: Sequence[OperatorCopy]) -> list[None]:
    """Store the operator's copies; a newer copy replaces an older one."""
    statement = upsert(media_copies)
    newer = {name: statement.excluded[name] for name in ("operator_id", "expires_on_ms")}
    statement = statement.on_conflict_do_update(index_elements=["media_id", "location"], set_=newer)
    for copy in copies:
        connection.execute(statement, row_values(media_copies, copy))
    return [None] * len(copies)


def delete_copies(connection: Connection, location: str, operator_ids: Sequence[str]) -> None:
    """Delete copies that the operator no longer has."""
    is_gone = (media_copies.c.location == location, media_copies.c.operator_id.in_(list(operator_ids)))
    connection.execute(delete(media_copies).where(*is_gone))


def add_inbound_media(
    connection: Connection, inbound: InboundMedia, *, operator_account_id: str, phone_number_id: str, now_ms: int
) -> None:
    """Store inbound media, with the job that fetches it, in the event's own transaction.

    Args:
        inbound: its `key` is the last part of its URL and cannot be guessed: from `ids.secret()`.
        operator_account_id: of the sender of the webhook, which has its bytes.
        phone_number_id: of the number it was sent to; media of one number delay only each other.
        now_ms: it is fetched from then on.
    """
    connection.execute(insert(inbound_media), row_values(inbound_media, inbound))
    job = NewJob(
        QueueName.MEDIA,
        concurrency_group=phone_number_id,
        ordering_key=inbound.key,
        subject=JobSubject(SubjectKind.INBOUND_MEDIA, inbound.key, operator_account_id),
        due_ms=now_ms,
    )
    enqueue_jobs(connection, [job])


def inbound_by_keys(connection: Connection, keys: Sequence[str]) -> dict[str, InboundMedia]:
    """Return inbound media by key; keys without a row are left out."""
    found = read_all(connection, select(inbound_media).where(inbound_media.c.key.in_(list(keys))), _read_inbound_media)
    return {medium.key: medium for medium in found}


def inbound_of_app(connection: Connection, app_id: str, operator_media_id: str, now_ms: int) -> InboundMedia | None:
    """Return unexpired inbound media of an app by the operator's id, once it is fetched."""
    query = select(inbound_media).where(*_is_fetched(app_id, [operator_media_id], now_ms)).limit(1)
    return read_one(connection, query, _read_inbound_media)


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """The result of a fetch: the digest of its bytes, or why it failed for good; with neither, nothing changes."""

    position: int
    key: str
    sha256: str | None = None
    failure: str | None = None


def record_fetches(connection: Connection, outcomes: Sequence[FetchOutcome]) -> list[None]:
    """Store results of fetches, and complete the jobs."""
    for outcome in outcomes:
        if outcome.sha256 is not None or outcome.failure is not None:
            fetched = update(inbound_media).where(inbound_media.c.key == outcome.key)
            connection.execute(fetched.values(sha256=outcome.sha256, failure=outcome.failure))
    complete_jobs(connection, [outcome.position for outcome in outcomes])
    return [None] * len(outcomes)


def delete_expired_media(connection: Connection, now_ms: int, *, at_most: int = MAX_DELETED_MEDIA_ROWS) -> bool:
    """Delete expired rows, a limited number of each table; True while there may be more."""
    is_more = False
    for statement in _DELETE_EXPIRED:
        deleted = connection.execute(statement, {"now_ms": now_ms, "at_most": at_most})
        is_more = is_more or deleted.rowcount == at_most
    return is_more


def delete_upload(connection: Connection, partner_id: int, media_id: str, now_ms: int) -> bool:
    """Delete one upload of a partner, and its operator copies; False if there is none.

    Its file stays until a sweep finds that no row refers to it.
    """
    is_live = (media.c.id == media_id, media.c.partner_id == partner_id, media.c.expires_on_ms > now_ms)
    if connection.execute(delete(media).where(*is_live)).rowcount != 1:
        return False
    connection.execute(delete(media_copies).where(media_copies.c.media_id == media_id))
    return True


def referenced_files(connection: Connection, names: Sequence[str]) -> set[str]:
    """Return those of these digests that some row refers to."""
    return {
        name
        for table in (media, inbound_media)
        for name in connection.execute(select(table.c.sha256).where(table.c.sha256.in_(list(names)))).scalars()
        if name is not None
    }


def find_uploads(
    connection: Connection, partner_id: int, references: Sequence[str], now_ms: int
) -> dict[str, UploadedMedia]:
    """Return a partner's own unexpired uploads among media ids and handles, by reference."""
    names = set(references)
    rows = connection.execute(_select_uploads([partner_id], names, now_ms)).all()
    return {name: _read_media(row) for row in rows for name in (row.id, row.handle) if name in names}


def _select_uploads(partners: Collection[int], names: Collection[str], now_ms: int) -> Select[Any]:
    return select(media).where(
        media.c.id.in_(names) | media.c.handle.in_(names),
        media.c.partner_id.in_(partners),
        media.c.expires_on_ms > now_ms,
    )


def fetched_media_keys(
    connection: Connection, app_id: str, operator_media_ids: Sequence[str], now_ms: int
) -> dict[str, str]:
    """Return the keys of an app's received media that were fetched and are retained, by the operator's media id."""
    if not operator_media_ids:
        return {}
    query = select(inbound_media.c.operator_media_id, inbound_media.c.key)
    return dict(read_all(connection, query.where(*_is_fetched(app_id, operator_media_ids, now_ms)), tuple))


def _is_fetched(app_id: str, operator_media_ids: Sequence[str], now_ms: int) -> tuple[ColumnElement[bool], ...]:
    column = inbound_media.c
    of_app = (column.app_id == app_id, column.operator_media_id.in_(list(operator_media_ids)))
    return *of_app, column.expires_on_ms > now_ms, column.sha256.is_not(None)
