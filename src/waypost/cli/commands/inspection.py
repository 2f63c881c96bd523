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
    yield from _format_fields(
        ("app", view["app_id"]),
        ("partner", view["partner_id"]),
        ("from", view["source"]),
        ("to", view["destination"]),
        ("kind", view["kind"]),
        ("template", view["template_id"]),
        ("request id", view["request_id"]),
        ("operator's id", view["operator_message_id"]),
        ("failed", _describe_failure(view)),
        ("trace", view["trace_id"]),
    )
    yield f"{format_time(view['accepted_on_ms'])}  accepted"
    yield f"    {json.dumps(view['request'], ensure_ascii=False)}"
    for step in view["events"]:
        unchanged = "" if step["applied"] else " (no callback)"
        yield f"{format_time(step['at_ms'])}  {_append_detail(step['event'], step['detail'])}{unchanged}"
    yield from _describe_job(view["waiting"], "waits")
    for callback in view["callbacks"]:
        yield from _format_callback(callback)


def _format_callback(callback: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{format_time(callback['created_on_ms'])}  callback {callback['event']}, subscription "
        f"{callback['subscription_id']}, number {callback['sequence']}: {_describe_delivery(callback)}"
    )
    yield f"    {callback['id']}"
    for number, attempt in enumerate(callback["attempts"], 1):
        outcome = attempt["error"] if attempt["status"] is None else f"status {attempt['status']}"
        response = _shorten_to_line(attempt["response_body"])
        yield (
            (
                f"    {format_time(attempt['at_ms'])}  attempt {number}, {attempt['kind']}: {outcome} after "
                f"{attempt['duration_ms']} ms"
            )
            + (f": {response}" if response else "")
        )
    yield from _describe_job(callback["waiting"], "    waits")
    if callback["waiting"] is not None and callback["attempts"]:
        yield f"    to retry it now: waypost callbacks retry {callback['subscription_id']}"


def _describe_job(job: Mapping[str, Any] | None, prefix: str) -> Iterator[str]:
    if job is not None:
        defects = f", {job['defects']} defects" if job["defects"] else ""
        yield (
            f"{prefix} in queue {job['queue']} at {job['position']}, {job['state'].replace('_', ' ')}, "
            f"due {format_time(job['due_ms'])}, tried {job['attempt']} times{defects}"
            + (f": {job['note']}" if job["note"] else "")
        )
        if job.get("failing_since_ms"):
            next_ms = job["next_attempt_ms"]
            yield (
                f"{prefix} for its receiver, failing since {format_time(job['failing_since_ms'])}"
                + (f"; next attempt {format_time(next_ms)}" if next_ms else "")
            )


def _format_fields(*fields: tuple[str, Any]) -> Iterator[str]:
    for name, value in fields:
        if value is not None:
            yield f"  {name:<14}{value}"


def _describe_failure(view: Mapping[str, Any]) -> str | None:
    if view["code"] is None:
        return None
    return _append_detail(str(view["code"]), view["reason"] or "")


def _describe_delivery(callback: Mapping[str, Any]) -> str:
    if callback["ended_on_ms"] is None:
        return "waits"
    state = "delivered" if callback["delivered"] else "given up"
    return f"{state} {format_time(callback['ended_on_ms'])}"


def _append_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _shorten_to_line(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= MAX_RESPONSE_CHARS else line[: MAX_RESPONSE_CHARS - 1] + "…"


def format_time(time_ms: int) -> str:
    """Return a time as text, in UTC."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"


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
