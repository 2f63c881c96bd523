"""`waypost template`: templates of the demonstration's app, found by name or id, created, and awaited."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from waypost.cli.call_commands import IfMissing
from waypost.cli.connections import ENV_FILE, EnvFile, partner_client, poll, read_environment
from waypost.cli.errors import EXIT_USAGE, CommandError, fail, read_json_object, report_api_errors
from waypost.cli.output import AsJson, print_view
from waypost.domain.templates.template import TemplateStatus

NEEDED: Final = ("PARTNER_URL", "APP_ID", "APP_TOKEN")
APPROVED: Final = "APPROVED"
_IN_REVIEW: Final = ("PENDING", "IN_APPEAL", "SANDBOX_REQUESTED")
_REVIEW_POLL_INTERVAL_S: Final = 0.5
"""One template may be read ten times a second, by all who read it; the list ten times a minute."""
_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")
_DEFAULTS: Final = {"category": "UTILITY", "templateType": "TEXT", "languageCode": "en_US", "vertical": "General"}


async def list_templates(variables: Mapping[str, str], **filters: str) -> list[dict[str, Any]]:
    """Return the templates of the app; filters are those of the partner API, such as `status`."""
    status = filters.get("status", "").upper()
    if status and status not in TemplateStatus.__members__:
        raise CommandError("status", f"there is no status {status} of a template", ", ".join(TemplateStatus))
    query = f"?{urlencode(filters)}" if filters else ""
    return (await partner_client(variables).json("GET", f"{_path(variables)}{query}"))["templates"]


async def find_template(variables: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return a template by its element name or id; of several languages, an approved one."""
    rows = [row for row in await list_templates(variables, elementName=name) if row["elementName"] == name]
    rows = rows or await list_templates(variables, id=name)
    if not rows:
        approved = sorted({row["elementName"] for row in await list_templates(variables, status=APPROVED)})
        accepted = ", ".join(approved) or "none is approved yet; `waypost template create` creates one"
        raise CommandError("template", f"the app has no template with the name or id {name!r}", accepted)
    return next((row for row in rows if row["status"] == APPROVED), rows[0])


def template_form(
    name: str,
    content: str,
    examples: Sequence[str] = (),
    buttons: Sequence[str] = (),
    fields: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fields of a new template: parameters are {{1}}, {{2}} …, and `fields` replace those made here."""
    names = list(dict.fromkeys(_PLACEHOLDER.findall(content)))
    if len(examples) != len(names):
        accepted = f"one for each of {', '.join(f'{{{{{each}}}}}' for each in names)}" if names else "none"
        raise CommandError("example", f"the text has {len(names)} parameters, and {len(examples)} examples", accepted)
    values = dict(zip(names, examples, strict=True))
    form: dict[str, Any] = {**_DEFAULTS, "elementName": name, "content": content}
    form["example"] = _PLACEHOLDER.sub(lambda found: f"[{values[found[1]]}]", content)
    if buttons:
        form["buttons"] = [{"type": "QUICK_REPLY", "text": text} for text in buttons]
    return form | dict(fields or {})


async def create_template(
    variables: Mapping[str, str], form: Mapping[str, Any], *, if_missing: bool = False
) -> dict[str, Any]:
    """Create a template and return it, or with `if_missing` the existing one of its name, language and text."""
    fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in form.items()}
    if if_missing:
        language = fields.get("languageCode", _DEFAULTS["languageCode"])
        for row in await list_templates(variables, elementName=fields.get("elementName", "")):
            if (row["elementName"], row["languageCode"]) == (fields["elementName"], language):
                content = json.loads(row["containerMeta"]).get("data")
                if "content" in fields and content != fields["content"]:
                    rule = f"the template {row['elementName']} exists with the text {content!r}"
                    raise CommandError("name", rule, "another name, or the same text")
                return row
    return (await partner_client(variables).form("POST", _path(variables), fields))["template"]


async def wait_for_template(variables: Mapping[str, str], name: str, within_s: float) -> dict[str, Any]:
    """Wait until a template is approved, and return it; one that is not is an error."""
    row = await find_template(variables, name)
    path = f"{_path(variables)}/{row['id']}"

    async def read() -> dict[str, Any]:
        return (await partner_client(variables).json("GET", path))["template"]

    if row["status"] in _IN_REVIEW:
        row = await poll(read, lambda row: row["status"] not in _IN_REVIEW, within_s, _REVIEW_POLL_INTERVAL_S)
    if row["status"] == APPROVED:
        return row
    if row["status"] in _IN_REVIEW:
        reason, accepted = f" after {within_s:g} s", "a longer time; if the clock is frozen, `waypost clock run`"
    else:
        reason = f": {row['reason']}" if row.get("reason") else ""
        accepted = "a template that passes the review; change this one, or create another"
    raise CommandError("template", f"the template {row['elementName']} is {row['status']}{reason}", accepted)


def _path(variables: Mapping[str, str]) -> str:
    return f"/partner/app/{variables['APP_ID']}/templates"


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
