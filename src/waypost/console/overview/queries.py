"""The data of the overview, read for one app of one partner."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from waypost.base.clock import DAY_MS
from waypost.console.overview.minute_counts import Tallies, Tally
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App
from waypost.store.accounts.credentials import CredentialKind, PartnerCredential, credentials_of
from waypost.store.console.overview import (
    Begun,
    Counts,
    Line,
    Waiting,
    begun,
    counts_by_minute,
    dead_letters_of_app,
    hurt_templates,
    line_of_app,
    receivers_of_app,
    waiting_of_app,
)
from waypost.store.database import Database
from waypost.store.messages.lists import messages_of_app, names_of_templates
from waypost.store.queue.jobs import DeadLetter

REFUSED_FOR_MS: Final = 7 * DAY_MS
"""For this time a rejected template is listed under "Needs attention"."""
NEWEST: Final = 8

_tallies: Final[WeakKeyDictionary[Database, Tallies]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Standing:
    """Data of the overview from the store.

    Attributes:
        names: names of the newest messages' templates, by id.
    """

    newest: list[dict[str, Any]]
    names: Mapping[str, str]
    receivers: list[dict[str, Any]]
    waiting: list[Waiting]
    aside: list[DeadLetter]
    hurt: list[Any]
    line: Line
    begun: Begun
    secrets: list[PartnerCredential]


@dataclass(frozen=True, slots=True)
class Scene:
    """Current data of one app.

    Attributes:
        not_ready: failed readiness checks with their reasons.
    """

    app: App
    now_ms: int
    tally: Tally
    standing: Standing
    not_ready: Mapping[str, str]


async def scene_of(desk: PageTools, visit: PageRequest) -> Scene:
    """Read the overview's data."""
    parts, app, partner_id = desk.parts, visit.app, visit.partner.id
    now_ms = parts.clock.now_ms()
    read = parts.database.read

    async def count(from_ms: int, before_ms: int, at_most: int) -> Counts:
        return await read(counts_by_minute, partner_id, app.id, from_ms, before_ms, at_most)

    counts = _tallies.setdefault(parts.database, Tallies()).of(app.id)
    await counts.look(count, now_ms)
    data = await read(partial(_standing, app=app, partner_id=partner_id, now_ms=now_ms))
    checks = await parts.ready()
    return Scene(app, now_ms, counts, data, {name: reason for name, reason in checks.items() if reason})


def _standing(connection: Connection, *, app: App, partner_id: int, now_ms: int) -> Standing:
    receivers = receivers_of_app(connection, partner_id, app.id)
    ids = [receiver["id"] for receiver in receivers]
    newest = messages_of_app(connection, partner_id, app.id, at_most=NEWEST)
    return Standing(
        newest,
        names_of_templates(connection, partner_id, (message["template_id"] for message in newest)),
        receivers,
        waiting_of_app(connection, app, ids),
        dead_letters_of_app(connection, app, ids),
        hurt_templates(connection, partner_id, app.business_account_id, now_ms - REFUSED_FOR_MS),
        line_of_app(connection, partner_id, app.id),
        begun(connection, partner_id, app.id, ids),
        credentials_of(connection, CredentialKind.CLIENT_SECRET, partner_id),
    )
