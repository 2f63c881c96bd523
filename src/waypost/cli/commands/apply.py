"""`waypost apply`: a set-up as a TOML file, compared with the store and applied."""

import asyncio
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from waypost.base.error_texts import error_text, toml_error_text
from waypost.cli.commands.accounts import read_secret
from waypost.cli.connections import use_admin_api
from waypost.cli.errors import EXIT_USAGE, CommandError, fail
from waypost.cli.output import AsJson, print_json
from waypost.client.api_client import ApiClient
from waypost.client.responses import ApiResponseError

_MARKS: Final = {"create": "+", "change": "~", "keep": "="}
_SECRETS: Final = ("password", "value", "token", "app_secret", "verify_token")
"""Members whose texts belong in a file of their own or in the environment."""
_OF_BODY: Final = "The body must be a JSON object of the call's fields: setup."
_VERBATIM: Final = "headers"
"""A table whose names are free, so that it is never a reference itself."""


def apply(
    file: Annotated[Path, typer.Argument(help="The TOML file; - is standard input.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create and change operator accounts, partners, apps, keys and subscriptions until they are as a file says."""
    document = resolve_references(read_document(file), base=Path() if str(file) == "-" else file.parent)

    async def call(client: ApiClient, _running: bool) -> Any:
        try:
            return await client.call("POST /admin/setup", setup=document, dry_run=dry_run)
        except ApiResponseError as error:  # the file is TOML, and its reader sent no body
            of_file = error.message.removeprefix(_OF_BODY)
            if of_file == error.message:
                raise
            raise CommandError("", f"{file}: {of_file}", "") from error

    result = asyncio.run(use_admin_api(call))
    if as_json:
        print_json(result)
    else:
        for line in describe(result):
            typer.echo(line)
    if result["failed"] is not None:
        step = result["failed"]
        fail(f"{step['kind']} {step['name']}: {step['error']} What is above is done; apply the same file again.")


def read_document(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file; exit if it cannot be read."""
    try:
        text = typer.get_text_stream("stdin").read() if str(file) == "-" else file.read_text(encoding="utf-8")
        return tomllib.loads(text)
    except (OSError, UnicodeError) as error:
        fail(f"{file} cannot be read: {error_text(error)}", code=EXIT_USAGE)
    except tomllib.TOMLDecodeError as error:
        fail(f"{file} {toml_error_text(error)}", code=EXIT_USAGE)


def resolve_references(value: Any, *, base: Path, path: str = "") -> Any:
    """Return a value of the document with each `{ env = "NAME" }` and `{ file = "PATH" }` replaced by its text.

    Relative paths of files start from `base`; `path` names the value in errors.
    """
    name = path.rpartition(".")[2]
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        if len(members) == 1 and name != _VERBATIM and (source := next(iter(members))) in ("env", "file"):
            return _read_reference(source, members[source], base, path)
        return {key: resolve_references(item, base=base, path=f"{path}.{key}") for key, item in members.items()}
    if isinstance(value, str) and name in _SECRETS and ".headers." not in path:
        fail(
            f'{path.lstrip(".")} is a secret: write {{ env = "NAME" }} or {{ file = "PATH" }}, and not its text',
            code=EXIT_USAGE,
        )
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast("Sequence[Any]", value)
        return [resolve_references(item, base=base, path=f"{path}[{index}]") for index, item in enumerate(items)]
    return value


def _read_reference(source: str, value: Any, base: Path, path: str) -> str:
    where = path.lstrip(".")
    if not isinstance(value, str):
        fail(f"{where}: {source} must be a text", code=EXIT_USAGE)
    if source == "env":
        text = os.environ.get(value, "")
        if not text:
            fail(f"{where}: the environment variable {value} is not set", code=EXIT_USAGE)
        return text
    return read_secret(None, base / value, name=where, prompt=False) or ""


def describe(result: Mapping[str, Any]) -> list[str]:
    """Return the lines to print about a plan, or about what was done."""
    steps = result["steps"]
    lines: list[str] = []
    for step in steps:
        changes = f": {', '.join(step['fields'])}" if step["fields"] else ""
        lines.append(f"{_MARKS[step['action']]} {step['kind']} {step['name']}{changes}")
        lines += [f"    {name}: {value}" for name, value in step.get("shown", {}).items()]
    count = {action: sum(step["action"] == action for step in steps) for action in _MARKS}
    verb = ("to create", "to change") if result["dry_run"] else ("created", "changed")
    lines.append(f"{count['create']} {verb[0]}, {count['change']} {verb[1]}, {count['keep']} unchanged")
    return lines
