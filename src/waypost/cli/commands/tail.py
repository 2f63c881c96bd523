"""`waypost tail`: the messages of an app and its callbacks as they change, from the admin API."""

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from waypost.base.clock import SystemClock
from waypost.cli.connections import use_admin_api
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.tables import format_moment
from waypost.client.api_client import ApiClient

INTERVAL_S: Final = 0.5
"""Time between two readings of the newest messages and callbacks."""


def tail(
    app_id: Annotated[str | None, typer.Option("--app", help="Id of the app. [default: the only one]")] = None,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="First show so many of the newest ones before now.")
    ] = 10,
    follow: Annotated[bool, typer.Option(help="Go on until Ctrl+C.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, for programs.")] = False,
) -> None:
    """Show messages and callbacks of an app as they happen: their states, and whether receivers accept them."""

    async def call(client: ApiClient, running: bool) -> None:
        if follow and not running:
            fail("the service is not running; start it, or use --no-follow for what its store has")
        chosen = app_id or await _only_app(client)
        changes = ChangeReader(client, chosen)
        found = await changes.read()
        found = found[max(len(found) - lines, 0) :]
        while True:
            for change in found:
                typer.echo(json.dumps(change, ensure_ascii=False) if as_json else format_change(change))
            if not follow:
                return
            await asyncio.sleep(INTERVAL_S)
            found = await changes.read()

    try:
        asyncio.run(use_admin_api(call))
    except KeyboardInterrupt:
        raise typer.Exit from None


class ChangeReader:
    """Reads the newest messages and callbacks of an app, and returns those that changed since the time before.

    Args:
        client: of the admin API.
        app_id: the app.
    """

    def __init__(self, client: ApiClient, app_id: str) -> None:
        self._client = client
        self._app_id = app_id
        self._known: dict[str, str] = {}
        self._has_read = False

    async def read(self) -> list[dict[str, Any]]:
        """Return changed messages and callbacks, oldest first."""
        messages = (await self._client.call("GET /admin/apps/{app_id}/messages", app_id=self._app_id))["messages"]
        callbacks = (await self._client.call("GET /admin/apps/{app_id}/callbacks", app_id=self._app_id))["callbacks"]
        rows = [
            *({"kind": "message", "at_ms": row["accepted_on_ms"], **_rename_kind(row)} for row in messages),
            *(
                {"kind": "callback", "at_ms": row["created_on_ms"], **row, "state": _delivery_state(row)}
                for row in callbacks
            ),
        ]
        changed = [row for row in rows if self._known.get(row["id"]) != row["state"]]
        if self._has_read:  # a new state of an older one is from now
            now_ms = SystemClock().now_ms()
            changed = [{**row, "at_ms": now_ms} if row["id"] in self._known else row for row in changed]
        self._has_read = True
        self._known = {row["id"]: row["state"] for row in rows}
        return sorted(changed, key=_order_of)


def format_change(change: Mapping[str, Any]) -> str:
    """Return one line about a message or a callback, for people."""
    at = format_moment(change["at_ms"])
    if change["kind"] == "message":
        error = f"  {change['code']} {change['reason'] or ''}".rstrip() if change["code"] else ""
        return (
            f"{at}  message   {change['id']}  {change['state']:<10}  {change['message_kind']} to "
            f"{change['destination']}{error}"
        )
    about = f"  of {change['message_id']}" if change["message_id"] else ""
    return (
        f"{at}  callback  {change['id']}  {change['state']:<10}  {change['event']}{about} to subscription "
        f"{change['subscription_id']}"
    )


async def _only_app(client: ApiClient) -> str:
    apps = (await client.call("GET /admin/apps"))["apps"]
    if len(apps) != 1:
        fail(f"there are {len(apps)} apps: choose one with --app; `waypost app list` lists them", code=EXIT_USAGE)
    return apps[0]["id"]


def _rename_kind(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with its own kind, such as `text`, under another name."""
    return {("message_kind" if name == "kind" else name): value for name, value in row.items() if name != "at_ms"}


def _delivery_state(row: Mapping[str, Any]) -> str:
    match row["delivered"]:
        case True:
            return "delivered"
        case False:
            return "given up"
        case _:
            return "waiting"


def _order_of(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["at_ms"], row.get("sequence", 0)
