"""Whether settings are fit for real traffic."""

from waypost.assembly.dev import demo
from waypost.config import STAGES, Settings


class NotFit(Exception):
    """A setting is missing, or one is known to everybody; the text says the remedy."""


def check_fit(settings: Settings) -> None:
    """Return when these settings are fit for real traffic.

    Raises:
        NotFit: one is missing, or known to everybody, or cannot be with another.
    """
    if settings.secret_key is None:
        raise NotFit(
            "secret_key is not set: set WAYPOST_SECRET_KEY to 64 random hex digits "
            "and keep it, because sealed secrets can be opened with no other"
        )
    if settings.secret_key == demo.INSTANCE_KEY or settings.admin_token == demo.ADMIN_TOKEN:
        raise NotFit("secret_key or admin_token is the demonstration's, which everybody knows; set others")
    if settings.database_url is None and settings.workers > 1:
        raise NotFit(
            "an SQLite store is worked by one process: leave --workers out, "
            "or set WAYPOST_DATABASE_URL to a PostgreSQL database"
        )
    if settings.database_url is None and settings.stages != STAGES:
        raise NotFit(
            "an SQLite store is worked by one process, which has to do everything: leave --stages out, "
            "or set WAYPOST_DATABASE_URL to a PostgreSQL database"
        )
