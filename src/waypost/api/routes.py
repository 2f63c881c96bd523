"""The table of routes: every partner and messaging endpoint. Router and OpenAPI document are made from it."""

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

_SUBJECTS: Final[tuple[Operations, ...]] = (  # in the order of the reference
    login.operation,
    keys.operation,
    universal_tokens.operation,
    send.operation,
    passthrough.operation,
    marketing.operation,
    status.operation,
    endpoints.operation,
    apps.operation,
    links.operation,
    registration.operation,
    unsupported.operation,
    prefilled.operation,
    linked_apps.operation,
    create.operation,
    lists.operation,
    check.operation,
    edit.operation,
    sync.operation,
    library.operation,
    analytics.operation,
    insights.operation,
    subscriptions.operation,
    deliveries.operation,
    message_events.operation,
    settings.operation,
    identity.operation,
    users.operation,
    usage.operation,
    numbers.operation,
    profile.operation,
    blocks.operation,
    calling.operation,
    flows.operation,
    names.operation,
    usernames.operation,
    groups.operation,
    payments.operation,
)
ROUTES: Final[tuple[RouteRow, ...]] = tuple(row for subject in _SUBJECTS for row in subject.rows)
