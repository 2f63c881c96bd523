"""Searches an app's messages, newest first: every filter with every other, at a bounded cost.

No index leads to a state, an error, a template or a word, because an index that is written at a random
place for each message halves the rate at five million stored (decision 0049). So what is rare is looked
for along the indexes that there are, over at most so many messages for each request; whoever asks is told
how far back it was looked, and asks again from there. A number leads to its recipients, and they to their
messages, whatever else is stored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Text, and_, cast, func, select

from waypost.base.ids import is_uuid
from waypost.store.messages.lists import MOST, SHOWN, Place
from waypost.store.messages.one_time_codes import with_codes
from waypost.store.messages.search_pages import FIRST, LOOKED_AT, ByTime, Found, Page
from waypost.store.messages.text import words_of
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import QueueName, read_subject
from waypost.store.schema import POSTGRESQL
from waypost.store.sql import one_of
from waypost.store.tables import apps, messages, queue_jobs, recipients

READ: Final = 2_500
"""Messages that one request looks at where each has to be read to know its words."""
MOST_RECIPIENTS: Final = 20
"""More than that, and it is quicker to go through the app's messages than through each one's."""
MOST_NUMBERS: Final = 100_000
"""Of an app, among which a part of a number is looked for."""
LEAST_DIGITS: Final = 4
_BATCH: Final = 500
_ORDER: Final = ByTime(messages.c.accepted_on_ms, messages.c.id)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages; what is None does not matter.

    Attributes:
        number: digits, at least `LEAST_DIGITS` of those in a row that the destination has.
        name: an id: ours, the operator's, or the recipient's business-scoped one; whole.
        text: in the words of the message, in capitals or not; needs `from_ms`.
        from_ms: accepted then or later.
        until_ms: accepted before then.
    """

    number: str | None = None
    name: str | None = None
    state: str | None = None
    template_id: str | None = None
    code: int | None = None
    kinds: tuple[str, ...] = ()
    text: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether every message of the time is wanted."""
        return self == Wanted(from_ms=self.from_ms, until_ms=self.until_ms)


@dataclass(frozen=True, slots=True)
class _Source:
    """Messages that an index leads to, in its order.

    Attributes:
        where: what the index serves.
        horizon_ms: nothing older is looked at, because of the bound; None: all of it is.
    """

    where: ColumnElement[bool]
    horizon_ms: int | None = None


def search_messages(connection: Connection, partner_id: int, app_id: str, wanted: Wanted, page: Page = FIRST) -> Found:
    """One page of those of an app's messages that are wanted, newest first, each with its `content` and `holds_code`.

    A message with a one-time code is not found by its words: that would tell the code.

    Args:
        connection: any.
        partner_id: whose app it must be; another's has nothing.
        app_id: which.
        wanted: which of its messages.
        page: which, and how many are looked at for it.
    """
    source = connection.execute(
        select(apps.c.phone_number).where(apps.c.id == app_id, apps.c.partner_id == partner_id)
    ).one_or_none()
    if source is None:
        return Found([])
    page = page.until(wanted.until_ms)
    if wanted.text and not _is_told_apart(wanted.text):
        page = replace(page, look_at=min(page.look_at, READ))
    search = _Search(connection, partner_id, app_id, source.phone_number or "", wanted, page)
    sources = search.sources()
    horizons = [one.horizon_ms for one in sources if one.horizon_ms is not None]
    horizon_ms = max(horizons, default=None)
    mine = messages.c.partner_id == partner_id
    return _ORDER.found(
        (search.matches(one, mine, horizon_ms) for one in sources), page, from_ms=wanted.from_ms, horizon_ms=horizon_ms
    )


def messages_again(connection: Connection, partner_id: int, app_id: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Messages of an app as they stand now, in no order: of those that a list has shown."""
    found = select(*_COLUMNS).where(
        one_of(messages.c.id, "ids"), messages.c.partner_id == partner_id, messages.c.app_id == app_id
    )
    rows = [dict(row) for row in connection.execute(found, {"ids": ids}).mappings()]
    return with_codes(connection, partner_id, rows)


class _Search:
    def __init__(
        self, connection: Connection, partner_id: int, app_id: str, source: str, wanted: Wanted, page: Page
    ) -> None:
        self._connection = connection
        self._partner_id = partner_id
        self._app_id = app_id
        self._source = source
        self._wanted = wanted
        self._page = page
        self._of_app = messages.c.app_id == app_id
        self._needle = (wanted.text or "").casefold()

    def sources(self) -> list[_Source]:
        """What has to be gone through, each with its horizon."""
        wanted = self._wanted
        ids = self._ids_named(wanted.name) if wanted.name else []
        if ids:
            return [_Source(and_(self._of_app, messages.c.id.in_(ids)))]
        whose = self._recipients()
        if wanted.name and not whose:
            return []
        if not whose:
            if wanted.is_all:
                return [_Source(self._of_app)]
            where = and_(self._of_app, *self._of_number())
            return [self._with_horizon(where, self._of_app, self._page.look_at)]
        each = self._page.look_at // len(whose)
        sources = [
            self._with_horizon(of_one, of_one, each) for of_one in (messages.c.recipient_id == one for one in whose)
        ]
        waiting = self._waiting_ids()
        if waiting:
            where = and_(
                self._of_app, messages.c.id.in_(waiting), messages.c.recipient_id.is_(None), *self._of_number()
            )
            sources.append(_Source(where))
        return sources

    def matches(self, source: _Source, mine: ColumnElement[bool], horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """What is wanted of a source, newest first, read as far as it is asked for."""
        before, batch = self._page.before, self._page.at_most + 1
        while True:
            asked = _ORDER.newest(select(*_COLUMNS).where(source.where, mine), before)
            asked = asked.where(*self._conditions(horizon_ms)).limit(batch)
            read = [dict(row) for row in self._connection.execute(asked).mappings()]
            rows = with_codes(self._connection, self._partner_id, read)
            for row in rows:
                if not self._needle or (not row["holds_code"] and self._says_it(row)):
                    yield row
            if len(rows) < batch:
                return
            before, batch = Place(rows[-1]["accepted_on_ms"], rows[-1]["id"]), _BATCH

    def _with_horizon(self, where: ColumnElement[bool], of_index: ColumnElement[bool], look_at: int) -> _Source:
        """A source whose index is followed so far."""
        before = self._page.before
        return _Source(where, _ORDER.horizon_ms(self._connection, [of_index], before, look_at))

    def _conditions(self, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        wanted = self._wanted
        equal = (
            (messages.c.state, wanted.state),
            (messages.c.template_id, wanted.template_id),
            (messages.c.code, wanted.code),
        )
        conditions: list[ColumnElement[bool]] = [column == value for column, value in equal if value is not None]
        if wanted.kinds:
            conditions.append(messages.c.kind.in_(wanted.kinds))
        conditions += _ORDER.since(wanted.from_ms, horizon_ms)
        if wanted.text and _is_told_apart(wanted.text):
            conditions.append(self._may_say(wanted.text))
        return conditions

    def _of_number(self) -> list[ColumnElement[bool]]:
        number = self._wanted.number
        return [] if number is None else [messages.c.destination.contains(number)]

    def _ids_named(self, name: str) -> list[str]:
        """Our ids of the messages that somebody calls so."""
        theirs = select(messages.c.id).where(messages.c.operator_message_id == name, self._of_app)
        ids = list(self._connection.execute(theirs.limit(2)).scalars())
        return [*ids, name.lower()] if is_uuid(name.lower()) else ids

    def _recipients(self) -> list[int]:
        """Whom a number or a name leads to; none where it leads to too many, or it cannot be told."""
        wanted, of_app = self._wanted, recipients.c.app_id == self._app_id
        if wanted.name is not None:
            named = select(recipients.c.id).where(of_app, recipients.c.user_id == wanted.name)
            return list(self._connection.execute(named.limit(1)).scalars())
        if wanted.number is None:
            return []
        numbers = (
            select(recipients.c.id, recipients.c.phone_number)
            .where(of_app, recipients.c.phone_number.is_not(None))
            .limit(MOST_NUMBERS)
            .subquery()
        )
        exact = select(recipients.c.id).where(of_app, recipients.c.phone_number == wanted.number)
        part = select(numbers.c.id).where(numbers.c.phone_number.contains(wanted.number))
        how_many = self._connection.execute(select(func.count()).select_from(numbers)).scalar_one()
        asked = part if how_many < MOST_NUMBERS else exact
        found = list(self._connection.execute(asked.limit(MOST_RECIPIENTS + 1)).scalars())
        return found if len(found) <= MOST_RECIPIENTS else []

    def _waiting_ids(self) -> list[str]:
        """Messages to the number of which nothing has become yet: no recipient leads to them, but the journal does."""
        number = self._wanted.number
        if number is None:
            return []
        oldest = (
            select(queue_jobs.c.ref, queue_jobs.c.ordering_key)
            .where(queue_jobs.c.queue == int(QueueName.OUTBOUND), queue_jobs.c.concurrency_group == self._source)
            .order_by(queue_jobs.c.position)
            .limit(LOOKED_AT)
            .subquery()
        )
        waits = select(oldest.c.ref).where(oldest.c.ordering_key.contains(number)).limit(MOST)
        doubted = (
            select(queue_jobs.c.ref)
            .where(queue_jobs.c.queue == int(QueueName.UNCONFIRMED), queue_jobs.c.concurrency_group == self._source)
            .limit(MOST)
        )
        jobs = [read_subject(QueueName.OUTBOUND, ref) for ref in self._connection.execute(waits).scalars()]
        ids = [one.id for one in jobs if one.kind is SubjectKind.MESSAGE]
        return [*ids, *self._connection.execute(doubted).scalars()]

    def _may_say(self, text: str) -> ColumnElement[bool]:
        """Holds for whatever says it, and for little else: the engine's part of the look."""
        pattern = f"%{_escaped(_plain_part(text))}%"
        if self._connection.dialect.name == POSTGRESQL:
            return func.convert_from(messages.c.content, "UTF8", type_=Text()).ilike(pattern, "\\")
        return cast(messages.c.content, Text).like(pattern, "\\")  # it minds no capitals there

    def _says_it(self, row: dict[str, Any]) -> bool:
        return any(self._needle in one.casefold() for one in words_of(row["content"]))


def _is_told_apart(text: str) -> bool:
    """Whether an engine can find it: both compare capitals in ASCII only as people do."""
    return bool(_plain_part(text))


def _plain_part(text: str) -> str:
    """The longest part that stands in JSON as it is, whatever capitals it has.

    Without a letter of ASCII: all of it, where its script knows no capitals.
    """
    parts = "".join(one if one.isascii() and one.isalnum() else "\0" for one in text).split("\0")
    longest = max(parts, key=len)
    if longest:
        return longest
    has_no_capitals = text.lower() == text.upper() == text.casefold()
    return msgspec.json.encode(text).decode()[1:-1] if has_no_capitals and text.strip() else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


_COLUMNS: Final = (*SHOWN, messages.c.content)
