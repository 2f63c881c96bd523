"""`waypost trace`: one message's trace, as text or as JSON."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

import typer

from waypost.cli.connections import ENV_FILE, find_control_api, use_admin_api
from waypost.cli.output import AsJson, print_json
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
