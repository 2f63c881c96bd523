"""Claim an arrival's items, move the states, append the callbacks they cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.logs import log
from waypost.domain.app import App
from waypost.domain.event import Event, InboundEvent, ReviewEvent, StatusEvent, UnknownEvent
from waypost.domain.lifecycle import OPERATOR_STATUSES, message_steps, template_step
from waypost.domain.message import TemplateSend
from waypost.domain.postback import postback_text_of
from waypost.journal.entry import Entry
from waypost.journal.in_store import Journal
from waypost.journal.stage import Prepared, failing
from waypost.journal.telling import Telling
from waypost.operators.contract import Operator
from waypost.store.arrivals import items_by_ids, record_inbound
from waypost.store.database import Database
from waypost.store.journal import settle_entries
from waypost.store.messages import messages_by_ids, messages_by_operator_ids
from waypost.store.partners import app_by_id, app_by_phone_number_id, business_account_by_id
from waypost.store.recipients import has_written, recipient_id
from waypost.store.rows import content_of
from waypost.store.templates import change_template, template_by_id, template_known_to_operator
from waypost.wire.callback_v2 import inbound_body, review_body

WINDOW_MS: Final = 24 * 60 * 60 * 1000  # Source: operator's facts 4.1
CALLED_BACK: Final = {"text", "quick_reply"}
"""The kinds of inbound message that this version calls back."""


@dataclass(frozen=True, slots=True)
class _Heard:
    position: int
    item_id: int
    operator_account_id: str
    event: Event


class Ingest:
    """The work of the arrivals lane."""

    def __init__(
        self, *, database: Database, journal: Journal, operator: Operator, clock: Clock, ids: Ids
    ) -> None:
        self._database = database
        self._journal = journal
        self._operator = operator
        self._clock = clock
        self._ids = ids
        self._log = log("events")

    async def prepare(self, entries: Sequence[Entry]) -> Prepared:
        """Apply a batch: one read, one write; nothing of it waits for anybody outside.

        What is given back are the entries on which our own code failed.
        """
        rows = await self._database.read(
            items_by_ids, {int(entry.ref.partition(" ")[2]) for entry in entries}
        )
        heard: list[tuple[Entry, _Heard]] = []
        failed: list[tuple[Entry, BaseException]] = []
        for entry in entries:
            account_id, _, item_id = entry.ref.partition(" ")
            try:
                event = self._operator.read(rows[int(item_id)].item)
            except Exception as error:  # noqa: BLE001  a defect belongs to its entry
                failed.append((entry, error))
            else:
                heard.append((entry, _Heard(entry.position, int(item_id), account_id, event)))
        failed += await self._journal.settle_all(heard, self._apply)
        return [(entry, failing(error)) for entry, error in failed]

    def _apply(self, connection: Connection, heard: Sequence[_Heard]) -> list[None]:
        """Apply events: states, trace, callbacks and settled entries in one transaction."""
        at_ms = self._clock.now_ms()
        telling = Telling(connection, self._ids, at_ms)
        book = _Book(connection, heard)
        for one in heard:
            match one.event:
                case StatusEvent() as event:
                    self._status(connection, telling, book, one, event)
                case InboundEvent() as event:
                    self._inbound(connection, telling, book, one, event, at_ms)
                case ReviewEvent() as event:
                    self._review(connection, telling, book, one, event, at_ms)
                case UnknownEvent(what=what):
                    self._log.info("an arrival of a kind unknown to us is kept", what=what)
        telling.write()
        settle_entries(connection, [one.position for one in heard])
        return [None] * len(heard)

    def _status(
        self,
        connection: Connection,
        telling: Telling,
        book: "_Book",
        one: _Heard,
        event: StatusEvent,
    ) -> None:
        row = book.message(event.message_id, event.operator_message_id)
        app = row and book.app(row.app_id, one.operator_account_id)
        if row is None or app is None:
            self._log.info("a status of a message that is not ours is kept")
            return
        state, doubted = telling.state_of(row)
        steps = message_steps(state, event.state, doubted=doubted)
        if not steps:
            telling.note(row.id, event.state.value, f"behind {state.value}")
            return
        telling.message_moves(
            row,
            app,
            steps,
            recipient_id=row.recipient_id
            or recipient_id(connection, app, event.recipient or row.destination),
            operator_message_id=event.operator_message_id,
            event=event,
            code=event.code,
            reason=event.reason,
        )

    def _inbound(
        self,
        connection: Connection,
        telling: Telling,
        book: "_Book",
        one: _Heard,
        event: InboundEvent,
        at_ms: int,
    ) -> None:
        app = app_by_phone_number_id(connection, one.operator_account_id, event.phone_number_id)
        if app is None:
            self._log.info("an inbound message for a number that is no app's is kept")
            return
        who = recipient_id(connection, app, event.sender, event.sender_user_id)
        sent_ms = event.at_s * 1000 or at_ms
        has_written(connection, who, event.sender_name, sent_ms + WINDOW_MS)
        record_inbound(
            connection,
            [
                {
                    "operator_message_id": event.operator_message_id,
                    "partner_id": app.partner_id,
                    "app_id": app.id,
                    "recipient_id": who,
                    "kind": event.kind,
                    "item_id": one.item_id,
                    "received_on_ms": at_ms,
                }
            ],
        )
        if event.kind not in CALLED_BACK:
            self._log.info("an inbound message of a kind not called back is kept", kind=event.kind)
            return
        answered = book.message(None, event.reply_to) if event.reply_to else None
        if answered is not None and answered.app_id != app.id:
            answered = None
        content = content_of(answered) if answered is not None else None
        template = (
            template_by_id(connection, content.template_id)
            if isinstance(content, TemplateSend)
            else None
        )
        body = inbound_body(
            app,
            at_ms,
            event,
            reply_to_message_id=answered.id if answered is not None else None,
            postback_text=postback_text_of(event, content, template),
        )
        telling.call_back(
            app, mode="MESSAGE", about=str(who), message_id=None, news=event.kind, body=body
        )

    def _review(
        self,
        connection: Connection,
        telling: Telling,
        book: "_Book",
        one: _Heard,
        event: ReviewEvent,
        at_ms: int,
    ) -> None:
        template = template_known_to_operator(
            connection,
            event.business_account_id,
            event.operator_template_id,
            event.element_name,
            event.language_code,
        )
        app = template and book.app(template.app_id, one.operator_account_id)
        status = OPERATOR_STATUSES.get(event.status)
        if template is None or app is None or status is None:
            self._log.info("news of a template is kept", status=event.status)
            return
        if not template_step(template.status, status):
            return
        change_template(
            connection,
            template.id,
            status=status.value,
            reason=event.reason,
            operator_template_id=event.operator_template_id,
            modified_on_ms=at_ms,
        )
        telling.call_back(
            app,
            mode="TEMPLATE",
            about=f"t:{template.id}",
            message_id=None,
            news=status.value.lower(),
            body=review_body(app, at_ms, event, template_id=template.id, status=status.value),
        )


class _Book:
    """The messages and apps that a transaction's events are about, looked up together."""

    def __init__(self, connection: Connection, heard: Sequence[_Heard]) -> None:
        self._connection = connection
        self._apps: dict[tuple[str, str], App | None] = {}
        ours: set[str] = set()
        theirs: set[str] = set()
        for one in heard:
            match one.event:
                case StatusEvent(message_id=str(message_id)):
                    ours.add(message_id)
                case StatusEvent(operator_message_id=operator_id):
                    theirs.add(operator_id)
                case InboundEvent(reply_to=str(reply_to)):
                    theirs.add(reply_to)
                case _:
                    continue
        self._by_id: dict[str, Any] = messages_by_ids(connection, ours)
        missing = {
            one.event.operator_message_id
            for one in heard
            if isinstance(one.event, StatusEvent)
            and one.event.message_id is not None
            and one.event.message_id not in self._by_id
        }
        self._by_operator_id = messages_by_operator_ids(connection, theirs | missing)

    def message(self, message_id: str | None, operator_message_id: str | None) -> Any:
        """The message's row: by our id first, by the operator's second; None when it is not ours."""
        found = self._by_id.get(message_id or "")
        return found if found is not None else self._by_operator_id.get(operator_message_id or "")

    def app(self, app_id: str, operator_account_id: str) -> App | None:
        """One app, where it is this operator account's: nobody speaks for another account's apps."""
        key = (app_id, operator_account_id)
        if key not in self._apps:
            app = app_by_id(self._connection, app_id)
            account = app and business_account_by_id(self._connection, app.business_account_id)
            is_theirs = account and account.operator_account_id == operator_account_id
            self._apps[key] = app if is_theirs else None
        return self._apps[key]
