"""The settings page of one app: details, credentials, rates and preferences."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.settings.app_rates import read_app_rates_view
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import MAX_ADDITIONAL_KEYS, MAX_MINTED_TOKENS, AppKey, KeyStatus
from waypost.store.apps.keys import list_app_keys

TOKEN_LIFETIMES: Final = (("24", "in 24 hours"), ("12", "in 12 hours"), ("4", "in 4 hours"), ("1", "in 1 hour"))
"""Lifetimes of minted tokens. Source: facts 1.5."""


@dataclass(frozen=True, slots=True)
class ShownSecret:
    """A secret that the page shows once.

    Attributes:
        what: `token`, `key` or `minted`.
        notice: a notice above it.
    """

    what: str
    secret: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class RejectedForm:
    """A rejected form, with the values as typed.

    Attributes:
        wrong: errors by field.
    """

    values: dict[str, str] = field(default_factory=dict[str, str])
    wrong: dict[str, str] = field(default_factory=dict[str, str])


EMPTY_FORM: Final = RejectedForm()


async def show_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page without any secret."""
    return await app_page(tools, page_request)


async def app_page(
    tools: PageTools, page_request: PageRequest, *, shown: ShownSecret | None = None, typed: RejectedForm = EMPTY_FORM
) -> Response:
    """Return the page, with a secret that is shown once or a rejected form where given."""
    now_ms = tools.services.clock.now_ms()
    keys, minted = await tools.services.database.read(partial(_read_keys, app_id=page_request.app.id))
    active = [key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE]
    tokens = [(key, key.status(now_ms)) for key in reversed(minted)]
    rates = await read_app_rates_view(tools, page_request)
    return await tools.page(
        page_request, "settings/app.html", 400 if typed.wrong else 200,
        app=page_request.app, keys=active, minted=tokens[:20], lives=TOKEN_LIFETIMES, shown=shown,
        values=typed.values, wrong=typed.wrong, rates=rates,
        is_administrator=tools.is_administrator(page_request),
        most_keys=MAX_ADDITIONAL_KEYS, most_minted=MAX_MINTED_TOKENS,
        active_minted=sum(status is KeyStatus.ACTIVE for _, status in tokens),
    )  # fmt: skip


def _read_keys(connection: Connection, *, app_id: str) -> tuple[list[AppKey], list[AppKey]]:
    """Return additional keys and minted tokens, including expired and revoked ones."""
    return (list_app_keys(connection, app_id, minted=False), list_app_keys(connection, app_id, minted=True))
