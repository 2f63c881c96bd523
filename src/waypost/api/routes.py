"""The table of routes, with readable names: router and OpenAPI document are made from it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from waypost.api import flows, login, media, onboarding, reports, subscriptions, unsupported
from waypost.api.account import blocks, groups, names, numbers, payments, profile
from waypost.api.apps import apps, keys, settings, universal_tokens, users
from waypost.api.messages import passthrough, send, status
from waypost.api.operation import Operations
from waypost.api.route import RouteRow
from waypost.api.templates import analytics, check, create, edit, library, lists

_SECTIONS: Final[Mapping[str, tuple[Operations, ...]]] = {  # by the headings of the reference, in its order
    "Login and tokens": (login.operation, keys.operation, universal_tokens.operation),
    "Sending": (send.operation, passthrough.operation, status.operation),
    "Marketing messages": (passthrough.marketing_operation,),
    "Media": (media.operation,),
    "Apps": (apps.operation,),
    "Onboarding": (
        onboarding.operation,
        onboarding.registration_operation,
        onboarding.prefilled_operation,
        onboarding.linked_app_operation,
    ),
    "Not supported": (unsupported.operation,),
    "Templates": (create.operation, lists.operation, edit.operation, lists.sync_operation),
    "Template check": (check.operation,),
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
    "change_about": "Change about text",
    "change_components": "Change conversational components",
    "change_photo": "Change profile picture",
    "change_prefilled": "Change prefilled onboarding data",
    "change_profile": "Change business profile",
    "create_from_library": "Create template from library",
    "create_key": "Create app key",
    "delete_key": "Revoke app key by its id",
    "delete_photo": "Delete profile picture",
    "delete_prefilled": "Delete prefilled onboarding data",
    "delete_templates_by_name": "Delete templates by name",
    "edit_app": "Change app",
    "get_subscription": "Show subscription",
    "list_keys": "List app keys",
    "list_library": "List library templates",
    "list_templates_by_name": "List templates by app name",
    "list_tokens": "List app tokens",
    "log_in": "Log in: get partner token",
    "mint_token": "Create app token that expires",
    "mint_universal_token": "Create universal token",
    "onboarding_link": "Get onboarding link",
    "post_event": "Mark as read, show typing",
    "put_assets": "Set the JSON of a flow",
    "put_message_read": "Mark as read",
    "remove_app": "Delete app",
    "request_sync": "Request synchronisation of contacts",
    "revoke_key": "Revoke app key",
    "revoke_all_tokens": "Revoke all app tokens that expire",
    "revoke_token": "Revoke app token",
    "send_older_session_message": "Send session message",
    "send_partner_session_message": "Send session message",
    "send_partner_template_message": "Send template message",
    "send_passthrough": "Send in operator's format",
    "send_session_message": "Send session message by API key",
    "send_template_message": "Send template message by API key",
    "set_callback_url": "Set callback URL",
    "set_optin_message": "Set opt-in message",
    "set_button_clicks": "Include or exclude button taps",
    "set_cap": "Set spending cap",
    "set_prefilled": "Set prefilled onboarding data",
    "set_user_ids": "Set user ids in callbacks",
    "set_user_ids_of_apps": "Set user ids in callbacks of all apps",
    "show_about": "Show about text",
    "show_app_by_id": "Show app, as public clients read it",
    "show_app_token": "Get app token",
    "show_assets": "List files of flow",
    "show_cap": "Show spending cap",
    "show_components": "Show conversational components",
    "show_messaging_wallet_balance": "Show wallet balance by API key",
    "show_photo": "Show profile picture",
    "show_pipeline": "Show progress of onboarding",
    "show_prefilled": "Show prefilled onboarding data",
    "show_profile": "Show business profile",
    "sync_templates": "Synchronise templates",
    "update_subscription": "Change subscription",
    "upload_for_handle": "Upload sample of template",
    "upload_for_sending": "Upload file for messages",
    "upload_through_messaging": "Upload file by API key",
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
        return (
            _TITLES.get(row.name) or _TITLES.get(name) or name.replace("_", " ").replace(" self serve", "").capitalize()
        )
    parts = [part for part in row.path.split("/")[2:] if "{" not in part and part not in ("app", "account", "api")]
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[-_]", " ", " ".join(parts)).lower()
    return f"{row.method.capitalize()} {words}"
