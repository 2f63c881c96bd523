"""The settings as they are shown, without a secret: `waypost config`, and the first lines of a service."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
import typer

from waypost.cli.errors import load_settings
from waypost.cli.output import AsJson, print_json
from waypost.cli.tables import align_columns

if TYPE_CHECKING:
    from waypost.config import Settings


_DATABASE_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?]*)(?::[^@/?]*)?@)?(?P<place>[^@?]*)(?:\?(?P<query>[^@]*))?"
)
_SHOWN_PARAMETERS: Final = ("host", "hostaddr", "port", "dbname", "user")


def startup_lines(settings: "Settings") -> Iterator[str]:
    """Yield what a service prints before it listens: the place of its store, its connections, its rates."""
    from waypost.domain.rates import describe_rates

    if settings.database_url is None:
        yield f"store: SQLite file {settings.store_path.absolute()}"
    else:
        yield f"store: {mask_database_url(settings.database_url)}"
        each = "" if settings.workers == 1 else f"{settings.workers} workers with "
        yield f"connections to PostgreSQL: {each}{settings.connection_budget.describe()}"
    yield f"rates: {describe_rates(settings.rate_limits, on=settings.rates)}"


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


ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file of settings. [default: WAYPOST_CONFIG, or waypost.toml if it is there]"),
]
_SET: Final = "set"


def config(config_file: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show each setting, its value and its source; of a secret only that it is set."""
    found = load_settings(config_file)
    rows = setting_rows(found.settings, found.sources)
    if as_json:
        print_json({"settings": rows})
        return
    table = [("SETTING", "VALUE", "SOURCE"), *((row["setting"], _text_of(row["value"]), row["source"]) for row in rows)]
    for line in align_columns(table):
        typer.echo(line)


def setting_rows(settings: "Settings", sources: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return name, value and source of each setting, in the order of their table."""
    values = msgspec.to_builtins(settings, enc_hook=str)
    return [
        {"setting": name, "value": _shown_value(name, value), "source": sources.get(name, "default")}
        for name, value in values.items()
    ]


def _shown_value(name: str, value: Any) -> Any:
    from waypost.config import SECRETS

    if name in SECRETS and value is not None:
        return mask_database_url(value) if name == "database_url" else _SET
    return mask_url(value) if isinstance(value, str) and "://" in value else value


def _text_of(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(cast("list[str]", value)) or "empty"
    return str(value)
