"""`waypost doctor`: checks of the installation, one line each, with a fix hint for each problem."""

import asyncio
from typing import Any

import typer

from waypost.cli.connections import use_admin_api
from waypost.cli.output import AsJson, print_json
from waypost.client.api_client import ApiClient

# fmt: off
RESULT_MARKS = {
    "ok":      ("ok     ", None),
    "warning": ("warning", typer.colors.YELLOW),
    "wrong":   ("wrong  ", typer.colors.RED),
}
# fmt: on


def doctor(as_json: AsJson = False) -> None:
    """Check the installation: one line per check, with a fix hint; exit code 1 if something is wrong."""
    results = asyncio.run(use_admin_api(_run_checks))
    if as_json:
        print_json({"results": results})
    else:
        for result in results:
            _print_result(result)
    if any(result["state"] == "wrong" for result in results):
        raise typer.Exit(1)


async def _run_checks(client: ApiClient, running: bool) -> list[dict[str, Any]]:
    response = await client.call("GET /admin/doctor")
    service = {
        "subject": "service",
        "state": "ok" if running else "wrong",
        "text": "it is running" if running else "it is not running; these results are from its store",
        "fix_hint": "" if running else "start it with: waypost serve",
    }
    return [service, *response["results"]]


def _print_result(result: dict[str, Any]) -> None:
    mark, colour = RESULT_MARKS[result["state"]]
    typer.echo(f"{typer.style(mark, fg=colour)} {result['subject']}: {result['text']}")
    if result["fix_hint"]:
        typer.echo(f"        -> {result['fix_hint']}")
