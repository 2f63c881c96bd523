"""Search of an app's messages, newest first: all filters can be combined, at a bounded cost.

States, errors, templates and texts have no index, because an index that is written at a random place for
each message halves the rate at five million stored (decision 0049). So rare matches are searched for along
the existing indexes, over a limited number of messages per request; the response says how far back the
search went, and the next request continues there. A number leads to its recipients, and they to their
messages, whatever else is stored.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, LargeBinary, Text, and_, cast, func, or_, select, true
from sqlalchemy.sql.operators import in_op

from waypost.base.ids import is_uuid
from waypost.store.encoding import content_texts, has_part
from waypost.store.messages.lists import (
    FIRST_PAGE,
    LIST_COLUMNS,
    MAX_PAGE_ROWS,
    MAX_SCANNED_ROWS,
    MESSAGE_ORDER,
    SearchPage,
    SearchResults,
    merge_page,
)
from waypost.store.messages.messages import add_code_flags
from waypost.store.messages.recipients import recipient_names
from waypost.store.queue.job_subjects import QueueName, SubjectKind
from waypost.store.queue.jobs import read_subject
from waypost.store.schema import POSTGRESQL
from waypost.store.sql import equals_any, filter_conditions, is_of_app, read_dicts
from waypost.store.tables import apps, messages, queue_jobs, recipients

MAX_SCANNED_TEXTS: Final = 2_500  # maximum messages scanned per request if each has to be decoded to compare its text
MAX_SCANNED_FOR_NAME_AND_TEXT: Final = 10_000
"""Maximum messages scanned per request if both the recipient and the content of each are compared."""
MAX_SEARCHED_RECIPIENTS: Final = 20
"""With more recipients it is faster to scan the app's messages than those of each recipient."""
MAX_SEARCHED_NUMBERS: Final = 100_000  # of an app, among which part of a number is searched for
MIN_NUMBER_DIGITS: Final = 4
_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Filter of messages; None matches all."""

    number: str | None = None  # digits, at least `MIN_NUMBER_DIGITS` consecutive ones of the destination
    name: str | None = None  # a whole id: ours, the operator's, or the recipient's business-scoped one
    person: str | None = None  # part of the recipient's name, in any case. Only recipients who wrote have one
    state: str | None = None
    template_id: str | None = None
    code: int | None = None
    kinds: tuple[str, ...] = ()
    text: str | None = None  # part of a text of the message, in any case
    whole_words: bool = False  # the text is found as whole words only; the reader may not see the texts
    from_ms: int | None = None  # accepted then or later
    until_ms: int | None = None  # accepted before then

    @property
    def is_all(self) -> bool:
        """True if every message of the time range matches."""
        return self == MessageFilter(from_ms=self.from_ms, until_ms=self.until_ms)


@dataclass(frozen=True, slots=True)
class _Source:
    """Messages that an index leads to, in its order."""

    where: ColumnElement[bool]  # the condition that the index serves
    horizon_ms: int | None = None  # nothing older is scanned, because of the limit; None: everything is


def search_messages(
    connection: Connection, partner_id: int, app_id: str, query: MessageFilter, page: SearchPage = FIRST_PAGE
) -> SearchResults:
    """Return one page of matching messages of an app, newest first, each with its `content` and `holds_code`.

    A message with a one-time code is not found by its text: that would reveal the code.

    Args:
        partner_id: owner of the app; for another partner the page is empty.
    """
    source = connection.execute(
        select(apps.c.phone_number).where(apps.c.id == app_id, apps.c.partner_id == partner_id)
    ).one_or_none()
    if source is None:
        return SearchResults([])
    page = page.limit_to(query.until_ms)
    if query.text and not _searchable_parts(query.text):
        page = replace(page, scan_limit=min(page.scan_limit, MAX_SCANNED_TEXTS))
    if query.person and query.text:
        page = replace(page, scan_limit=min(page.scan_limit, MAX_SCANNED_FOR_NAME_AND_TEXT))
    search = _MessageSearch(connection, partner_id, app_id, source.phone_number or "", query, page)
    sources = search.sources()
    horizons = [index_source.horizon_ms for index_source in sources if index_source.horizon_ms is not None]
    horizon_ms = max(horizons, default=None)
    matches = (search.matches(index_source, horizon_ms) for index_source in sources)
    return merge_page(matches, MESSAGE_ORDER.position, page, from_ms=query.from_ms, horizon_ms=horizon_ms)


def current_messages(connection: Connection, partner_id: int, app_id: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the current rows of messages that a list has shown, unordered."""
    query = select(*_SEARCH_COLUMNS).where(equals_any(messages.c.id, "ids"), is_of_app(messages, partner_id, app_id))
    return add_code_flags(connection, partner_id, read_dicts(connection, query, ids=ids))


@dataclass(frozen=True, slots=True)
class _MessageSearch:
    connection: Connection
    partner_id: int
    app_id: str
    source: str
    query: MessageFilter
    page: SearchPage

    @property
    def app_condition(self) -> ColumnElement[bool]:
        return messages.c.app_id == self.app_id

    def sources(self) -> list[_Source]:
        """Return the sources to be scanned, each with its horizon."""
        query = self.query
        if query.name:
            by_operator_id = select(messages.c.id).where(
                messages.c.operator_message_id == query.name, self.app_condition
            )
            ids = list(self.connection.execute(by_operator_id.limit(2)).scalars())
            if is_uuid(query.name.lower()):
                ids.append(query.name.lower())
            if ids:
                return [_Source(and_(self.app_condition, messages.c.id.in_(ids)))]
        recipient_ids = self._recipients()
        if query.name and not recipient_ids:
            return []
        if not recipient_ids:
            if query.is_all:
                return [_Source(self.app_condition)]
            where = and_(self.app_condition, *self._number_conditions(), *self._person_conditions())
            source = self._bounded_source(where, self.app_condition, self.page.scan_limit)
            return [source, *self._queued_sources()] if query.person else [source]
        scan_limit = self.page.scan_limit // len(recipient_ids)
        sources = [
            self._bounded_source(by_recipient, by_recipient, scan_limit)
            for by_recipient in (messages.c.recipient_id == recipient_id for recipient_id in recipient_ids)
        ]
        return [*sources, *self._queued_sources()]

    def matches(self, source: _Source, horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield the matching messages of a source, newest first, read as far as the caller iterates."""
        own = (source.where, messages.c.partner_id == self.partner_id)
        statement = select(*_SEARCH_COLUMNS).where(*own, *self._conditions(horizon_ms))
        return MESSAGE_ORDER.scan(self.connection, statement, self.page, _BATCH, self._match)

    def _match(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        query = self.query
        rows = add_code_flags(self.connection, self.partner_id, rows)
        if query.person:
            names = recipient_names(self.connection, self.app_id, {row["destination"] for row in rows})
            part = query.person.casefold()
            rows = [row for row in rows if part in names.get(row["destination"], "").casefold()]
        return [row for row in rows if has_visible_text(row, query.text, whole_words=query.whole_words)]

    def _bounded_source(
        self, where: ColumnElement[bool], index_condition: ColumnElement[bool], scan_limit: int
    ) -> _Source:
        before = self.page.before
        return _Source(where, MESSAGE_ORDER.find_horizon_ms(self.connection, [index_condition], before, scan_limit))

    def _conditions(self, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        query = self.query
        conditions = [
            *filter_conditions(
                (eq, messages.c.state, query.state),
                (eq, messages.c.template_id, query.template_id),
                (eq, messages.c.code, query.code),
                (in_op, messages.c.kind, query.kinds or None),
            ),
            *MESSAGE_ORDER.time_conditions(query.from_ms, horizon_ms),
        ]
        if query.text:
            conditions.append(text_condition(self.connection, messages.c.content, _searchable_parts(query.text)))
        return conditions

    def _number_conditions(self) -> list[ColumnElement[bool]]:
        number = self.query.number
        return [] if number is None else [messages.c.destination.contains(number)]

    def _person_conditions(self, *, is_queued: bool = False) -> list[ColumnElement[bool]]:
        if self.query.person is None:
            return []
        has_name = text_condition(self.connection, recipients.c.name, ascii_parts(self.query.person))
        may_match = or_(has_name, recipients.c.same_as.is_not(None))  # of those, another row has the name
        of_message = recipients.c.id == messages.c.recipient_id
        if is_queued:  # then its recipient is not stored yet
            of_message = and_(recipients.c.app_id == self.app_id, recipients.c.phone_number == messages.c.destination)
        return [select(recipients.c.id).where(of_message, may_match).correlate(messages).exists()]

    def _recipients(self) -> list[int]:
        """Return the recipients of a number or a name; empty if there are too many, or neither is given."""
        query, of_app = self.query, recipients.c.app_id == self.app_id
        person = func.coalesce(recipients.c.same_as, recipients.c.id)  # a former id or another number leads to it too
        if query.name is not None:
            by_user_id = select(person).where(of_app, recipients.c.user_id == query.name)
            return list(self.connection.execute(by_user_id.limit(1)).scalars())
        if query.number is None:
            return []
        numbers = numbers_of_app(self.app_id)
        exact = select(person).where(of_app, recipients.c.phone_number == query.number)
        partial = select(numbers.c.id).distinct().where(numbers.c.phone_number.contains(query.number))
        count = self.connection.execute(select(func.count()).select_from(numbers)).scalar_one()
        statement = partial if count < MAX_SEARCHED_NUMBERS else exact
        ids = list(self.connection.execute(statement.limit(MAX_SEARCHED_RECIPIENTS + 1)).scalars())
        return ids if len(ids) <= MAX_SEARCHED_RECIPIENTS else []

    def _queued_sources(self) -> list[_Source]:
        """Return the messages whose state has not changed yet: only the queue leads to them."""
        queued_ids = self._queued_ids()
        where = and_(
            self.app_condition,
            messages.c.id.in_(queued_ids),
            messages.c.recipient_id.is_(None),
            *self._number_conditions(),
            *self._person_conditions(is_queued=True),
        )
        return [_Source(where)] if queued_ids else []

    def _queued_ids(self) -> list[str]:
        unconfirmed = (
            select(queue_jobs.c.ref)
            .where(queue_jobs.c.queue == int(QueueName.UNCONFIRMED), queue_jobs.c.concurrency_group == self.source)
            .limit(MAX_PAGE_ROWS)
        )
        waiting = waiting_message_ids(self.connection, self.source, lambda key: key.contains(self.query.number or ""))
        return [*waiting, *self.connection.execute(unconfirmed).scalars()]


def numbers_of_app(app_id: str) -> Any:
    """Return a subquery with `phone_number` and the person's `id` of an app's recipients, of a limited number."""
    person = func.coalesce(recipients.c.same_as, recipients.c.id)  # a former id or another number leads to it too
    query = select(person.label("id"), recipients.c.phone_number)
    of_app = query.where(recipients.c.app_id == app_id, recipients.c.phone_number.is_not(None))
    return of_app.limit(MAX_SEARCHED_NUMBERS).subquery()


def waiting_message_ids(
    connection: Connection, source: str, fits: Callable[[ColumnElement[Any]], ColumnElement[bool]]
) -> list[str]:
    """Return the messages of a number that wait in the queue, of the oldest: only the queue leads to them.

    Args:
        fits: returns the condition of an ordering key, which has the destination.
    """
    oldest = (
        select(queue_jobs.c.ref, queue_jobs.c.ordering_key)
        .where(queue_jobs.c.queue == int(QueueName.OUTBOUND), queue_jobs.c.concurrency_group == source)
        .order_by(queue_jobs.c.position)
        .limit(MAX_SCANNED_ROWS)
        .subquery()
    )
    fitting = select(oldest.c.ref).where(fits(oldest.c.ordering_key)).limit(MAX_PAGE_ROWS)
    jobs = [read_subject(QueueName.OUTBOUND, ref) for ref in connection.execute(fitting).scalars()]
    return [job.id for job in jobs if job.kind is SubjectKind.MESSAGE]


def text_condition(connection: Connection, column: ColumnElement[Any], parts: Sequence[str]) -> ColumnElement[bool]:
    """Return the engine's part of the search for a text: true for every match, in any case of ASCII letters.

    Args:
        column: bytes of JSON, or a text.
        parts: of the text, in order, as they are stored; without any the condition is true.
    """
    if not parts:
        return true()
    escaped = [part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") for part in parts]
    pattern = f"%{'%'.join(escaped)}%"
    if connection.dialect.name == POSTGRESQL:
        is_bytes = isinstance(column.type, LargeBinary)
        decoded: ColumnElement[Any] = func.convert_from(column, "UTF8", type_=Text()) if is_bytes else column
        return decoded.ilike(pattern, "\\")
    return cast(column, Text).like(pattern, "\\")  # LIKE ignores case there


def has_visible_text(row: Mapping[str, Any], text: str | None, *, whole_words: bool) -> bool:
    """Return True if a message has a text, in any case, and no one-time code: that would be revealed.

    Args:
        row: with `content` and `holds_code`.
        text: every message matches if it is empty.
    """
    if not text:
        return True
    texts = [] if row["holds_code"] else content_texts(row["content"])
    return any(has_part(one, text, whole_words=whole_words) for one in texts)


def ascii_parts(text: str) -> list[str]:
    """Return the parts of a text that every writer of JSON stores unchanged, whatever their case, in order."""
    return re.findall(r"[A-Za-z0-9]+", text)


def _searchable_parts(text: str) -> list[str]:
    """Return the parts of a text that our JSON has unchanged, whatever their case: engines ignore case in ASCII only.

    Without an ASCII letter or digit: its letters, else what stands between its spaces, if its script has no upper and
    lower case.
    """
    is_caseless = text.lower() == text.upper() == text.casefold()
    others = re.findall(r"\w+", text) or [msgspec.json.encode(part).decode()[1:-1] for part in text.split()]
    return ascii_parts(text) or (others if is_caseless else [])


_SEARCH_COLUMNS: Final = (*LIST_COLUMNS, messages.c.content)
