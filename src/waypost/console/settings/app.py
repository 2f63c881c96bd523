"""The settings page of one app: details, credentials and preferences."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import MOST_MINTED, MOST_SECOND_KEYS, AppKey, KeyStatus
from waypost.store.apps.keys import app_keys_of

LIVES: Final = (("24", "in 24 hours"), ("12", "in 12 hours"), ("4", "in 4 hours"), ("1", "in 1 hour"))
"""Lifetimes of minted tokens. Source: facts 1.5."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A secret that the page shows once.

    Attributes:
        what: `token`, `key` or `minted`.
        said: a notice above it.
    """

    what: str
    secret: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """A rejected form, with the values as typed.

    Attributes:
        wrong: errors by field.
    """

    values: dict[str, str] = field(default_factory=dict[str, str])
    wrong: dict[str, str] = field(default_factory=dict[str, str])


NOTHING: Final = Typed()


async def show_app(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page without any secret."""
    return await app_page(desk, visit)


async def app_page(
    desk: PageTools, visit: PageRequest, *, shown: Shown | None = None, typed: Typed = NOTHING
) -> Response:
    """Return the page, with a secret that is shown once or a rejected form where given."""
    now_ms = desk.parts.clock.now_ms()
    keys, minted = await desk.parts.database.read(partial(_keys, app_id=visit.app.id))
    active = [key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE]
    tokens = [(key, key.status(now_ms)) for key in reversed(minted)]
    return await desk.page(
        visit, "settings/app.html", 400 if typed.wrong else 200,
        app=visit.app, keys=active, minted=tokens[:20], lives=LIVES, shown=shown,
        values=typed.values, wrong=typed.wrong,
        most_keys=MOST_SECOND_KEYS, most_minted=MOST_MINTED,
        active_minted=sum(status is KeyStatus.ACTIVE for _, status in tokens),
    )  # fmt: skip


def _keys(connection: Connection, *, app_id: str) -> tuple[list[AppKey], list[AppKey]]:
    """Return additional keys and minted tokens, including expired and revoked ones."""
    return (app_keys_of(connection, app_id, minted=False), app_keys_of(connection, app_id, minted=True))
