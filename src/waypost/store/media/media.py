"""Rows of media: what partners upload, the operator's copies of it, and what recipients send."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, and_, delete, func, insert, select, tuple_, update

from waypost.domain.media import InboundMedia, Media
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, QueueName, complete_jobs, enqueue_jobs
from waypost.store.sql import insert_or
from waypost.store.tables import inbound_media, media, media_copies
from waypost.store.typed_rows import RowReader

_media_of: Final = RowReader(Media)
_inbound_media_of: Final = RowReader(InboundMedia)

MOST_NAMES: Final = 5_000
"""How many media ids and handles one query asks for; SQLite takes some 32,000 parameters."""
MOST_FORGOTTEN: Final = 1_000


def add_media(connection: Connection, uploads: Sequence[Media]) -> list[bool]:
    """Write uploads whose bytes are on disk; false for one whose id or handle is taken."""
    added: list[bool] = []
    for one in uploads:
        statement = insert_or(media).values(_media_columns(one)).on_conflict_do_nothing()
        kept = connection.execute(statement.returning(media.c.id))  # its count of rows is unknown
        added.append(kept.one_or_none() is not None)
    return added


def media_of_app(connection: Connection, app_id: str, media_id: str, now_ms: int) -> Media | None:
    """One upload of an app, while it lives."""
    row = connection.execute(
        select(media).where(media.c.id == media_id, media.c.app_id == app_id, media.c.expires_on_ms > now_ms)
    ).one_or_none()
    return None if row is None else _media_of(row)


def live_media(connection: Connection, media_id: str, now_ms: int) -> Media | None:
    """One upload by its id, whoever's, while it lives: only for who has shown that they may."""
    row = connection.execute(select(media).where(media.c.id == media_id, media.c.expires_on_ms > now_ms)).one_or_none()
    return None if row is None else _media_of(row)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The media that one submission refers to.

    Attributes:
        place: where the operator must have them: the operator account's id with that of a number, or
            with `app` and the operator's app id.
        references: media ids and handles, ours or not.
    """

    partner_id: int
    place: str
    references: tuple[str, ...]


def stored_bytes(connection: Connection, partner_id: int, now_ms: int) -> int:
    """How many bytes a partner has uploaded that have not expired; the same content counts once."""
    alive = and_(media.c.partner_id == partner_id, media.c.expires_on_ms > now_ms)
    contents = select(func.max(media.c.size_bytes).label("size")).where(alive)
    each = contents.group_by(media.c.sha256).subquery()
    return int(connection.execute(select(func.coalesce(func.sum(each.c.size), 0))).scalar_one())


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of them.

    Attributes:
        copies: what the operator calls them, by reference; one that is not ours is not there.
        missing: ours that the operator does not have there, by reference.
    """

    copies: dict[str, str]
    missing: dict[str, Media]


def find_copies(connection: Connection, wanted: Sequence[Wanted], now_ms: int) -> list[Found]:
    """Look up references of submissions. A partner's own only; what has expired counts as not ours.

    Two queries for all of them together, unless they name very many.
    """
    names = sorted({name for one in wanted for name in one.references})
    partners = {one.partner_id for one in wanted if one.references}
    ours: dict[tuple[int, str], Media] = {}
    there: dict[tuple[str, str], str] = {}
    for begin in range(0, len(names), MOST_NAMES):
        rows = connection.execute(_named(partners, names[begin : begin + MOST_NAMES], now_ms)).all()
        for row in rows:
            upload = _media_of(row)
            ours.update({(row.partner_id, name): upload for name in (row.id, row.handle) if name})
        if rows:
            there.update(_copies_of(connection, [row.id for row in rows], now_ms))
    return [_found(one, ours, there) for one in wanted]


@dataclass(frozen=True, slots=True)
class Copy:
    """What the operator calls an upload at one place, and until when."""

    media_id: str
    place: str
    operator_id: str
    expires_on_ms: int


def record_copies(connection: Connection, copies: Sequence[Copy]) -> list[None]:
    """Write what the operator has now; a newer copy takes an older one's place."""
    for copy in copies:
        statement = insert_or(media_copies).values(
            media_id=copy.media_id, place=copy.place, operator_id=copy.operator_id, expires_on_ms=copy.expires_on_ms
        )
        statement = statement.on_conflict_do_update(
            index_elements=["media_id", "place"],
            set_={"operator_id": statement.excluded.operator_id, "expires_on_ms": statement.excluded.expires_on_ms},
        )
        connection.execute(statement)
    return [None] * len(copies)


def drop_copies(connection: Connection, place: str, operator_ids: Sequence[str]) -> None:
    """Forget copies that the operator has lost."""
    connection.execute(
        delete(media_copies).where(media_copies.c.place == place, media_copies.c.operator_id.in_(list(operator_ids)))
    )


def add_inbound_media(
    connection: Connection, one: InboundMedia, *, operator_account_id: str, phone_number_id: str, now_ms: int
) -> None:
    """Write what a recipient has sent, with the entry that fetches it; in the event's own transaction.

    Args:
        connection: the event's.
        one: its `key` is the end of its address, and nobody can guess it: from `ids.secret()`.
        operator_account_id: of whom it came from, and who has its bytes.
        phone_number_id: of the number it was sent to; one number's media hold up only themselves.
        now_ms: it is fetched from then on.
    """
    connection.execute(
        insert(inbound_media),
        {
            "key": one.key,
            "partner_id": one.partner_id,
            "app_id": one.app_id,
            "operator_media_id": one.operator_media_id,
            "mime_type": one.mime_type,
            "file_name": one.file_name,
            "expires_on_ms": one.expires_on_ms,
        },
    )
    job = NewJob(
        QueueName.MEDIA,
        concurrency_group=phone_number_id,
        ordering_key=one.key,
        subject=JobSubject(SubjectKind.INBOUND_MEDIA, one.key, operator_account_id),
        due_ms=now_ms,
    )
    enqueue_jobs(connection, [job])


def inbound_by_keys(connection: Connection, keys: Sequence[str]) -> dict[str, InboundMedia]:
    """Inbound media by key; those that are not there are left out."""
    rows = connection.execute(select(inbound_media).where(inbound_media.c.key.in_(list(keys))))
    return {row.key: _inbound_media_of(row) for row in rows}


def inbound_of_app(connection: Connection, app_id: str, operator_media_id: str, now_ms: int) -> InboundMedia | None:
    """What a recipient has sent to an app, by the operator's id, while it lives and is here."""
    row = connection.execute(
        select(inbound_media)
        .where(
            inbound_media.c.app_id == app_id,
            inbound_media.c.operator_media_id == operator_media_id,
            inbound_media.c.expires_on_ms > now_ms,
            inbound_media.c.sha256.is_not(None),
        )
        .limit(1)
    ).one_or_none()
    return None if row is None else _inbound_media_of(row)


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """What came of fetching: the digest of its bytes, or why there will be none; neither leaves it as it is."""

    position: int
    key: str
    sha256: str | None = None
    failed: str | None = None


def record_fetches(connection: Connection, outcomes: Sequence[FetchOutcome]) -> list[None]:
    """Write what came of fetching, and settle the entries."""
    for one in outcomes:
        if one.sha256 is not None or one.failed is not None:
            connection.execute(
                update(inbound_media).where(inbound_media.c.key == one.key).values(sha256=one.sha256, failed=one.failed)
            )
    complete_jobs(connection, [one.position for one in outcomes])
    return [None] * len(outcomes)


def forget_expired(connection: Connection, now_ms: int, *, at_most: int = MOST_FORGOTTEN) -> bool:
    """Delete rows whose time is over, some of each table; true while there may be more."""
    is_more = False
    for table in (media_copies, media, inbound_media):
        key = tuple_(*table.primary_key.columns)
        over = select(*table.primary_key.columns).where(table.c.expires_on_ms <= now_ms)
        gone = connection.execute(delete(table).where(key.in_(over.limit(at_most))))
        is_more = is_more or gone.rowcount == at_most
    return is_more


def forget_media(connection: Connection, partner_id: int, media_id: str, now_ms: int) -> bool:
    """Delete one upload of a partner's, and what is known of the operator's copies; False when there is none.

    Its file stays until a sweep finds that no row refers to it.
    """
    gone = connection.execute(
        delete(media).where(media.c.id == media_id, media.c.partner_id == partner_id, media.c.expires_on_ms > now_ms)
    )
    if gone.rowcount != 1:
        return False
    connection.execute(delete(media_copies).where(media_copies.c.media_id == media_id))
    return True


def referenced_files(connection: Connection, names: Sequence[str]) -> set[str]:
    """Which of these digests some row refers to."""
    return {
        name
        for table in (media, inbound_media)
        for name in connection.execute(select(table.c.sha256).where(table.c.sha256.in_(list(names)))).scalars()
        if name is not None
    }


def uploads_named(connection: Connection, partner_id: int, references: Sequence[str], now_ms: int) -> dict[str, Media]:
    """A partner's own live uploads among media ids and handles, by what names them."""
    names = set(references)
    rows = connection.execute(_named([partner_id], names, now_ms)).all()
    return {name: _media_of(row) for row in rows for name in (row.id, row.handle) if name in names}


def _named(partners: Collection[int], names: Collection[str], now_ms: int) -> Select[Any]:
    return select(media).where(
        media.c.id.in_(names) | media.c.handle.in_(names),
        media.c.partner_id.in_(partners),
        media.c.expires_on_ms > now_ms,
    )


def _copies_of(connection: Connection, media_ids: Sequence[str], now_ms: int) -> dict[tuple[str, str], str]:
    """What the operator calls these, by id and place."""
    rows = connection.execute(
        select(media_copies.c.media_id, media_copies.c.place, media_copies.c.operator_id).where(
            media_copies.c.media_id.in_(media_ids), media_copies.c.expires_on_ms > now_ms
        )
    )
    return {(row.media_id, row.place): row.operator_id for row in rows}


def _found(one: Wanted, ours: Mapping[tuple[int, str], Media], there: Mapping[tuple[str, str], str]) -> Found:
    found = Found({}, {})
    for reference in one.references:
        upload = ours.get((one.partner_id, reference))
        if upload is None:
            continue
        operator_id = there.get((upload.id, one.place))
        if operator_id is None:
            found.missing[reference] = upload
        else:
            found.copies[reference] = operator_id
    return found


def _media_columns(one: Media) -> dict[str, Any]:
    return {
        "id": one.id,
        "handle": one.handle,
        "partner_id": one.partner_id,
        "app_id": one.app_id,
        "mime_type": one.mime_type,
        "size_bytes": one.size_bytes,
        "sha256": one.sha256,
        "file_name": one.file_name,
        "created_on_ms": one.created_on_ms,
        "expires_on_ms": one.expires_on_ms,
    }
