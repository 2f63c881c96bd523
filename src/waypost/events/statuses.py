"""Applies the operator's statuses of our messages: progress, price, recipient."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from waypost.domain.app import App
from waypost.domain.event import OtherStatusEvent, PaymentEvent, StatusEvent
from waypost.domain.lifecycle import message_transitions
from waypost.domain.message import MessageState
from waypost.domain.phone_number import parse_group_id, read_phone_number
from waypost.events.lookup import MAX_EVENT_NAME_CHARS, EventContext, IgnoredEvent
from waypost.store.accounts.partners import app_by_phone_number_id
from waypost.store.messages.messages import MessageRow
from waypost.store.messages.recipients import NumberWithUserId, add_user_ids, link_number
from waypost.store.trace_events import has_trace_event
from waypost.wire.callbacks import callback_v2, callback_v3
from waypost.wire.callbacks.kinds import BILLED_EVENT, BILLING, GROUP_STATUS, MISMATCH, OTHER_STATUS, PAYMENT

BILLED: Final = "billed"
"""The event in a message's trace that keeps it from being billed twice."""

_STATES_BEFORE_STATUSES: Final = {MessageState.ACCEPTED, MessageState.UNCERTAIN, MessageState.ENQUEUED}


def apply_status(
    context: EventContext, account_id: str, event: StatusEvent, message: tuple[MessageRow, App] | None
) -> None:
    """Move a message, and emit callbacks; a status behind the message's state is trace only.

    Args:
        account_id: of the operator account that it came from.
        message: its row and its app; None where it is not one of ours.
    """
    if message is None:
        context.ignore(IgnoredEvent.UNKNOWN_MESSAGE)
        if event.is_ai_price:
            _emit_ai_bill(context, account_id, event)
        return
    row, app = message
    recorder = context.recorder
    state, unconfirmed = recorder.state_of(row)
    steps = message_transitions(state, event.state, unconfirmed=unconfirmed)
    if not steps:
        # The webhook of one recipient's status is not stored by item: its repetition is recognised here.
        if event.is_of_group or not _is_known(context, row, event.state):
            recorder.add_trace_event(row.id, event.state.value, f"behind {state.value}")
        if event.is_of_group:  # each member's status counts, and only the first of them moves the message
            _forward_status(context, app, row, event, mode=GROUP_STATUS.mode, event_name=event.state.value)
        return
    recipient = _find_recipient_id(context, app, row, event)
    recorder.change_message_state(
        row,
        app,
        steps,
        recipient_id=recipient,
        operator_message_id=event.operator_message_id,
        event=event,
        code=event.code,
        reason=event.reason,
    )
    if state in _STATES_BEFORE_STATUSES:
        _emit_mismatch(context, app, row, event, recipient)
    if event.pricing and recorder.has_subscription(app, BILLING.mode):
        _emit_billing(context, app, row, event, recipient, is_first=state in _STATES_BEFORE_STATUSES)


def record_user_ids(
    context: EventContext, statuses: Iterable[tuple[StatusEvent, tuple[MessageRow, App] | None]]
) -> None:
    """Store the user ids that statuses give for numbers, all together, before each status is applied.

    What concerns more than one row is left to the status itself.

    Args:
        statuses: each with the row and the app of its message, if it is one of ours.
    """
    user_ids: dict[tuple[str, str], NumberWithUserId | None] = {}
    numbers: dict[tuple[str, str], NumberWithUserId | None] = {}
    for event, message in statuses:
        number, user_id = event.recipient, event.recipient_user_id
        if message is None or not number or not user_id or event.recipient_parent_id or event.is_of_group:
            continue
        row, app = message
        if row.recipient_id is None or context.known_names.has(app.id, number, user_id):
            continue
        user = NumberWithUserId(app.id, row.recipient_id, number, user_id)
        for users, key in ((user_ids, user_id), (numbers, number)):  # None: two numbers or ids of one person
            users[app.id, key] = user if users.get((app.id, key), user) == user else None
    unique = [user for user in user_ids.values() if user and numbers[user.app_id, user.phone_number]]
    if unique:
        for user in add_user_ids(context.connection, unique):
            context.known_names.add(user.app_id, user.phone_number, user.user_id)


def _is_known(context: EventContext, row: MessageRow, state: MessageState) -> bool:
    """Return True if the trace of a message has a state already."""
    recorder = context.recorder
    return (
        recorder.time_of(row, state) is not None
        or recorder.has_trace_event(row.id, state.value)
        or has_trace_event(context.connection, row.id, state.value)
    )


def apply_other_status(context: EventContext, account_id: str, event: PaymentEvent | OtherStatusEvent) -> None:
    """Forward the progress of a payment, or a status of an unknown kind; the message's state does not change.

    Source: facts 4.4.
    """
    message = context.lookup.find_message_of_account(event.message_id, event.operator_message_id, account_id)
    if message is None:
        context.ignore(IgnoredEvent.UNKNOWN_MESSAGE)
        return
    row, app = message
    if isinstance(event, PaymentEvent):
        context.recorder.add_trace_event(row.id, "payment", str(event.raw.get("status", "")))
        _forward_status(context, app, row, event, mode=PAYMENT.mode, event_name="payment")
    else:
        context.recorder.add_trace_event(row.id, "status", event.status)
        name = event.status[:MAX_EVENT_NAME_CHARS]
        _forward_status(context, app, row, event, mode=OTHER_STATUS.mode, event_name=name)


def _forward_status(
    context: EventContext,
    app: App,
    row: MessageRow,
    event: StatusEvent | PaymentEvent | OtherStatusEvent,
    *,
    mode: str,
    event_name: str,
) -> None:
    """Forward a status as the operator gave it, in version 3 only; it has no shape in version 2."""
    context.recorder.emit_callback(
        app,
        mode=mode,
        subject=str(context.current_recipient(row.recipient_id) or row.destination),
        message_id=row.id,
        event_name=event_name,
        render=lambda version: callback_v3.status_body(app, event, message_id=row.id) if version == 3 else None,
        accepted_on_ms=row.accepted_on_ms,
    )


def _find_recipient_id(context: EventContext, app: App, row: MessageRow, event: StatusEvent) -> int | None:
    """Return the recipient's id; None for a group.

    The names are the operator's where it gave any: a user id that is new for a number is stored with it, and a number
    that is new for a user id; and the message's number leads to the recipient who has its WhatsApp id.
    """
    if event.is_of_group or parse_group_id(row.destination):
        return None
    is_of_user_id = event.recipient_user_id and not row.destination.isdecimal()
    name = event.recipient or (None if is_of_user_id else row.destination)
    recipient, user_id = context.current_recipient(row.recipient_id), event.recipient_user_id
    is_new_pair = bool(name and user_id) and context.known_names.add(app.id, name or "", user_id or "")
    if recipient is None or is_new_pair:
        recipient = context.find_recipient(app, name, user_id, event.recipient_parent_id)
    number = event.recipient  # the operator may have the message's number under another one
    is_whatsapp_id = number != row.destination and bool(number) and number.isdecimal() and row.destination.isdecimal()
    if not is_whatsapp_id or not context.known_names.add(app.id, row.destination, name or ""):
        return recipient
    person = context.find_recipient(app, name)
    return link_number(context.connection, app, person, row.destination, context.recorder.merged_recipients)


def _emit_mismatch(context: EventContext, app: App, row: MessageRow, event: StatusEvent, recipient: int | None) -> None:
    """Emit, with a message's first status, that the operator has its recipient by another number.

    In version 3 the status itself contains this. Source: facts 6.2, `mismatch`.
    """
    phone, known_as = read_phone_number(row.destination), event.recipient
    if phone is None or known_as is None or known_as == phone:
        return
    body = partial(
        callback_v2.mismatch_body,
        app,
        context.at_ms,
        operator_message_id=event.operator_message_id,
        message_id=row.id,
        phone=row.destination,
        operator_phone=known_as,
    )
    context.recorder.emit_callback(
        app,
        mode=MISMATCH.mode,
        subject=str(recipient),
        message_id=row.id,
        event_name="mismatch",
        render=lambda version: body() if version == 2 else None,
        accepted_on_ms=row.accepted_on_ms,
    )


def _emit_billing(
    context: EventContext, app: App, row: MessageRow, event: StatusEvent, recipient: int | None, *, is_first: bool
) -> None:
    """Emit the price once per message, with the first status that moves it and has a price.

    The operator puts the price on `sent` and on one of the later ones (operator's facts 7.3); the
    first status of a message cannot have been billed before, so only later ones query the trace.
    """
    recorder = context.recorder
    if recorder.has_trace_event(row.id, BILLED) or (
        not is_first and has_trace_event(context.connection, row.id, BILLED)
    ):
        return
    recorder.add_trace_event(row.id, BILLED, str((event.pricing or {}).get("category", "")))
    recorder.emit_callback(
        app,
        mode=BILLING.mode,
        subject=str(recipient or row.destination),
        event_name=BILLED_EVENT,
        render=partial(_bill, context, app, event, row.id, parse_group_id(row.destination) or row.destination),
        message_id=row.id,
        accepted_on_ms=row.accepted_on_ms,
    )


def _emit_ai_bill(context: EventContext, account_id: str, event: StatusEvent) -> None:
    """Emit the price of a message that an AI provider sent from an app's number. Source: ledger row 33."""
    app = app_by_phone_number_id(context.connection, account_id, event.phone_number_id)
    if app is None or not context.recorder.has_subscription(app, BILLING.mode):
        return
    if not event.recipient and not event.recipient_user_id:
        return
    recipient = context.find_recipient(app, event.recipient, event.recipient_user_id, event.recipient_parent_id)
    render = partial(_bill, context, app, event, None, event.recipient or event.recipient_user_id or "")
    context.recorder.emit_callback(
        app, mode=BILLING.mode, subject=str(recipient), event_name=BILLED_EVENT, render=render
    )


def _bill(
    context: EventContext, app: App, event: StatusEvent, message_id: str | None, destination: str, version: int
) -> bytes:
    if version == 2:
        return callback_v2.billing_body(app, context.at_ms, event, message_id=message_id, destination=destination)
    return callback_v3.billing_body(app, event, message_id=message_id, destination=destination)
