"""Searches an app's messages, newest first: every filter with every other, at a bounded cost.

No index leads to a state, an error, a template or a word, because an index that is written at a random
place for each message halves the rate at five million stored (decision 0049). So what is rare is looked
for along the indexes that there are, over at most so many messages for each request; whoever asks is told
how far back it was looked, and asks again from there. A number leads to its recipients, and they to their
messages, whatever else is stored.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    and_,
    cast,
    func,
    select,
    tuple_,
)

from waypost.base.ids import is_uuid
from waypost.store.journal import Lane
from waypost.store.message_lists import MOST, SHOWN, Place
from waypost.store.message_words import words_of
from waypost.store.one_of import one_of
from waypost.store.schema import POSTGRESQL
from waypost.store.tables import apps, journal, messages, recipients

LOOKED_AT: Final = 20_000
"""Messages of an app that one request looks at for what is rare: some 50 ms on either engine."""
READ: Final = 2_500
"""The same where each has to be read to know its words."""
MOST_RECIPIENTS: Final = 20
"""More than that, and it is quicker to go through the app's messages than through each one's."""
MOST_NUMBERS: Final = 100_000
"""Of an app, among which a part of a number is looked for."""
LEAST_DIGITS: Final = 4
_BATCH: Final = 500


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
class Found:
    """One page of a search.

    Attributes:
        rows: newest first, each with its `content`.
        next: where the next page begins; None: everything has been looked at.
        back_to_ms: how far back it was looked, where that is why the page ended.
    """

    rows: list[dict[str, Any]]
    next: Place | None = None
    back_to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """Messages that an index leads to, in its order.

    Attributes:
        where: what the index serves.
        horizon_ms: nothing older is looked at, because of the bound; None: all of it is.
    """

    where: ColumnElement[bool]
    horizon_ms: int | None = None


def search_messages(
    connection: Connection,
    partner_id: int,
    app_id: str,
    wanted: Wanted,
    *,
    before: Place | None = None,
    at_most: int = 50,
    look_at: int = LOOKED_AT,
) -> Found:
    """One page of those of an app's messages that are wanted, newest first.

    Args:
        connection: any.
        partner_id: whose app it must be; another's has nothing.
        app_id: which.
        wanted: which of its messages.
        before: the page after the one that ended there.
        at_most: how many; never more than `MOST`.
        look_at: how many messages are looked at at most.
    """
    source = connection.execute(
        select(apps.c.phone_number).where(apps.c.id == app_id, apps.c.partner_id == partner_id)
    ).one_or_none()
    if source is None:
        return Found([])
    if wanted.until_ms is not None and (before is None or before.accepted_on_ms >= wanted.until_ms):
        before = Place(wanted.until_ms, "")
    search = _Search(connection, app_id, source.phone_number or "", wanted, before)
    if wanted.text and not _is_told_apart(wanted.text):
        look_at = min(look_at, READ)
    sources = search.sources(look_at)
    horizon_ms = max(
        (one.horizon_ms for one in sources if one.horizon_ms is not None), default=None
    )
    mine = messages.c.partner_id == partner_id
    found: list[dict[str, Any]] = []
    at_most = min(at_most, MOST)
    for row in heapq.merge(
        *(search.matches(one, mine, horizon_ms, at_most + 1) for one in sources),
        key=_place_of,
        reverse=True,
    ):
        found.append(row)
        if len(found) > at_most:
            last = found[at_most - 1]
            return Found(found[:at_most], Place(last["accepted_on_ms"], last["id"]))
    if horizon_ms is None or (wanted.from_ms is not None and horizon_ms <= wanted.from_ms):
        return Found(found)
    return Found(found, Place(horizon_ms, ""), horizon_ms)


def messages_again(
    connection: Connection, partner_id: int, app_id: str, ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Messages of an app as they stand now, in no order: of those that a list has shown."""
    found = select(*_COLUMNS).where(
        one_of(messages.c.id, "ids"),
        messages.c.partner_id == partner_id,
        messages.c.app_id == app_id,
    )
    return [dict(row) for row in connection.execute(found, {"ids": ids}).mappings()]


class _Search:
    def __init__(
        self,
        connection: Connection,
        app_id: str,
        source: str,
        wanted: Wanted,
        before: Place | None,
    ) -> None:
        self._connection = connection
        self._app_id = app_id
        self._source = source
        self._wanted = wanted
        self._before = before
        self._of_app = messages.c.app_id == app_id
        self._needle = (wanted.text or "").casefold()

    def sources(self, look_at: int) -> list[_Source]:
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
            return [self._with_horizon(where, self._of_app, look_at)]
        each = look_at // len(whose)
        sources = [
            self._with_horizon(of_one, of_one, each)
            for of_one in (messages.c.recipient_id == one for one in whose)
        ]
        waiting = self._waiting_ids()
        if waiting:
            where = and_(
                self._of_app,
                messages.c.id.in_(waiting),
                messages.c.recipient_id.is_(None),
                *self._of_number(),
            )
            sources.append(_Source(where))
        return sources

    def matches(
        self, source: _Source, mine: ColumnElement[bool], horizon_ms: int | None, first: int
    ) -> Iterator[dict[str, Any]]:
        """What is wanted of a source, newest first, read as far as it is asked for."""
        before, batch = self._before, first
        while True:
            asked = _newest(select(*_COLUMNS).where(source.where, mine), before)
            asked = asked.where(*self._conditions(horizon_ms)).limit(batch)
            rows = [dict(row) for row in self._connection.execute(asked).mappings()]
            for row in rows:
                if not self._needle or self._says_it(row):
                    yield row
            if len(rows) < batch:
                return
            before, batch = Place(rows[-1]["accepted_on_ms"], rows[-1]["id"]), _BATCH

    def _with_horizon(
        self, where: ColumnElement[bool], of_index: ColumnElement[bool], look_at: int
    ) -> _Source:
        """A source whose index is followed so far: to the time of the message after the last that is looked at."""
        asked = select(messages.c.accepted_on_ms).where(of_index)
        if self._before is not None:
            asked = asked.where(messages.c.accepted_on_ms <= self._before.accepted_on_ms)
        asked = asked.order_by(messages.c.accepted_on_ms.desc()).offset(look_at).limit(1)
        return _Source(where, self._connection.execute(asked).scalar_one_or_none())

    def _conditions(self, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        wanted = self._wanted
        equal = (
            (messages.c.state, wanted.state),
            (messages.c.template_id, wanted.template_id),
            (messages.c.code, wanted.code),
        )
        conditions: list[ColumnElement[bool]] = [
            column == value for column, value in equal if value is not None
        ]
        if wanted.kinds:
            conditions.append(messages.c.kind.in_(wanted.kinds))
        since = [one for one in (wanted.from_ms, horizon_ms) if one is not None]
        if since:
            conditions.append(messages.c.accepted_on_ms >= max(since))
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
            select(journal.c.ref, journal.c.order_key)
            .where(journal.c.lane == int(Lane.SUBMISSIONS), journal.c.grp == self._source)
            .order_by(journal.c.position)
            .limit(LOOKED_AT)
            .subquery()
        )
        waits = select(oldest.c.ref).where(oldest.c.order_key.contains(number)).limit(MOST)
        doubted = (
            select(journal.c.ref)
            .where(journal.c.lane == int(Lane.DOUBTS), journal.c.grp == self._source)
            .limit(MOST)
        )
        entries = [*self._connection.execute(waits).scalars()]
        ids = [one.removeprefix("message ") for one in entries if one.startswith("message ")]
        return [*ids, *self._connection.execute(doubted).scalars()]

    def _may_say(self, text: str) -> ColumnElement[bool]:
        """Holds for whatever says it, and for little else: the engine's part of the look."""
        pattern = f"%{_escaped(_plain_part(text))}%"
        if self._connection.dialect.name == POSTGRESQL:
            return func.convert_from(messages.c.content, "UTF8", type_=Text()).ilike(pattern, "\\")
        return cast(messages.c.content, Text).like(pattern, "\\")  # it minds no capitals there

    def _says_it(self, row: dict[str, Any]) -> bool:
        return any(self._needle in one.casefold() for one in words_of(row["content"]))


def _newest(asked: Any, before: Place | None) -> Any:
    if before is not None:
        place = tuple_(messages.c.accepted_on_ms, messages.c.id)
        asked = asked.where(place < (before.accepted_on_ms, before.id))
    return asked.order_by(messages.c.accepted_on_ms.desc(), messages.c.id.desc())


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


def _place_of(row: dict[str, Any]) -> tuple[int, str]:
    return row["accepted_on_ms"], row["id"]


_COLUMNS: Final = (*SHOWN, messages.c.content)
