"""Search of an app's messages, newest first: all filters can be combined, at a bounded cost.

States, errors, templates and texts have no index, because an index that is written at a random place for
each message halves the rate at five million stored (decision 0049). So rare matches are searched for along
the existing indexes, over a limited number of messages per request; the response says how far back the
search went, and the next request continues there. A number leads to its recipients, and they to their
messages, whatever else is stored.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, LargeBinary, Text, and_, cast, func, or_, select, true

from waypost.base.ids import is_uuid
from waypost.store.encoding import content_texts, has_part
from waypost.store.messages.lists import (
    FIRST_PAGE,
    LIST_COLUMNS,
    MAX_PAGE_ROWS,
    MAX_SCANNED_ROWS,
    MessageCursor,
    SearchPage,
    SearchResults,
    TimeOrder,
)
from waypost.store.messages.messages import add_code_flags
from waypost.store.messages.recipients import recipient_names
from waypost.store.queue.job_subjects import QueueName, SubjectKind
from waypost.store.queue.jobs import read_subject
from waypost.store.schema import POSTGRESQL
from waypost.store.sql import equals_any
from waypost.store.tables import apps, messages, queue_jobs, recipients

MAX_SCANNED_TEXTS: Final = 2_500  # maximum messages scanned per request if each has to be decoded to compare its text
MAX_SCANNED_FOR_NAME_AND_TEXT: Final = 10_000
"""Maximum messages scanned per request if both the recipient and the content of each are compared."""
MAX_SEARCHED_RECIPIENTS: Final = 20
"""With more recipients it is faster to scan the app's messages than those of each recipient."""
MAX_SEARCHED_NUMBERS: Final = 100_000  # of an app, among which part of a number is searched for
MIN_NUMBER_DIGITS: Final = 4
_BATCH: Final = 500
MESSAGE_ORDER: Final = TimeOrder(messages.c.accepted_on_ms, messages.c.id)


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
        page: which page, and how many messages may be scanned for it.
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
    own = messages.c.partner_id == partner_id
    return MESSAGE_ORDER.merge_page(
        (search.matches(index_source, own, horizon_ms) for index_source in sources),
        page,
        from_ms=query.from_ms,
        horizon_ms=horizon_ms,
    )


def current_messages(connection: Connection, partner_id: int, app_id: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the current rows of messages that a list has shown, unordered."""
    query = select(*_SEARCH_COLUMNS).where(
        equals_any(messages.c.id, "ids"), messages.c.partner_id == partner_id, messages.c.app_id == app_id
    )
    rows = [dict(row) for row in connection.execute(query, {"ids": ids}).mappings()]
    return add_code_flags(connection, partner_id, rows)


class _MessageSearch:
    def __init__(
        self, connection: Connection, partner_id: int, app_id: str, source: str, query: MessageFilter, page: SearchPage
    ) -> None:
        self._connection = connection
        self._partner_id = partner_id
        self._app_id = app_id
        self._source = source
        self._query = query
        self._page = page
        self._app_condition = messages.c.app_id == app_id

    def sources(self) -> list[_Source]:
        """Return the sources to be scanned, each with its horizon."""
        query = self._query
        ids = self._find_ids(query.name) if query.name else []
        if ids:
            return [_Source(and_(self._app_condition, messages.c.id.in_(ids)))]
        recipient_ids = self._recipients()
        if query.name and not recipient_ids:
            return []
        if not recipient_ids:
            if query.is_all:
                return [_Source(self._app_condition)]
            where = and_(self._app_condition, *self._number_conditions(), *self._person_conditions())
            source = self._bounded_source(where, self._app_condition, self._page.scan_limit)
            return [source, *self._queued_sources()] if query.person else [source]
        scan_limit = self._page.scan_limit // len(recipient_ids)
        sources = [
            self._bounded_source(by_recipient, by_recipient, scan_limit)
            for by_recipient in (messages.c.recipient_id == recipient_id for recipient_id in recipient_ids)
        ]
        return [*sources, *self._queued_sources()]

    def matches(self, source: _Source, own: ColumnElement[bool], horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield the matching messages of a source, newest first, read as far as the caller iterates."""
        query, before, batch = self._query, self._page.before, self._page.at_most + 1
        while True:
            statement = MESSAGE_ORDER.sort_newest_first(select(*_SEARCH_COLUMNS).where(source.where, own), before)
            statement = statement.where(*self._conditions(horizon_ms)).limit(batch)
            decoded = [dict(row) for row in self._connection.execute(statement).mappings()]
            rows = add_code_flags(self._connection, self._partner_id, decoded)
            for row in self._rows_with_name(rows) if query.person else rows:
                if not query.text or (
                    not row["holds_code"] and contains_text(row["content"], query.text, whole_words=query.whole_words)
                ):
                    yield row
            if len(rows) < batch:
                return
            before, batch = MessageCursor(rows[-1]["accepted_on_ms"], rows[-1]["id"]), _BATCH

    def _bounded_source(
        self, where: ColumnElement[bool], index_condition: ColumnElement[bool], scan_limit: int
    ) -> _Source:
        """Return a source whose index is followed up to the limit."""
        before = self._page.before
        return _Source(where, MESSAGE_ORDER.find_horizon_ms(self._connection, [index_condition], before, scan_limit))

    def _conditions(self, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        query = self._query
        equal = (
            (messages.c.state, query.state),
            (messages.c.template_id, query.template_id),
            (messages.c.code, query.code),
        )
        conditions: list[ColumnElement[bool]] = [column == value for column, value in equal if value is not None]
        if query.kinds:
            conditions.append(messages.c.kind.in_(query.kinds))
        conditions += MESSAGE_ORDER.time_conditions(query.from_ms, horizon_ms)
        if query.text:
            conditions.append(text_condition(self._connection, messages.c.content, _searchable_parts(query.text)))
        return conditions

    def _number_conditions(self) -> list[ColumnElement[bool]]:
        number = self._query.number
        return [] if number is None else [messages.c.destination.contains(number)]

    def _person_conditions(self, *, is_queued: bool = False) -> list[ColumnElement[bool]]:
        """Return the engine's part of the search for a name."""
        if self._query.person is None:
            return []
        has_name = text_condition(self._connection, recipients.c.name, ascii_parts(self._query.person))
        may_match = or_(has_name, recipients.c.same_as.is_not(None))  # of those, another row has the name
        of_message = recipients.c.id == messages.c.recipient_id
        if is_queued:  # then its recipient is not stored yet
            of_message = and_(recipients.c.app_id == self._app_id, recipients.c.phone_number == messages.c.destination)
        return [select(recipients.c.id).where(of_message, may_match).correlate(messages).exists()]

    def _rows_with_name(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages whose recipient has the name, in any case."""
        names = recipient_names(self._connection, self._app_id, {row["destination"] for row in rows})
        part = (self._query.person or "").casefold()
        return [row for row in rows if part in names.get(row["destination"], "").casefold()]

    def _find_ids(self, name: str) -> list[str]:
        """Return our ids of the messages that an id of any kind refers to."""
        by_operator_id = select(messages.c.id).where(messages.c.operator_message_id == name, self._app_condition)
        ids = list(self._connection.execute(by_operator_id.limit(2)).scalars())
        return [*ids, name.lower()] if is_uuid(name.lower()) else ids

    def _recipients(self) -> list[int]:
        """Return the recipients of a number or a name; empty if there are too many, or neither is given."""
        query, of_app = self._query, recipients.c.app_id == self._app_id
        person = func.coalesce(recipients.c.same_as, recipients.c.id)  # a former id or another number leads to it too
        if query.name is not None:
            by_user_id = select(person).where(of_app, recipients.c.user_id == query.name)
            return list(self._connection.execute(by_user_id.limit(1)).scalars())
        if query.number is None:
            return []
        numbers = (
            select(person.label("id"), recipients.c.phone_number)
            .where(of_app, recipients.c.phone_number.is_not(None))
            .limit(MAX_SEARCHED_NUMBERS)
            .subquery()
        )
        exact = select(person).where(of_app, recipients.c.phone_number == query.number)
        partial = select(numbers.c.id).distinct().where(numbers.c.phone_number.contains(query.number))
        count = self._connection.execute(select(func.count()).select_from(numbers)).scalar_one()
        statement = partial if count < MAX_SEARCHED_NUMBERS else exact
        ids = list(self._connection.execute(statement.limit(MAX_SEARCHED_RECIPIENTS + 1)).scalars())
        return ids if len(ids) <= MAX_SEARCHED_RECIPIENTS else []

    def _queued_sources(self) -> list[_Source]:
        """Return the messages whose state has not changed yet: only the queue leads to them."""
        queued_ids = self._queued_ids()
        where = and_(
            self._app_condition,
            messages.c.id.in_(queued_ids),
            messages.c.recipient_id.is_(None),
            *self._number_conditions(),
            *self._person_conditions(is_queued=True),
        )
        return [_Source(where)] if queued_ids else []

    def _queued_ids(self) -> list[str]:
        number = self._query.number or ""
        oldest = (
            select(queue_jobs.c.ref, queue_jobs.c.ordering_key)
            .where(queue_jobs.c.queue == int(QueueName.OUTBOUND), queue_jobs.c.concurrency_group == self._source)
            .order_by(queue_jobs.c.position)
            .limit(MAX_SCANNED_ROWS)
            .subquery()
        )
        queued = select(oldest.c.ref).where(oldest.c.ordering_key.contains(number)).limit(MAX_PAGE_ROWS)
        unconfirmed = (
            select(queue_jobs.c.ref)
            .where(queue_jobs.c.queue == int(QueueName.UNCONFIRMED), queue_jobs.c.concurrency_group == self._source)
            .limit(MAX_PAGE_ROWS)
        )
        jobs = [read_subject(QueueName.OUTBOUND, ref) for ref in self._connection.execute(queued).scalars()]
        ids = [job.id for job in jobs if job.kind is SubjectKind.MESSAGE]
        return [*ids, *self._connection.execute(unconfirmed).scalars()]


def text_condition(connection: Connection, column: ColumnElement[Any], parts: Sequence[str]) -> ColumnElement[bool]:
    """Return the engine's part of the search for a text: true for every match, in any case of ASCII letters.

    Args:
        column: bytes of JSON, or a text.
        parts: of the text, in order, as they are stored; without any the condition is true.
    """
    if not parts:
        return true()
    pattern = f"%{'%'.join(escape_like(part) for part in parts)}%"
    if connection.dialect.name == POSTGRESQL:
        is_bytes = isinstance(column.type, LargeBinary)
        decoded: ColumnElement[Any] = func.convert_from(column, "UTF8", type_=Text()) if is_bytes else column
        return decoded.ilike(pattern, "\\")
    return cast(column, Text).like(pattern, "\\")  # LIKE ignores case there


def contains_text(content: bytes, text: str, *, whole_words: bool) -> bool:
    """Return True if a text of a stored content has this part, in any case."""
    return any(has_part(one, text, whole_words=whole_words) for one in content_texts(content))


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


def escape_like(text: str) -> str:
    r"""Return a text for a pattern of LIKE with `\` as its escape character."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


_SEARCH_COLUMNS: Final = (*LIST_COLUMNS, messages.c.content)
