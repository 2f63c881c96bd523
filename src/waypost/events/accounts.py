"""What the operator says of a business account, its numbers and its users' preferences."""

from functools import partial
from typing import Any, Final, cast

from waypost.base.logs import log
from waypost.domain.app import App
from waypost.domain.event import AccountEvent
from waypost.events.book import Applying
from waypost.journal.user_events import emit_opted
from waypost.store.account_apps import apps_concerned
from waypost.store.app_users import set_opted
from waypost.wire.account_v2 import account_body
from waypost.wire.callback_kinds import USER, change_kind
from waypost.wire.callback_v3 import change_body

_SOURCE: Final = "USER"
_log = log("events")


def account_has_news(applying: Applying, account_id: str, event: AccountEvent) -> None:
    """Tell every app of the business account, or the app of the one number that it is about."""
    kind = change_kind(event.field)
    apps = apps_concerned(applying.connection, account_id, event)
    if kind is None or not apps:
        _log.info("news of an account is kept", field=event.field, apps=len(apps))
        return
    for app in apps:
        applying.telling.call_back(
            app,
            mode=kind.mode,
            about="account",
            message_id=None,
            news=event.field,
            render=partial(_render, app, applying.at_ms, event),
        )
        if event.field == "user_preferences":
            _tell_users(applying, app, event)


def _render(app: App, at_ms: int, event: AccountEvent, version: int) -> bytes | None:
    if version == 2:
        return account_body(app, at_ms, event)
    return change_body(app, event.field, event.value)


def _tell_users(applying: Applying, app: App, event: AccountEvent) -> None:
    """A recipient who stops or resumes marketing messages has opted out or in (decision 0029)."""
    given = event.value.get("user_preferences")
    for one in cast(list[Any], given) if isinstance(given, list) else []:
        wish = cast(dict[str, Any], one) if isinstance(one, dict) else {}
        phone, kind = str(wish.get("wa_id") or ""), USER.get(str(wish.get("value")).lower())
        if kind is None or not phone:
            continue
        opted_in = kind is USER["resume"]
        connection, at_ms = applying.connection, applying.at_ms
        set_opted(connection, app, phone, opted_in=opted_in, source=_SOURCE, at_ms=at_ms)
        emit_opted(applying.telling, connection, app, phone, opted_in=opted_in, at_ms=at_ms)
