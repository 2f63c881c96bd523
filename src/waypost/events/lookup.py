"""Reads the messages and apps that a transaction's events are about, all together."""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.event import Event, InboundEvent, OtherStatusEvent, PaymentEvent, StatusEvent
from waypost.domain.postback import referenced_message_id
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import apps_with_operators
from waypost.store.apps.operator_history import may_have_sent_through
from waypost.store.messages.messages import MessageRow, messages_by_ids, messages_by_operator_ids
from waypost.store.messages.recipients import get_or_create_recipient
from waypost.store.write_through_cache import call_after_commit

_log = log("events")
MAX_KNOWN_NAMES: Final = 65_536
_NamePair = tuple[str, str, str]
"""An app, a number, and a user id or another number."""

MAX_EVENT_NAME_CHARS: Final = 100
"""Maximum length of a field's name in a list of callbacks; the callback itself has all of it."""


class IgnoredEvent(StrEnum):
    """Reasons why an event concerns nobody here, as the metric has them."""

    UNKNOWN_MESSAGE = "a status of an unknown message"
    NUMBER_OF_NO_APP = "a message to a number of no app"
    ACCOUNT_OF_NO_APP = "a change that concerns no app"
    NO_SENDER = "a notice about nobody"
    NO_CHANGES = "an entry without changes"


class EventLookup:
    """Finds the messages and apps of a batch of events."""

    def __init__(self, connection: Connection, events: Iterable[Event]) -> None:
        self._connection = connection
        ours: set[str] = set()
        theirs: set[str] = set()
        statuses: list[StatusEvent | PaymentEvent | OtherStatusEvent] = []
        for event in events:
            match event:
                case StatusEvent() | PaymentEvent() | OtherStatusEvent():
                    statuses.append(event)
                    if event.message_id is not None:
                        ours.add(event.message_id)
                    else:
                        theirs.add(event.operator_message_id)
                case InboundEvent():
                    theirs |= {message_id for message_id in (event.reply_to, reaction_target(event)) if message_id}
                    replied_to = referenced_message_id(event)
                    if replied_to is not None:
                        ours.add(replied_to)
                case _:
                    continue
        self._former_operators: dict[tuple[str, str, int], bool] = {}
        self._by_id = messages_by_ids(connection, ours)
        if len(self._by_id) < len(ours):
            for event in statuses:
                if event.message_id is not None and event.message_id not in self._by_id:
                    theirs.add(event.operator_message_id)
        self._by_operator_id = messages_by_operator_ids(connection, theirs) if theirs else {}
        self._apps: dict[str, tuple[App | None, str | None]] = {}
        rows = (*self._by_id.values(), *self._by_operator_id.values())
        self._apps |= apps_with_operators(connection, set(map(attrgetter("app_id"), rows)))

    @property
    def app_ids(self) -> Set[str]:
        """The apps of the messages that the events are about."""
        return self._apps.keys()

    def find_message(self, message_id: str | None, operator_message_id: str | None) -> MessageRow | None:
        """Return the message's row: by our id first, by the operator's second; None when it is not ours."""
        row = self._by_id.get(message_id or "")
        return row if row is not None else self._by_operator_id.get(operator_message_id or "")

    def find_message_of_account(
        self, message_id: str | None, operator_message_id: str | None, operator_account_id: str
    ) -> tuple[MessageRow, App] | None:
        """Return the message's row and its app, if it is ours and this operator account may report on it.

        The account that carries the app may, and one that the app has left since, about messages that it may
        have received before (decision 0033).
        """
        row = self._by_id.get(message_id or "") or self._by_operator_id.get(operator_message_id or "")
        if row is None:
            return None
        app, carrier_id = self._apps.get(row.app_id, (None, None))
        if carrier_id != operator_account_id:
            key = (row.app_id, operator_account_id, row.accepted_on_ms)
            if key not in self._former_operators:
                self._former_operators[key] = may_have_sent_through(self._connection, *key)
            if not self._former_operators[key]:
                return None
        return None if app is None else (row, app)

    def find_app(self, app_id: str, operator_account_id: str) -> App | None:
        """Return one app, if it is this operator account's: no account reports on another account's apps."""
        if app_id not in self._apps:
            apps = apps_with_operators(self._connection, {app_id})
            self._apps[app_id] = apps.get(app_id, (None, None))
        app, operator_account_of = self._apps[app_id]
        return app if operator_account_of == operator_account_id else None


def reaction_target(event: InboundEvent) -> str | None:
    """Return the operator's id of the message that a reaction is to; None where it is no reaction."""
    return event.text("message_id") or None if event.kind == "reaction" else None


class KnownNames:
    """Numbers and user ids, or two numbers, that the store has under one recipient: a status needs no query.

    Attributes:
        pairs: the newest of them.
    """

    def __init__(self) -> None:
        self.pairs: dict[_NamePair, None] = {}

    def update(self, pairs: Iterable[_NamePair]) -> None:
        """Add pairs that are on disk."""
        for pair in pairs:
            if len(self.pairs) >= MAX_KNOWN_NAMES:
                del self.pairs[next(iter(self.pairs))]
            self.pairs[pair] = None


class LearnedNames:
    """The known names, with those that one transaction learns: they are known to others once it is on disk."""

    def __init__(self, connection: Connection, known: KnownNames) -> None:
        self._connection = connection
        self._known = known
        self._pairs: dict[_NamePair, None] = {}  # in their order: it decides which of them is forgotten first

    def has(self, app_id: str, phone_number: str, other_name: str) -> bool:
        """Return True if the store has this pair."""
        pair = (app_id, phone_number, other_name)
        return pair in self._known.pairs or pair in self._pairs

    def add(self, app_id: str, phone_number: str, other_name: str) -> bool:
        """Add a pair; return False if it was there already."""
        pair = (app_id, phone_number, other_name)
        if pair in self._known.pairs or pair in self._pairs:
            return False
        if not self._pairs:
            call_after_commit(self._connection, partial(self._known.update, self._pairs))
        self._pairs[pair] = None
        return True


@dataclass(frozen=True, slots=True)
class EventContext:
    """One transaction in which events are applied."""

    connection: Connection
    recorder: StateChangeRecorder
    lookup: EventLookup
    ids: Ids
    at_ms: int
    public_url: str  # where receivers fetch media, without a slash at its end
    # names that belong to one recipient for certain: an app, a number, and a user id or another number
    known_names: LearnedNames
    ignored: Counter[str]  # events that concern nobody here, by reason
    changed_apps: set[str]  # ids of apps whose stored row has changed, once that is committed

    def ignore(self, reason: IgnoredEvent, **details: Any) -> None:
        """Count and log an event that is stored and concerns nobody here."""
        self.ignored[reason] += 1
        _log.info("an event of a webhook concerns nobody here", reason=reason, **details)

    def find_recipient(
        self, app: App, phone_number: str | None, user_id: str | None = None, parent_id: str | None = None
    ) -> int:
        """Return the recipient with these names, created if it is new."""
        return get_or_create_recipient(
            self.connection, app, phone_number, user_id, parent_id, self.recorder.merged_recipients
        )

    def current_recipient(self, recipient_id: int | None) -> int | None:
        """Return a message's recipient as of now: this transaction may have merged it with another."""
        return self.recorder.merged_recipients.get(recipient_id or 0, recipient_id)
