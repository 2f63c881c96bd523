"""The place of the store, as text without its password."""

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from waypost.config import Settings

_DATABASE_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?]*)(?::[^@/?]*)?@)?(?P<place>[^@?]*)(?:\?(?P<query>[^@]*))?"
)
_SHOWN_PARAMETERS: Final = ("host", "hostaddr", "port", "dbname", "user")


def describe_store(settings: "Settings") -> str:
    """Return the place of the store: the SQLite file, or the PostgreSQL database without its password."""
    if settings.database_url is None:
        return f"SQLite file {settings.store_path.absolute()}"
    return mask_database_url(settings.database_url)


def describe_connections(settings: "Settings") -> str | None:
    """Return how many connections the service opens to PostgreSQL; None for SQLite."""
    if settings.database_url is None:
        return None
    each = "" if settings.workers == 1 else f"{settings.workers} workers with "
    return f"{each}{settings.connection_budget.describe()}"


def mask_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, which may be credentials; `…` stands for each."""
    scheme, _, rest = url.partition("://")
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    hidden = "?…" if len(place) < len(rest) else ""
    if "@" in place:
        place = f"…@{place.rpartition('@')[2]}"
    return f"{scheme}://{place}{hidden}"


def mask_database_url(url: str) -> str:
    """Return user, hosts and database of a URL in libpq's format, and nothing that may be a part of a password.

    A URL in which `@` stands at several places is not shown: the text after the first may belong to a password.
    """
    parts = _DATABASE_URL.fullmatch(url)
    if parts is None:
        return "postgresql://… (hidden: characters of its password are not percent-encoded)"
    user = f"{parts['user']}@" if parts["user"] else ""
    shown = [one for one in (parts["query"] or "").split("&") if one.partition("=")[0] in _SHOWN_PARAMETERS]
    return f"postgresql://{user}{parts['place']}" + (f"?{'&'.join(shown)}" if shown else "")
