"""No query of the console reads a whole growing table: a page costs the same, whatever is stored."""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, insert

from benchmarks.query_plans import grows
from benchmarks.statements import Statement, Statements, plan_of, scans
from tests.support import store_locations
from tests.support.builders import ACCOUNT, ANN, APP, AT_MS, PARTNER, message, template
from waypost.store.accounts import credentials
from waypost.store.callbacks import receivers
from waypost.store.callbacks.callbacks import CallbackRow, enqueue_callbacks
from waypost.store.callbacks.deliveries import (
    DeliveryCursor,
    DeliveryFilter,
    attempts_by_callback_ids,
    find_delivery,
    find_delivery_jobs,
    list_deliveries,
    open_callbacks_by_ids,
    subject_names,
    subscription_health_by_app,
)
from waypost.store.callbacks.receivers import SubscriptionFilter, list_receivers
from waypost.store.console import overview, trace
from waypost.store.console.conversations import ConversationFilter, find_conversation, list_conversations
from waypost.store.database import Database
from waypost.store.messages.lists import (
    MessageCursor,
    SearchPage,
    messages_of_app,
    template_names,
    template_names_by_ids,
)
from waypost.store.messages.messages import record_messages
from waypost.store.messages.received import search_inbound
from waypost.store.messages.search import MessageFilter, current_messages, search_messages
from waypost.store.messages.threads import ThreadFilter, ThreadPart, ThreadRecipient, search_thread
from waypost.store.tables import attempts, inbound_messages, recipients, subscriptions
from waypost.store.templates import gallery
from waypost.store.templates.events import template_history
from waypost.store.templates.templates import record_template, template_links

Query = Callable[[Connection], Any]
MINE: Final = (PARTNER.id, APP.id)
THERE: Final = (PARTNER.id, ACCOUNT.id)
ID: Final = message(1).id
BEFORE: Final = MessageCursor(AT_MS + 9, "z")
MESSAGE_FILTERS: Final = {
    "all": MessageFilter(),
    "of a time": MessageFilter(from_ms=AT_MS - 9, until_ms=AT_MS + 9),
    "in a state": MessageFilter(state="failed"),
    "with a code": MessageFilter(code=131049, template_id=template(1).id, kinds=("text",)),
    "to a number": MessageFilter(number=ANN),
    "to a part of a number": MessageFilter(number=ANN[-4:]),
    "to an unknown number": MessageFilter(number="9999999"),
    "by our id": MessageFilter(name=ID),
    "by an id of the operator's": MessageFilter(name="wamid.1"),
    "with a text": MessageFilter(text="hello", from_ms=AT_MS - 9),
    "with a text, at any time": MessageFilter(text="hello"),
    "of a name": MessageFilter(person="ann"),
    "of a name and a text": MessageFilter(person="ann", text="é"),
}
DELIVERY_FILTERS: Final = {
    "all": DeliveryFilter(),
    "of a time": DeliveryFilter(from_ms=AT_MS - 9, to_ms=AT_MS + 9),
    "given up": DeliveryFilter(state="given up"),
    "waiting": DeliveryFilter(state="waiting"),
    "to a recipient": DeliveryFilter(recipient=ANN, event="sent", subscription_id=1),
    "about a message": DeliveryFilter(message_id=ID),
}

CONVERSATION_FILTERS: Final = {
    "all": ConversationFilter(),
    "of a number": ConversationFilter(number=ANN),
    "of an id": ConversationFilter(id=ID),
    "of a name": ConversationFilter(name="ann"),
    "with an open window": ConversationFilter(open_at_ms=AT_MS),
    "with unread messages": ConversationFilter(is_unread=True),
    "with a failure": ConversationFilter(has_failed=True),
}
THREAD_FILTERS: Final = {
    "whole": ThreadFilter(),
    "with a text": ThreadFilter(text="hello"),
    "with failures": ThreadFilter(part=ThreadPart.FAILED),
    "of a time": ThreadFilter(from_ms=AT_MS - 9, until_ms=AT_MS + 9),
}


def _message_searches(message_filter: MessageFilter) -> Query:
    def query(connection: Connection) -> None:
        search_messages(connection, *MINE, message_filter)
        search_messages(connection, *MINE, message_filter, SearchPage(BEFORE))
        search_inbound(connection, *MINE, message_filter, SearchPage(BEFORE))

    return query


def _delivery_searches(delivery_filter: DeliveryFilter) -> Query:
    def query(connection: Connection) -> None:
        list_deliveries(connection, *MINE, delivery_filter)
        list_deliveries(connection, *MINE, delivery_filter, before=DeliveryCursor(AT_MS + 9, "z", 9, 9))

    return query


def _conversation_lists(conversation_filter: ConversationFilter) -> Query:
    def query(connection: Connection) -> None:
        list_conversations(connection, *MINE, conversation_filter)
        list_conversations(connection, *MINE, conversation_filter, SearchPage(MessageCursor(AT_MS + 9, "9")))

    return query


def _threads(thread_filter: ThreadFilter) -> Query:
    def query(connection: Connection) -> None:
        recipient = ThreadRecipient(1, (ANN,), APP.phone_number)
        search_thread(connection, *MINE, recipient, thread_filter)
        search_thread(connection, *MINE, recipient, thread_filter, SearchPage(BEFORE))

    return query


QUERIES: Final[dict[str, Query]] = {
    **{f"messages {name}": _message_searches(message_filter) for name, message_filter in MESSAGE_FILTERS.items()},
    **{f"callbacks {name}": _delivery_searches(delivery_filter) for name, delivery_filter in DELIVERY_FILTERS.items()},
    **{f"conversations {name}": _conversation_lists(one) for name, one in CONVERSATION_FILTERS.items()},
    **{f"a conversation {name}": _threads(one) for name, one in THREAD_FILTERS.items()},
    "one conversation": lambda at: find_conversation(at, *MINE, 1),
    "current messages": lambda at: current_messages(at, *MINE, [ID]),
    "messages by page": lambda at: messages_of_app(at, *MINE, before=BEFORE),
    "names of templates": lambda at: template_names(at, *MINE),
    "names of some templates": lambda at: template_names_by_ids(at, PARTNER.id, [template(1).id]),
    "a message's trace": lambda at: trace.app_message_trace(at, *MINE, ID),
    "the trace of an unknown message": lambda at: trace.app_message_trace(at, *MINE, "wamid.9"),
    "a message's content": lambda at: trace.app_message_content(at, *MINE, ID),
    "one callback": lambda at: find_delivery(at, *MINE, ID),
    "a callback's attempts": lambda at: attempts_by_callback_ids(at, [ID]),
    "a callback's jobs": lambda at: find_delivery_jobs(at, 1, ID),
    "subjects of callbacks": lambda at: subject_names(at, *MINE, ["1", "t:x"]),
    "subscriptions": lambda at: subscription_health_by_app(at, *MINE),
    "callbacks that wait": lambda at: open_callbacks_by_ids(at, [ID]),
    "receivers": lambda at: list_receivers(at, SubscriptionFilter(app_id=APP.id)),
    "newest attempts": lambda at: receivers.newest_attempts(at, 1, 9),
    "last delivery": lambda at: receivers.last_delivery_ms(at, 1, AT_MS),
    "attempts by time": lambda at: receivers.count_attempts(at, 1, AT_MS, AT_MS + 9),
    "delivered callbacks": lambda at: receivers.count_deliveries(at, 1, AT_MS),
    "counts": lambda at: overview.counts_by_minute(at, *MINE, AT_MS - 9, AT_MS + 9, 100),
    "queue depths": lambda at: overview.app_queue_depths(at, APP, [1]),
    "dead letters": lambda at: overview.dead_letters_of_app(at, APP, [1]),
    "receivers of an app": lambda at: overview.receivers_of_app(at, *MINE),
    "templates with problems": lambda at: overview.templates_with_problems(at, *THERE, AT_MS),
    "the last webhook": lambda at: overview.last_webhook_ms(at, "main"),
    "operator activity": lambda at: overview.operator_activity(at, *MINE),
    "onboarding progress": lambda at: overview.onboarding_progress(at, PARTNER.id, APP, [1]),
    "a page of templates": lambda at: gallery.gallery_page(at, *THERE, gallery.GalleryFilter(), at_most=9),
    "current templates": lambda at: gallery.current_templates(at, *THERE, [template(1).id]),
    "names of an account's templates": lambda at: gallery.account_template_names(at, *THERE, 9),
    "the newest template": lambda at: gallery.newest_template_id(at, *THERE),
    "a template's history": lambda at: template_history(at, PARTNER.id, template(1).id),
    "templates by the operator's ids": lambda at: template_links(at, PARTNER.id, ["77"]),
    "the session": lambda at: credentials.session_with_partner(at, "hash", AT_MS),
}
NEVER_SCANNED: Final = {"templates", "template_events", "console_sessions", "partners"}
"""Tables that do not grow with the traffic, but must not be read whole either."""
BOUNDED: Final = ("queue_jobs_dead_letters", "callbacks_dead_letters", "sqlite_autoindex_inbound_webhooks_1")
"""Indexes that are read in order, up to a limit: dead letters, and the newest webhooks."""


def _seed(connection: Connection) -> None:
    mine: dict[str, Any] = {"partner_id": PARTNER.id, "app_id": APP.id}
    record_messages(connection, [message(1, destination=ANN)])
    record_template(connection, template(1))
    connection.execute(
        insert(recipients), {"id": 1, "phone_number": ANN, "name": "", "window_until_ms": AT_MS + 9, **mine}
    )
    subscription = {
        "id": 1, "tag": "t", "url": "http://127.0.0.1:9/", "version": 2, "modes": "SENT", "active": True,
        "show_on_ui": False, "created_on_ms": AT_MS, "modified_on_ms": AT_MS,
    }  # fmt: skip
    connection.execute(insert(subscriptions), subscription | mine)
    callback = CallbackRow(ID, PARTNER.id, APP.id, 1, "1", 1, ID, "sent", b"{}", AT_MS)
    enqueue_callbacks(connection, [callback], [AT_MS])
    tried = {"callback_id": ID, "at_ms": AT_MS, "duration_ms": 1, "response_body": b"", "subscription_id": 1}
    connection.execute(insert(attempts), tried)
    inbound = {
        "operator_message_id": "wamid.1", "recipient_id": 1, "kind": "text", "item_id": 1,
        "received_on_ms": AT_MS,
    }  # fmt: skip
    connection.execute(insert(inbound_messages), inbound | mine)


def _plans(connection: Connection, statements: list[Statement]) -> dict[str, list[str]]:
    return {statement.text: plan_of(connection, statement) for statement in statements}


async def test_no_query_reads_a_whole_table(database: Database, store_location: store_locations.StoreLocation) -> None:
    await database.write(_seed)
    wrong: list[str] = []
    for name, query in QUERIES.items():
        statements = Statements(store_location.name)
        try:
            await database.read(query)
        finally:
            statements.end()
        plans = await database.read(_plans, statements.all())
        assert plans, name
        wrong += [
            f"{name}: {step.text} in {text}"
            for text, plan in plans.items()
            for step in scans(plan)
            if (grows(step.table) or step.table in NEVER_SCANNED) and not any(index in step.text for index in BOUNDED)
        ]

    assert not wrong, "\n".join(wrong)
