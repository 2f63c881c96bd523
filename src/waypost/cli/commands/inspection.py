"""`waypost trace`, `waypost doctor` and `waypost tail`: one message, the installation, and what happens now."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

import typer

from waypost.base.clock import SystemClock
from waypost.cli.connections import ENV_FILE, find_control_api, use_admin_api
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.output import AsJson, print_json
from waypost.cli.tables import format_moment
from waypost.client.api_client import ApiClient
from waypost.client.simulated_events import add_simulated_events

REVEAL_HELP: Final = "Show text too, except one-time codes; the audit log records it."
MAX_RESPONSE_CHARS: Final = 100
"""Of a response body in the text output; `--json` prints all that is stored."""
_SHOWN_FIELDS: Final = (
    ("app", "app_id"),
    ("partner", "partner_id"),
    ("from", "source"),
    ("to", "destination"),
    ("kind", "kind"),
    ("template", "template_id"),
    ("request id", "request_id"),
    ("operator's id", "operator_message_id"),
)


def trace(
    message_id: Annotated[str, typer.Argument(help="Our id of the message, or the operator's.")],
    reveal: Annotated[bool, typer.Option("--reveal", help=REVEAL_HELP)] = False,
    as_json: AsJson = False,
) -> None:
    """Show one message's trace: request, queue, operator, events, callbacks with every attempt."""

    async def call(client: ApiClient, _running: bool) -> Any:
        path = "/admin/trace/{message_id}"
        view = await client.call(f"POST {path}/reveal" if reveal else f"GET {path}", message_id=message_id)
        await add_simulated_events(partial(find_control_api, ENV_FILE), view)
        return view

    view = asyncio.run(use_admin_api(call))
    if as_json:
        print_json(view)
        return
    for line in format_trace(view):
        typer.echo(line)


def format_trace(view: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the text output, oldest first within each section; times are UTC."""
    uncertain = " (unconfirmed)" if view["unconfirmed"] else ""
    yield f"message {view['id']}: {view['state']}{uncertain}"
    failure = None if view["code"] is None else _append_detail(str(view["code"]), view["reason"] or "")
    for name, value in (*((shown, view[field]) for shown, field in _SHOWN_FIELDS), ("failed", failure)):
        if value is not None:
            yield f"  {name:<14}{value}"
    if view["trace_id"] is not None:
        yield f"  {'trace':<14}{view['trace_id']}"
    yield f"{format_time(view['accepted_on_ms'])}  accepted"
    yield f"    {json.dumps(view['request'], ensure_ascii=False)}"
    for step in view["events"]:
        unchanged = "" if step["applied"] else " (no callback)"
        yield f"{format_time(step['at_ms'])}  {_append_detail(step['event'], step['detail'])}{unchanged}"
    yield from _describe_job(view["waiting"], "waits")
    for callback in view["callbacks"]:
        yield from _format_callback(callback)


def _format_callback(callback: Mapping[str, Any]) -> Iterator[str]:
    ended_ms, state = callback["ended_on_ms"], "delivered" if callback["delivered"] else "given up"
    delivery = "waits" if ended_ms is None else f"{state} {format_time(ended_ms)}"
    yield (
        f"{format_time(callback['created_on_ms'])}  callback {callback['event']}, subscription "
        f"{callback['subscription_id']}, number {callback['sequence']}: {delivery}"
    )
    yield f"    {callback['id']}"
    for number, attempt in enumerate(callback["attempts"], 1):
        outcome = attempt["error"] if attempt["status"] is None else f"status {attempt['status']}"
        body: str = attempt["response_body"]
        response = " ".join("".join(char if char.isprintable() else " " for char in body).split())
        response = response if len(response) <= MAX_RESPONSE_CHARS else response[: MAX_RESPONSE_CHARS - 1] + "…"
        attempted = f"attempt {number}, {attempt['kind']}: {outcome} after {attempt['duration_ms']} ms"
        yield f"    {format_time(attempt['at_ms'])}  {_append_detail(attempted, response)}"
    yield from _describe_job(callback["waiting"], "    waits")
    if callback["waiting"] is not None and callback["attempts"]:
        yield f"    to retry it now: waypost callbacks retry {callback['subscription_id']}"


def _describe_job(job: Mapping[str, Any] | None, prefix: str) -> Iterator[str]:
    if job is not None:
        defects = f", {job['defects']} defects" if job["defects"] else ""
        waits = (
            f"{prefix} in queue {job['queue']} at {job['position']}, {job['state'].replace('_', ' ')}, "
            f"due {format_time(job['due_ms'])}, tried {job['attempt']} times{defects}"
        )
        yield _append_detail(waits, job["note"])
        if job.get("wait"):
            until_ms = job["wait"]["until_ms"]
            until = f", until {format_time(until_ms)}" if until_ms else ""
            yield f"{prefix} because {job['wait']['text']}{until}"
        if job.get("failing_since_ms"):
            following = f"; next attempt {format_time(job['next_attempt_ms'])}" if job["next_attempt_ms"] else ""
            yield f"{prefix} for its receiver, failing since {format_time(job['failing_since_ms'])}{following}"


def _append_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def format_time(time_ms: int) -> str:
    """Return a time as text, in UTC."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"


RESULT_COLOURS: Final = {"ok": None, "warning": typer.colors.YELLOW, "wrong": typer.colors.RED}


def doctor(as_json: AsJson = False) -> None:
    """Check the installation: one line per check, with a fix hint; exit code 1 if something is wrong."""
    results = asyncio.run(use_admin_api(_run_checks))
    if as_json:
        print_json({"results": results})
    else:
        for result in results:
            mark = typer.style(f"{result['state']:<7}", fg=RESULT_COLOURS[result["state"]])
            typer.echo(f"{mark} {result['subject']}: {result['text']}")
            if result["fix_hint"]:
                typer.echo(f"        -> {result['fix_hint']}")
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


_DELIVERY_STATES: Final = {True: "delivered", False: "given up", None: "waiting"}
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
    """Reads the newest messages and callbacks of an app, and returns those that changed since the time before."""

    def __init__(self, client: ApiClient, app_id: str) -> None:
        self._client = client
        self._app_id = app_id
        self._known: dict[str, str] = {}
        self._has_read = False

    async def read(self) -> list[dict[str, Any]]:
        """Return changed messages and callbacks, oldest first."""
        messages = (await self._client.call("GET /admin/apps/{app_id}/messages", app_id=self._app_id))["messages"]
        callbacks = (await self._client.call("GET /admin/apps/{app_id}/callbacks", app_id=self._app_id))["callbacks"]
        rows: list[dict[str, Any]] = []
        for row in messages:  # its own kind, such as `text`, gets another name
            renamed = {"message_kind" if name == "kind" else name: value for name, value in row.items()}
            rows.append({"kind": "message", "at_ms": row["accepted_on_ms"], **renamed})
        rows += [
            {"kind": "callback", "at_ms": row["created_on_ms"], **row, "state": _DELIVERY_STATES[row["delivered"]]}
            for row in callbacks
        ]
        changed = [row for row in rows if self._known.get(row["id"]) != row["state"]]
        if self._has_read:  # a new state of an older one is from now
            now_ms = SystemClock().now_ms()
            changed = [{**row, "at_ms": now_ms} if row["id"] in self._known else row for row in changed]
        self._has_read = True
        self._known = {row["id"]: row["state"] for row in rows}
        return sorted(changed, key=lambda row: (row["at_ms"], row.get("sequence", 0)))


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
