"""Rates of an app on its settings page: those in force, and where each comes from."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.rates import read_stored_rate

RATE_SOURCES: Final = {  # source in the response of the API: the text and the state of its badge
    "documented": ("documented", "default"),
    "setting":    ("setting", "setting"),
    "app":        ("this app", "of this app"),
}  # fmt: skip
_UNITS: Final = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


@dataclass(frozen=True, slots=True)
class RateView:
    """A row of the table of an app's rates.

    Attributes:
        name: the row of the table of rates.
        limit: the requests and their period that apply, such as `10 per minute`.
        documented: likewise, as documented.
        source: text and state of a badge.
        is_own: the app has a rate of its own.
    """

    name: str
    per: str
    limit: str
    documented: str
    source: tuple[str, str]
    is_own: bool


@dataclass(frozen=True, slots=True)
class AppRatesView:
    """The rates of an app.

    Attributes:
        limits_requests: False if the service applies no rates.
    """

    limits_requests: bool
    rows: list[RateView]

    @property
    def options(self) -> list[tuple[str, str]]:
        """The rows, for a list to choose from."""
        return [(row.name, f"{row.name}, now {row.limit}") for row in self.rows]

    @property
    def changed(self) -> list[RateView]:
        """The rows whose rate the app or the service has set."""
        return [row for row in self.rows if row.source != RATE_SOURCES["documented"]]

    @property
    def unchanged(self) -> list[RateView]:
        """The rows with the documented rate."""
        return [row for row in self.rows if row.source == RATE_SOURCES["documented"]]

    @property
    def has_own(self) -> bool:
        """True if the app has a rate of its own."""
        return any(row.is_own for row in self.rows)


async def read_app_rates_view(tools: PageTools, page_request: PageRequest) -> AppRatesView:
    """Return the rates of the app in the path."""
    response = await tools.services.apis.admin.json("GET", rates_path(page_request))
    return AppRatesView(response["limits_requests"], [_rate_view(row) for row in response["rates"]])


def format_limit(name: str, text: str) -> str:
    """Return a rate as people read it, such as `10 per minute` or `20 in 90 s`.

    Args:
        name: its row.
        text: as the admin API writes it, such as `10/60s`.
    """
    rate = read_stored_rate(name, text)
    period_s = rate.within_ms // 1000
    unit = _UNITS.get(period_s)
    return f"{rate.at_most} per {unit}" if unit else f"{rate.at_most} in {period_s} s"


def _rate_view(row: dict[str, Any]) -> RateView:
    name, own = row["rate"], row["app"]
    return RateView(
        name=name,
        per=row["per"],
        limit=format_limit(name, own or row["service"]),
        documented=format_limit(name, row["documented"]),
        source=RATE_SOURCES[row["source"]],
        is_own=own is not None,
    )


def rates_path(page_request: PageRequest) -> str:
    """Return the path of the app's rates at the admin API."""
    return f"/admin/apps/{page_request.app.id}/rates"
