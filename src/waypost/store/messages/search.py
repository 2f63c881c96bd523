"""Search of an app's messages, newest first: all filters can be combined, at a bounded cost.

States, errors, templates and texts have no index, because an index that is written at a random place for
each message halves the rate at five million stored (decision 0049). So rare matches are searched for along
the existing indexes, over a limited number of messages per request; the response says how far back the
search went, and the next request continues there. A number leads to its recipients, and they to their
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
"""Maximum messages scanned per request if each has to be decoded to compare its text."""
MOST_RECIPIENTS: Final = 20
"""With more recipients it is faster to scan the app's messages than those of each recipient."""
MOST_NUMBERS: Final = 100_000
"""Of an app, among which part of a number is searched for."""
LEAST_DIGITS: Final = 4
_BATCH: Final = 500
_ORDER: Final = ByTime(messages.c.accepted_on_ms, messages.c.id)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filter of messages; None matches all.

    Attributes:
        number: digits, at least `MIN_NUMBER_DIGITS` consecutive ones of the destination.
        name: a whole id: ours, the operator's, or the recipient's business-scoped one.
        text: part of a text of the message, in any case; needs `from_ms`.
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
        """True if every message of the time range matches."""
        return self == Wanted(from_ms=self.from_ms, until_ms=self.until_ms)


@dataclass(frozen=True, slots=True)
class _Source:
    """Messages that an index leads to, in its order.

    Attributes:
        where: the condition that the index serves.
        horizon_ms: nothing older is scanned, because of the limit; None: everything is.
    """

    where: ColumnElement[bool]
    horizon_ms: int | None = None


def search_messages(connection: Connection, partner_id: int, app_id: str, wanted: Wanted, page: Page = FIRST) -> Found:
    """Return one page of matching messages of an app, newest first, each with its `content` and `holds_code`.

    A message with a one-time code is not found by its text: that would reveal the code.

    Args:
        connection: any.
        partner_id: owner of the app; for another partner the page is empty.
        app_id: the app.
        query: the filter.
        page: which page, and how many messages may be scanned for it.
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
    horizons = [index_source.horizon_ms for index_source in sources if index_source.horizon_ms is not None]
    horizon_ms = max(horizons, default=None)
    own = messages.c.partner_id == partner_id
    return _ORDER.found(
        (search.matches(index_source, own, horizon_ms) for index_source in sources),
        page,
        from_ms=wanted.from_ms,
        horizon_ms=horizon_ms,
    )


def messages_again(connection: Connection, partner_id: int, app_id: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the current rows of messages that a list has shown, unordered."""
    query = select(*_COLUMNS).where(
        one_of(messages.c.id, "ids"), messages.c.partner_id == partner_id, messages.c.app_id == app_id
    )
    rows = [dict(row) for row in connection.execute(query, {"ids": ids}).mappings()]
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
        """Return the sources to be scanned, each with its horizon."""
        query = self._wanted
        ids = self._ids_named(query.name) if query.name else []
        if ids:
            return [_Source(and_(self._of_app, messages.c.id.in_(ids)))]
        recipient_ids = self._recipients()
        if query.name and not recipient_ids:
            return []
        if not recipient_ids:
            if query.is_all:
                return [_Source(self._of_app)]
            where = and_(self._of_app, *self._of_number())
            return [self._with_horizon(where, self._of_app, self._page.look_at)]
        scan_limit = self._page.look_at // len(recipient_ids)
        sources = [
            self._with_horizon(by_recipient, by_recipient, scan_limit)
            for by_recipient in (messages.c.recipient_id == recipient_id for recipient_id in recipient_ids)
        ]
        queued_ids = self._waiting_ids()
        if queued_ids:
            where = and_(
                self._of_app, messages.c.id.in_(queued_ids), messages.c.recipient_id.is_(None), *self._of_number()
            )
            sources.append(_Source(where))
        return sources

    def matches(self, source: _Source, mine: ColumnElement[bool], horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield the matching messages of a source, newest first, read as far as the caller iterates."""
        before, batch = self._page.before, self._page.at_most + 1
        while True:
            statement = _ORDER.newest(select(*_COLUMNS).where(source.where, mine), before)
            statement = statement.where(*self._conditions(horizon_ms)).limit(batch)
            decoded = [dict(row) for row in self._connection.execute(statement).mappings()]
            rows = with_codes(self._connection, self._partner_id, decoded)
            for row in rows:
                if not self._needle or (not row["holds_code"] and self._says_it(row)):
                    yield row
            if len(rows) < batch:
                return
            before, batch = Place(rows[-1]["accepted_on_ms"], rows[-1]["id"]), _BATCH

    def _with_horizon(self, where: ColumnElement[bool], of_index: ColumnElement[bool], look_at: int) -> _Source:
        """Return a source whose index is followed up to the limit."""
        before = self._page.before
        return _Source(where, _ORDER.horizon_ms(self._connection, [of_index], before, look_at))

    def _conditions(self, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        query = self._wanted
        equal = (
            (messages.c.state, query.state),
            (messages.c.template_id, query.template_id),
            (messages.c.code, query.code),
        )
        conditions: list[ColumnElement[bool]] = [column == value for column, value in equal if value is not None]
        if query.kinds:
            conditions.append(messages.c.kind.in_(query.kinds))
        conditions += _ORDER.since(query.from_ms, horizon_ms)
        if query.text and _is_told_apart(query.text):
            conditions.append(self._may_say(query.text))
        return conditions

    def _of_number(self) -> list[ColumnElement[bool]]:
        number = self._wanted.number
        return [] if number is None else [messages.c.destination.contains(number)]

    def _ids_named(self, name: str) -> list[str]:
        """Return our ids of the messages that an id of any kind refers to."""
        by_operator_id = select(messages.c.id).where(messages.c.operator_message_id == name, self._of_app)
        ids = list(self._connection.execute(by_operator_id.limit(2)).scalars())
        return [*ids, name.lower()] if is_uuid(name.lower()) else ids

    def _recipients(self) -> list[int]:
        """Return the recipients of a number or a name; empty if there are too many, or neither is given."""
        query, of_app = self._wanted, recipients.c.app_id == self._app_id
        if query.name is not None:
            by_user_id = select(recipients.c.id).where(of_app, recipients.c.user_id == query.name)
            return list(self._connection.execute(by_user_id.limit(1)).scalars())
        if query.number is None:
            return []
        numbers = (
            select(recipients.c.id, recipients.c.phone_number)
            .where(of_app, recipients.c.phone_number.is_not(None))
            .limit(MOST_NUMBERS)
            .subquery()
        )
        exact = select(recipients.c.id).where(of_app, recipients.c.phone_number == query.number)
        partial = select(numbers.c.id).where(numbers.c.phone_number.contains(query.number))
        count = self._connection.execute(select(func.count()).select_from(numbers)).scalar_one()
        statement = partial if count < MOST_NUMBERS else exact
        ids = list(self._connection.execute(statement.limit(MOST_RECIPIENTS + 1)).scalars())
        return ids if len(ids) <= MOST_RECIPIENTS else []

    def _waiting_ids(self) -> list[str]:
        """Return messages to the number whose state has not changed yet: only the queue leads to them."""
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
        queued = select(oldest.c.ref).where(oldest.c.ordering_key.contains(number)).limit(MOST)
        unconfirmed = (
            select(queue_jobs.c.ref)
            .where(queue_jobs.c.queue == int(QueueName.UNCONFIRMED), queue_jobs.c.concurrency_group == self._source)
            .limit(MOST)
        )
        jobs = [read_subject(QueueName.OUTBOUND, ref) for ref in self._connection.execute(queued).scalars()]
        ids = [job.id for job in jobs if job.kind is SubjectKind.MESSAGE]
        return [*ids, *self._connection.execute(unconfirmed).scalars()]

    def _may_say(self, text: str) -> ColumnElement[bool]:
        """Return a condition that every match satisfies and little else: the engine's part of the comparison."""
        pattern = f"%{_escaped(_plain_part(text))}%"
        if self._connection.dialect.name == POSTGRESQL:
            return func.convert_from(messages.c.content, "UTF8", type_=Text()).ilike(pattern, "\\")
        return cast(messages.c.content, Text).like(pattern, "\\")  # LIKE ignores case there

    def _says_it(self, row: dict[str, Any]) -> bool:
        return any(self._needle in text.casefold() for text in words_of(row["content"]))


def _is_told_apart(text: str) -> bool:
    """Return True if an engine can search for it: both ignore case in ASCII only."""
    return bool(_plain_part(text))


def _plain_part(text: str) -> str:
    """Return the longest part that is stored in JSON unchanged, whatever its case.

    Without an ASCII letter: the whole text, if its script has no upper and lower case.
    """
    parts = "".join(char if char.isascii() and char.isalnum() else "\0" for char in text).split("\0")
    longest = max(parts, key=len)
    if longest:
        return longest
    is_caseless = text.lower() == text.upper() == text.casefold()
    return msgspec.json.encode(text).decode()[1:-1] if is_caseless and text.strip() else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


_COLUMNS: Final = (*SHOWN, messages.c.content)
