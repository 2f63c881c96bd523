"""The table of routes, with readable names: router and OpenAPI document are made from it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from waypost.api import flows, login, media, reports, subscriptions, unsupported
from waypost.api.account import blocks, groups, names, numbers, payments, profile
from waypost.api.apps import apps, keys, settings, universal_tokens, users
from waypost.api.messages import passthrough, send, status
from waypost.api.onboarding import app_links, links, registration, tech_provider
from waypost.api.operation import Operations
from waypost.api.route import RouteRow
from waypost.api.templates import analytics, create, edit, library, lists

_SECTIONS: Final[Mapping[str, tuple[Operations, ...]]] = {  # by the headings of the reference, in its order
    "Login and tokens": (login.operation, keys.operation, universal_tokens.operation),
    "Sending": (send.operation, passthrough.operation, status.operation),
    "Marketing messages": (passthrough.marketing_operation,),
    "Media": (media.operation,),
    "Apps": (apps.operation,),
    "Onboarding": (
        links.operation,
        registration.operation,
        links.prefilled_operation,
        tech_provider.operation,
        app_links.operation,
    ),
    "Not supported": (unsupported.operation,),
    "Templates": (create.operation, lists.operation, edit.operation, lists.sync_operation),
    "Template check": (edit.check_operation,),
    "Template library": (library.operation,),
    "Template analytics": (analytics.operation, analytics.insights_operation),
    "Subscriptions": (subscriptions.operation, reports.operation),
    "Event logs of messages": (reports.event_operation,),
    "App settings": (settings.operation, settings.identity_operation),
    "Users of an app": (users.operation,),
    "Account": (numbers.usage_operation,),
    "Health and ratings": (numbers.operation,),
    "Business profile": (profile.operation,),
    "Blocked users": (blocks.operation,),
    "Calls": (numbers.call_operation,),
    "Flows": (flows.operation,),
    "Names of a number": (names.operation, names.username_operation),
    "Groups": (groups.operation,),
    "Payments": (payments.operation,),
}
ROUTES: Final[tuple[RouteRow, ...]] = tuple(
    replace(row, section=section)
    for section, subjects in _SECTIONS.items()
    for subject in subjects
    for row in subject.rows
)


_TITLES: Final[
    Mapping[str, str]
] = {  # by the name of the endpoint's function, or of the route; all others are that name in words
    "POST /partner/app/{app_id}/v3/mmlite/message": "Send marketing message (mmlite)",
    "edit_app": "Change app",
    "list_keys": "List app keys",
    "log_in": "Log in: get partner token",
    "post_event": "Mark as read, show typing",
    "put_assets": "Set the JSON of a flow",
    "remove_app": "Delete app",
    "revoke_key": "Revoke app key",
    "send_older_session_message": "Send session message",
    "send_passthrough": "Send in operator's format",
    "set_optin_message": "Set opt-in message",
    "show_app_by_id": "Show app, as public clients read it",
    "update_subscription": "Change subscription",
}
_OTHER_PATHS: Final = (("/wa/", "self-serve"), ("/sm/", "older"))
"""Beginnings of paths at which an operation of the partner API is served again."""


@cache
def operation_titles() -> Mapping[str, str]:
    """Return the title of each route, by its method and path; each title is given once."""
    titles: dict[str, str] = {}
    for row in sorted(ROUTES, key=lambda row: row.path.startswith(tuple(prefix for prefix, _ in _OTHER_PATHS))):
        title = _title_of(row)
        if title in titles.values():
            path_kind = next((text for prefix, text in _OTHER_PATHS if row.path.startswith(prefix)), "")
            title += f" ({path_kind or row.path.rsplit('/', 1)[1]})"
        titles[row.name] = title
    return titles


def _title_of(row: RouteRow) -> str:
    """Return what the endpoint is called; an unsupported call, after its path."""
    name = row.endpoint.__name__
    if not name.startswith("reject_"):
        words = name.removesuffix("_self_serve").replace("_", " ").capitalize()
        return _TITLES.get(row.name) or _TITLES.get(name) or words.replace(" api ", " API ").replace(" url", " URL")
    parts = [part for part in row.path.split("/")[2:] if "{" not in part and part not in ("app", "account", "api")]
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[-_]", " ", " ".join(parts)).lower()
    return f"{row.method.capitalize()} {words}"
