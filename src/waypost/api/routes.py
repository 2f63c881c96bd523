"""The table of routes: every partner and messaging endpoint. Router and OpenAPI document are made from it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from waypost.api import flows, login, subscriptions, unsupported
from waypost.api.account import blocks, calling, groups, names, numbers, payments, profile, usage, usernames
from waypost.api.apps import apps, identity, keys, settings, universal_tokens, users
from waypost.api.media import endpoints
from waypost.api.messages import marketing, passthrough, send, status
from waypost.api.onboarding import linked_apps, links, prefilled, registration
from waypost.api.operation import Operations
from waypost.api.reports import deliveries, message_events
from waypost.api.route import RouteRow
from waypost.api.templates import analytics, check, create, edit, insights, library, lists, sync

_SECTIONS: Final[Mapping[str, tuple[Operations, ...]]] = {  # by the headings of the reference, in its order
    "Login and tokens": (login.operation, keys.operation, universal_tokens.operation),
    "Sending": (send.operation, passthrough.operation, status.operation),
    "Marketing messages": (marketing.operation,),
    "Media": (endpoints.operation,),
    "Apps": (apps.operation,),
    "Onboarding": (links.operation, registration.operation, prefilled.operation, linked_apps.operation),
    "Not supported": (unsupported.operation,),
    "Templates": (create.operation, lists.operation, edit.operation, sync.operation),
    "Template check": (check.operation,),
    "Template library": (library.operation,),
    "Template analytics": (analytics.operation, insights.operation),
    "Subscriptions": (subscriptions.operation, deliveries.operation),
    "Event logs of messages": (message_events.operation,),
    "App settings": (settings.operation, identity.operation),
    "Users of an app": (users.operation,),
    "Account": (usage.operation,),
    "Health and ratings": (numbers.operation,),
    "Business profile": (profile.operation,),
    "Blocked users": (blocks.operation,),
    "Calls": (calling.operation,),
    "Flows": (flows.operation,),
    "Names of a number": (names.operation, usernames.operation),
    "Groups": (groups.operation,),
    "Payments": (payments.operation,),
}
ROUTES: Final[tuple[RouteRow, ...]] = tuple(
    replace(row, section=section)
    for section, subjects in _SECTIONS.items()
    for subject in subjects
    for row in subject.rows
)
