"""`waypost config`: each setting, its value, and its source."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from waypost.cli.commands.store_place import mask_database_url, mask_url
from waypost.cli.errors import load_settings_with_sources
from waypost.cli.output import AsJson, print_json
from waypost.cli.tables import align_columns

if TYPE_CHECKING:
    from waypost.config import Settings

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file of settings. [default: WAYPOST_CONFIG, or waypost.toml if it is there]"),
]
_SET: Final = "set"


def config(config_file: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show each setting, its value and its source; of a secret only that it is set."""
    found = load_settings_with_sources(config_file)
    rows = setting_rows(found.settings, found.sources)
    if as_json:
        print_json({"settings": rows})
        return
    table = [("SETTING", "VALUE", "SOURCE"), *((row["setting"], _text_of(row["value"]), row["source"]) for row in rows)]
    for line in align_columns(table):
        typer.echo(line)


def setting_rows(settings: "Settings", sources: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return name, value and source of each setting, in the order of their table."""
    values = settings.model_dump(mode="json")
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
