"""Applies changes of a business account, its numbers, groups and calls, and of anything else the operator reports."""

from functools import partial
from typing import Any, Final, cast

from waypost.base.json_values import list_of, object_of, objects_in, text_or_none
from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.event import AccountEvent, CategoryEvent, LimitEvent, QualityEvent, ReviewEvent
from waypost.domain.templates.template import Template
from waypost.events.inbound import USER_ID_FIELD, apply_user_id_changes
from waypost.events.lookup import MAX_EVENT_NAME_CHARS, EventContext, IgnoredEvent
from waypost.events.templates import enqueue_refresh
from waypost.notifications.user_events import emit_user_event
from waypost.store.apps.apps import apps_for_event, record_limit_event
from waypost.store.apps.onboarding import set_shared
from waypost.store.apps.users import set_opt_in
from waypost.store.messages.recipients import PersonNames, name_of_recipient
from waypost.store.templates.templates import find_operator_template
from waypost.store.write_through_cache import call_after_commit
from waypost.wire.callbacks.callback_v2 import account_body
from waypost.wire.callbacks.callback_v3 import TEMPLATE_ID_MEMBER, call_billing_body, change_body, read_number
from waypost.wire.callbacks.kinds import (
    BILLED_EVENT,
    CALL_BILLING,
    OTHER_MESSAGES_CONTENT,
    USER_KINDS,
    change_kind,
    event_name,
)

_OPT_SOURCE: Final = "USER"
_ENVELOPE_MEMBERS: Final = ("messaging_product", "metadata", "contacts")
_SHARING: Final = {  # whether the number is in the app on a phone, too. Source: decision 0124
    # field                 event of an account update
    ("smb_message_echoes", ""): True,
    ("smb_app_state_sync", ""): True,
    ("history", ""): True,
    ("account_update", "PARTNER_REMOVED"): False,
}
_log = log("events")


def apply_account_event(context: EventContext, account_id: str, event: AccountEvent) -> None:
    """Notify every app of the business account, or the app of the one number or template that it is about."""
    kind = OTHER_MESSAGES_CONTENT if event.field == "messages" else change_kind(event.field)
    errors = event.members.get("errors")
    if isinstance(errors, list) and errors:
        codes = " ".join(str(error.get("code"))[:20] for error in objects_in(cast(list[Any], errors)[:10]))
        _log.warning("the operator reports errors", field=event.field, codes=codes)
    apps = apps_for_event(context.connection, account_id, event)
    template = None
    if event.operator_template_id is not None:
        names = (event.business_account_id, event.operator_template_id, "", "")
        template = find_operator_template(context.connection, *names)
    if template is not None:
        apps = [app for app in apps if app.id == template.app_id]
        if event.field == "message_template_components_update":
            enqueue_refresh(context.connection, template, context.at_ms)
    if not apps:
        context.ignore(IgnoredEvent.ACCOUNT_OF_NO_APP, field=event.field)
        return
    for app in apps:
        recipient = apply_user_id_changes(context, app, event) if event.field == USER_ID_FIELD else None
        context.recorder.emit_callback(
            app,
            mode=kind.mode,
            subject="account" if recipient is None else str(recipient),
            event_name=_name_of(event)[:MAX_EVENT_NAME_CHARS],
            render=partial(_render, app, context.at_ms, event, template),
        )
        _apply_sharing(context, app, event)
        if event.field == "user_preferences":
            _apply_user_preferences(context, app, event)
        if event.field == "phone_number_quality_update":
            record_limit_event(context.connection, app.id, _limit_event(event, context.at_ms))
        if event.field == "calls":
            _emit_call_bills(context, app, event)


def _name_of(event: AccountEvent) -> str:
    """Return the name of the event; for the field `messages`, whose other content has no name, that of its member."""
    if event.field != "messages":
        return event_name(event.field)
    return next((name for name in event.members if name not in _ENVELOPE_MEMBERS), event.field)


def forward_template_event(
    context: EventContext, account_id: str, event: ReviewEvent | QualityEvent | CategoryEvent
) -> None:
    """Forward an event of a template that is not ours, or with a value that is unknown here."""
    apply_account_event(
        context,
        account_id,
        AccountEvent(
            business_account_id=event.business_account_id,
            field=str(event.raw.get("field")),
            value=event.raw.get("value"),
            operator_template_id=event.operator_template_id or None,
            time=event.raw.get("time"),
        ),
    )


def _render(app: App, at_ms: int, event: AccountEvent, template: Template | None, version: int) -> bytes | None:
    if version == 2:
        return account_body(app, at_ms, event)
    value = event.value
    if template is not None and template.app_id == app.id:
        value = {**event.members, TEMPLATE_ID_MEMBER: template.id}
    return change_body(app, event.field, value, time=event.time)


def _apply_sharing(context: EventContext, app: App, event: AccountEvent) -> None:
    """Record that the app's number is in the WhatsApp Business app, too, or no longer: its pace changes."""
    is_shared = _SHARING.get((event.field, text_or_none(event.members.get("event")) or ""))
    is_about_number = bool(event.phone_number_id) or event.phone_number == app.phone_number
    if is_shared is None or is_shared == app.preferences.is_shared or not is_about_number:
        return
    set_shared(context.connection, app.id, is_shared=is_shared, at_ms=context.at_ms)
    call_after_commit(context.connection, partial(context.changed_apps.add, app.id))


def _limit_event(event: AccountEvent, at_ms: int) -> LimitEvent:
    """Return a change of a number's limit. Source: facts 6.6, `tier-event`; operator's facts 7.2."""
    names = ("event", "old_limit", "current_limit")
    texts = [value if isinstance(value := event.members.get(name), str) else "" for name in names]
    return LimitEvent(*(text[:MAX_EVENT_NAME_CHARS] for text in texts), at_ms=at_ms)


def _apply_user_preferences(context: EventContext, app: App, event: AccountEvent) -> None:
    """Record an opt-out or opt-in for each recipient who stops or resumes marketing messages (decision 0029)."""
    preferences = event.members.get("user_preferences")
    for item in map(object_of, list_of(preferences)):
        kind = USER_KINDS.get(str(item.get("value")).lower())
        names = PersonNames(*(text_or_none(item.get(name)) or None for name in ("wa_id", "user_id", "parent_user_id")))
        if kind is None or not any(names):
            continue
        opted_in = kind is USER_KINDS["resume"]
        connection, at_ms = context.connection, context.at_ms
        recipient_id = context.find_recipient(app, *names)
        name = name_of_recipient(connection, recipient_id)  # the number, also if the operator hides it now
        set_opt_in(connection, app, name, opted_in=opted_in, source=_OPT_SOURCE, at_ms=at_ms)
        shown_name = next(filter(None, names))
        emit_user_event(context.recorder, connection, app, shown_name, kind=kind, at_ms=at_ms)


def _emit_call_bills(context: EventContext, app: App, event: AccountEvent) -> None:
    """Emit the price of each call that has ended: the operator's, and this service's, which is nothing.

    A call that was connected is charged by the operator, as in the documents; nothing in its event says more.

    Source: ledger row 68.
    """
    for call in objects_in(event.members.get("calls")):
        if str(call.get("event")).lower() != "terminate":
            continue
        is_connected = read_number(call.get("duration")) > 0
        for source, billable in (("whatsapp", is_connected), ("gupshup", False)):
            context.recorder.emit_callback(
                app,
                mode=CALL_BILLING.mode,
                subject="account",
                event_name=BILLED_EVENT,
                render=partial(_call_bill, app, context.at_ms, call, source, billable),
            )


def _call_bill(app: App, at_ms: int, call: dict[str, Any], source: str, billable: bool, version: int) -> bytes | None:
    return None if version == 2 else call_billing_body(app, at_ms, call, source=source, billable=billable)
