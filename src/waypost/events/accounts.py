"""Applies changes of a business account, its numbers, groups and calls, and of anything else the operator reports."""

from functools import partial
from typing import Any, Final, cast

from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.event import AccountEvent, CategoryEvent, QualityEvent, ReviewEvent
from waypost.domain.templates.template import Template
from waypost.events.lookup import EventContext
from waypost.notifications.user_events import emit_opt_event
from waypost.store.apps.apps import apps_for_event
from waypost.store.apps.users import set_opt_in
from waypost.store.templates.templates import find_operator_template
from waypost.wire.callbacks.account_v2 import account_body
from waypost.wire.callbacks.callback_v3 import TEMPLATE_ID_MEMBER, change_body
from waypost.wire.callbacks.kinds import OTHER_MESSAGES_CONTENT, USER_KINDS, change_kind

_OPT_SOURCE: Final = "USER"
MAX_EVENT_NAME_CHARS: Final = 100
"""Maximum length of a field's name in a list of callbacks; the callback itself has all of it."""
_log = log("events")


def apply_account_event(context: EventContext, account_id: str, event: AccountEvent) -> None:
    """Notify every app of the business account, or the app of the one number or template that it is about."""
    kind = OTHER_MESSAGES_CONTENT if event.field == "messages" else change_kind(event.field)
    errors = event.members.get("errors")
    if isinstance(errors, list) and errors:
        _log.warning("the operator reports errors", field=event.field, codes=_error_codes(cast(list[Any], errors)))
    apps = apps_for_event(context.connection, account_id, event)
    template = _template_of(context, event)
    if template is not None:
        apps = [app for app in apps if app.id == template.app_id]
    if not apps:
        _log.info("an event of an account was stored", field=event.field, apps=0)
        return
    for app in apps:
        context.recorder.emit_callback(
            app,
            mode=kind.mode,
            subject="account",
            message_id=None,
            event_name=event.field[:MAX_EVENT_NAME_CHARS],
            render=partial(_render, app, context.at_ms, event, template),
        )
        if event.field == "user_preferences":
            _apply_user_preferences(context, app, event)


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


def _error_codes(errors: list[Any]) -> str:
    codes = [cast(dict[str, Any], error).get("code") for error in errors[:10] if isinstance(error, dict)]
    return " ".join(str(code)[:20] for code in codes)


def _template_of(context: EventContext, event: AccountEvent) -> Template | None:
    if event.operator_template_id is None:
        return None
    return find_operator_template(context.connection, event.business_account_id, event.operator_template_id, "", "")


def _render(app: App, at_ms: int, event: AccountEvent, template: Template | None, version: int) -> bytes | None:
    if version == 2:
        return account_body(app, at_ms, event)
    value = event.value
    if template is not None and template.app_id == app.id:
        value = {**event.members, TEMPLATE_ID_MEMBER: template.id}
    return change_body(app, event.field, value, time=event.time)


def _apply_user_preferences(context: EventContext, app: App, event: AccountEvent) -> None:
    """Record an opt-out or opt-in for each recipient who stops or resumes marketing messages (decision 0029)."""
    preferences = event.members.get("user_preferences")
    for item in cast(list[Any], preferences) if isinstance(preferences, list) else []:
        preference = cast(dict[str, Any], item) if isinstance(item, dict) else {}
        phone, kind = str(preference.get("wa_id") or ""), USER_KINDS.get(str(preference.get("value")).lower())
        if kind is None or not phone:
            continue
        opted_in = kind is USER_KINDS["resume"]
        connection, at_ms = context.connection, context.at_ms
        set_opt_in(connection, app, phone, opted_in=opted_in, source=_OPT_SOURCE, at_ms=at_ms)
        emit_opt_event(context.recorder, connection, app, phone, opted_in=opted_in, at_ms=at_ms)
