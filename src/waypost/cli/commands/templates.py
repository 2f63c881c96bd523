"""`waypost template`: templates of the demonstration's app."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from waypost.cli.call_commands import IfMissing
from waypost.cli.commands.template_calls import (
    NEEDED,
    create_template,
    list_templates,
    template_form,
    wait_for_template,
)
from waypost.cli.connections import ENV_FILE, EnvFile, read_environment
from waypost.cli.errors import EXIT_USAGE, fail, report_api_errors
from waypost.cli.json_file import read_json_object
from waypost.cli.output import AsJson, print_view

template = typer.Typer(help="Templates of the demonstration's app.", no_args_is_help=True)
MAX_WAIT_S: Final = 3600


@template.command("list")
def list_all(
    status: Annotated[str | None, typer.Option(help="Only these, such as APPROVED. [default: all]")] = None,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """List templates: their names, ids and statuses."""
    filters = {"status": status} if status else {}
    rows = _run(env_file, lambda variables: list_templates(variables, **filters))
    shown = rows if as_json else [{"reason": None, **row} for row in rows]  # only rejected ones have it
    print_view({"templates": shown}, as_json=as_json)


@template.command("create")
def create(
    name: Annotated[str | None, typer.Argument(help="Its name: lower case letters, digits and _.")] = None,
    content: Annotated[str | None, typer.Argument(metavar="TEXT", help="The text, with {{1}} for a parameter.")] = None,
    example: Annotated[
        list[str] | None, typer.Option(help="What a parameter may be, for the review; repeatable, in order.")
    ] = None,
    button: Annotated[list[str] | None, typer.Option(help="The text of a quick reply; repeatable, in order.")] = None,
    category: Annotated[str, typer.Option(help="UTILITY, MARKETING or AUTHENTICATION.")] = "UTILITY",
    language: Annotated[str, typer.Option(help="Its language.")] = "en_US",
    header: Annotated[str | None, typer.Option(help="A line above the text.")] = None,
    footer: Annotated[str | None, typer.Option(help="A line below the text.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Create the template of a JSON file instead, an object with the partner API's fields; - is standard "
                "input."
            )
        ),
    ] = None,
    if_missing: IfMissing = False,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Create a template, and submit it for review: a text with parameters and quick replies, or any type by a file."""
    if (name is None or content is None) == (file is None) or (file is not None and name is not None):
        fail(
            "give a name and a text, or --file, as in `waypost template create hello 'Hi {{1}}!' --example Ann`",
            code=EXIT_USAGE,
        )
    more = {"category": category, "languageCode": language, "header": header, "footer": footer}
    fields = {field: value for field, value in more.items() if value is not None}

    read = None if file is None else read_json_object(file, "--file")

    async def call(variables: Mapping[str, str]) -> dict[str, Any]:
        form = read or template_form(name or "", content or "", example or (), button or (), fields)
        return await create_template(variables, form, if_missing=if_missing)

    _print_template(_run(env_file, call), as_json=as_json)


@template.command("wait")
def wait(
    name: Annotated[str, typer.Argument(help="Its name or id.")],
    timeout_s: Annotated[int, typer.Option("--timeout", min=0, max=MAX_WAIT_S, help="Seconds to wait at most.")] = 60,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Wait until a template is approved: exit code 0, or 1 if it is rejected or the time has passed."""
    _print_template(_run(env_file, lambda variables: wait_for_template(variables, name, timeout_s)), as_json=as_json)


def _run(env_file: Path, call: Callable[[Mapping[str, str]], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        return await call(read_environment(env_file, *NEEDED))

    with report_api_errors(address=f"PARTNER_URL in {env_file}", credential=f"APP_TOKEN in {env_file}"):
        return asyncio.run(run())


def _print_template(row: Mapping[str, Any], *, as_json: bool) -> None:
    shown = {"id": row["id"], "name": row["elementName"], "status": row["status"]}
    print_view(row if as_json else shown, as_json=as_json)
