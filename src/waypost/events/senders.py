"""Finds the person who sent a message, or whom a notice of another number or user id is about."""

import re
from typing import Any, Final

from waypost.base.json_values import list_of, object_of
from waypost.domain.app import App
from waypost.domain.event import AccountEvent, InboundEvent
from waypost.events.lookup import EventContext
from waypost.store.messages.recipients import PersonNames, record_number_change, record_user_id_change

NUMBER_CHANGE_TYPE: Final = "user_changed_number"
USER_ID_CHANGE_TYPE: Final = "user_changed_user_id"
USER_ID_FIELD: Final = "user_id_update"
"""The field with changes of user ids. Source: the operator's page "Business-scoped user IDs"."""
_CHANGE: Final = re.compile(r"changed from (\S+) to (\S+)")


def find_sender(context: EventContext, app: App, event: InboundEvent) -> int | None:
    """Return the recipient who sent a message, created if new; None if the operator named nobody.

    A notice of another number or user id keeps the person: the previous name and the new one lead to one recipient.

    Source: operator's facts 7.4, 7.5; the operator's page "Business-scoped user IDs".
    """
    content = object_of(event.content) if event.kind == "system" else {}
    names = PersonNames(event.sender, event.sender_user_id, event.sender_parent_id)
    current = PersonNames(
        _text(content, "wa_id") or _text(content, "new_wa_id"),
        _text(content, "user_id"),
        _text(content, "parent_user_id"),
    )
    merged = context.recorder.merged_recipients
    if content.get("type") == USER_ID_CHANGE_TYPE and current.user_id:
        previous = _previous_user_id(event, content, current.user_id)
        kept = current._replace(phone_number=current.phone_number or event.sender)
        if previous is not None:
            return record_user_id_change(context.connection, app, previous, kept, merged)
        names = kept
    elif current.phone_number and event.sender and current.phone_number != event.sender:
        kept = current._replace(user_id=current.user_id or event.sender_user_id)
        return record_number_change(context.connection, app, event.sender, kept, merged)
    if not any(names):
        return None
    return context.find_recipient(app, *names)


def apply_user_id_changes(context: EventContext, app: App, event: AccountEvent) -> int | None:
    """Record the changes of a webhook of user ids; return the recipient if it is about one person only."""
    ids: set[int] = set()
    for item in map(object_of, list_of(event.members.get(USER_ID_FIELD))):
        user, parent = object_of(item.get("user_id")), object_of(item.get("parent_user_id"))
        previous, current = _text(user, "previous"), _text(user, "current")
        if previous is None or current is None:
            continue
        names = PersonNames(_text(item, "wa_id"), current, _text(parent, "current"))
        merged = context.recorder.merged_recipients
        ids.add(record_user_id_change(context.connection, app, previous, names, merged))
    return ids.pop() if len(ids) == 1 else None


def _previous_user_id(event: InboundEvent, content: dict[str, Any], current: str) -> str | None:
    """Return the id before: the operator has it as the sender, as a member, or in the text of the notice only."""
    found = _CHANGE.search(_text(content, "body") or "")
    candidates = (event.sender_user_id, _text(content, "previous_user_id"), found[1] if found else None)
    return next((name for name in candidates if name and name != current), None)


def _text(value: dict[str, Any], name: str) -> str | None:
    member = value.get(name)
    return member if isinstance(member, str) and member else None
