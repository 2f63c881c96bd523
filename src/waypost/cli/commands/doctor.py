"""`waypost doctor`: is everything in place? One line per check, each with its remedy."""

import asyncio
import json
from typing import Annotated, Any

import typer

from waypost.cli.admin_client import with_door
from waypost.client.api_client import ApiClient

# fmt: off
MARKS = {
    "ok":      ("ok     ", None),
    "warning": ("warning", typer.colors.YELLOW),
    "wrong":   ("wrong  ", typer.colors.RED),
}
# fmt: on


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Findings for programs.")] = False) -> None:
    """Is everything in place? One line per check, each with its remedy; exit code 1 when something is wrong."""
    findings = asyncio.run(with_door(_examined))
    if as_json:
        typer.echo(json.dumps({"findings": findings}, indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            _print(finding)
    if any(finding["state"] == "wrong" for finding in findings):
        raise typer.Exit(1)


async def _examined(door: ApiClient, running: bool) -> list[dict[str, Any]]:
    told = await door.json("GET", "/admin/doctor")
    service = {
        "about": "service",
        "state": "ok" if running else "wrong",
        "text": "it answers" if running else "it is not running; this is what its store says",
        "remedy": "" if running else "start it with: waypost serve",
    }
    return [service, *told["findings"]]


def _print(finding: dict[str, Any]) -> None:
    mark, colour = MARKS[finding["state"]]
    typer.echo(f"{typer.style(mark, fg=colour)} {finding['about']}: {finding['text']}")
    if finding["remedy"]:
        typer.echo(f"        -> {finding['remedy']}")
