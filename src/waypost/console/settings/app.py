"""One app: what it is, its credentials and its preferences."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import MOST_MINTED, MOST_SECOND_KEYS, AppKey, KeyStatus
from waypost.store.apps.keys import app_keys_of

LIVES: Final = (("24", "in 24 hours"), ("12", "in 12 hours"), ("4", "in 4 hours"), ("1", "in an hour"))
"""Of minted tokens. Source: facts 1.5."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown on the page once, because somebody has asked for it.

    Attributes:
        what: `token`, `key` or `minted`.
    """

    what: str
    secret: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Typed:
    """A form that was refused, as it was typed.

    Attributes:
        wrong: what is wrong, by the name of the form's field.
    """

    values: dict[str, str] = field(default_factory=dict[str, str])
    wrong: dict[str, str] = field(default_factory=dict[str, str])


NOTHING: Final = Typed()


async def show_app(desk: PageTools, visit: PageRequest) -> Response:
    """The page, without any secret."""
    return await app_page(desk, visit)


async def app_page(
    desk: PageTools, visit: PageRequest, *, shown: Shown | None = None, typed: Typed = NOTHING
) -> Response:
    """The page, perhaps with a secret that is shown this once, or a form that was refused."""
    now_ms = desk.parts.clock.now_ms()
    keys, minted = await desk.parts.database.read(partial(_keys, app_id=visit.app.id))
    active = [key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE]
    held = [(key, key.status(now_ms)) for key in reversed(minted)]
    return await desk.page(
        visit, "settings/app.html", 400 if typed.wrong else 200,
        app=visit.app, keys=active, minted=held[:20], lives=LIVES, shown=shown,
        values=typed.values, wrong=typed.wrong,
        most_keys=MOST_SECOND_KEYS, most_minted=MOST_MINTED,
        active_minted=sum(status is KeyStatus.ACTIVE for _, status in held),
    )  # fmt: skip


def _keys(connection: Connection, *, app_id: str) -> tuple[list[AppKey], list[AppKey]]:
    """Second keys and minted tokens, also those that are worth nothing any more."""
    return (app_keys_of(connection, app_id, minted=False), app_keys_of(connection, app_id, minted=True))
