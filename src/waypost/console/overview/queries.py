"""The data of the overview, read for one app of one partner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from waypost.base.clock import DAY_MS
from waypost.base.telemetry.limited_requests import LimitedRate
from waypost.console.overview.minute_counts import MinuteCounts, MinuteCountsCache
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App
from waypost.domain.partner import PartnerCredential
from waypost.store.accounts.credentials import CredentialKind, list_credentials
from waypost.store.console.overview import (
    AppQueueDepth,
    OnboardingProgress,
    OperatorActivity,
    StoredMinuteCounts,
    app_queue_depths,
    counts_by_minute,
    dead_letters_of_app,
    onboarding_progress,
    operator_activity,
    receivers_of_app,
    templates_with_problems,
)
from waypost.store.database import Database
from waypost.store.messages.lists import messages_of_app, template_names_by_ids
from waypost.store.queue.dead_letters import DeadLetter

REJECTED_TEMPLATE_MS: Final = 7 * DAY_MS
"""For this time a rejected template is listed under "Needs attention"."""
NEWEST_MESSAGES: Final = 8

_counts_caches: Final[WeakKeyDictionary[Database, MinuteCountsCache]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class OverviewData:
    """Data of the overview from the store.

    Attributes:
        names: names of the newest messages' templates, by id.
    """

    newest: list[dict[str, Any]]
    names: Mapping[str, str]
    receivers: list[dict[str, Any]]
    queues: list[AppQueueDepth]
    dead_letters: list[DeadLetter]
    problem_templates: list[Any]
    operator: OperatorActivity
    progress: OnboardingProgress
    secrets: list[PartnerCredential]


@dataclass(frozen=True, slots=True)
class AppOverview:
    """Current data of one app.

    Attributes:
        not_ready: failed readiness checks with their reasons.
        limited: the rates that have limited requests of the app in the last minutes.
        is_demo: true in `waypost dev`.
    """

    app: App
    now_ms: int
    counts: MinuteCounts
    data: OverviewData
    not_ready: Mapping[str, str]
    limited: Sequence[LimitedRate] = ()
    is_demo: bool = False


async def read_overview(tools: PageTools, page_request: PageRequest) -> AppOverview:
    """Read the overview's data."""
    parts, app, partner_id = tools.services, page_request.app, page_request.partner.id
    now_ms = parts.clock.now_ms()
    read = parts.database.read

    async def count(from_ms: int, before_ms: int, at_most: int) -> StoredMinuteCounts:
        return await read(counts_by_minute, partner_id, app.id, from_ms, before_ms, at_most)

    counts = _counts_caches.setdefault(parts.database, MinuteCountsCache()).get(app.id)
    await counts.update(count, now_ms)
    data = await read(partial(_read_data, app=app, partner_id=partner_id, now_ms=now_ms))
    checks = await parts.ready()
    not_ready = {name: reason for name, reason in checks.items() if reason}
    limited = tuple(parts.limited.limited_rates(app.id))
    return AppOverview(app, now_ms, counts, data, not_ready, limited, parts.demo_partner_id is not None)


def _read_data(connection: Connection, *, app: App, partner_id: int, now_ms: int) -> OverviewData:
    receivers = receivers_of_app(connection, partner_id, app.id)
    ids = [receiver["id"] for receiver in receivers]
    newest = messages_of_app(connection, partner_id, app.id, at_most=NEWEST_MESSAGES)
    return OverviewData(
        newest,
        template_names_by_ids(connection, partner_id, (message["template_id"] for message in newest)),
        receivers,
        app_queue_depths(connection, app, ids),
        dead_letters_of_app(connection, app, ids),
        templates_with_problems(connection, partner_id, app.business_account_id, now_ms - REJECTED_TEMPLATE_MS),
        operator_activity(connection, partner_id, app.id),
        onboarding_progress(connection, partner_id, app, ids),
        list_credentials(connection, CredentialKind.CLIENT_SECRET, partner_id),
    )
