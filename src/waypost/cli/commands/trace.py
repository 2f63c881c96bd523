"""`waypost trace`: one message's whole way, for people or as JSON."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from waypost.cli.admin_client import with_door
from waypost.client.api_client import ApiClient

REVEAL: Final = "Show text too, except one-time codes; the audit log records it."
MOST_CHARACTERS: Final = 100
"""Of an answer, in what people read; `--json` has all that is kept."""


def trace(
    message_id: Annotated[str, typer.Argument(help="Our id of the message, or the operator's.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything, as JSON.")] = False,
    reveal: Annotated[bool, typer.Option("--reveal", help=REVEAL)] = False,
) -> None:
    """Show one message's whole way: request, journal, operator, news, callbacks with every attempt."""

    async def call(door: ApiClient, _running: bool) -> Any:
        path = f"/admin/trace/{quote(message_id, safe='')}"
        return await (door.json("POST", f"{path}/reveal", {}) if reveal else door.json("GET", path))

    found = asyncio.run(with_door(call))
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for line in way(found):
        typer.echo(line)


def way(found: Mapping[str, Any]) -> Iterator[str]:
    """The lines that people read, oldest first within each part; times are UTC."""
    is_doubted = " (we doubt it)" if found["unconfirmed"] else ""
    yield f"message {found['id']}: {found['state']}{is_doubted}"
    yield from _fields(
        ("app", found["app_id"]),
        ("partner", found["partner_id"]),
        ("from", found["source"]),
        ("to", found["destination"]),
        ("kind", found["kind"]),
        ("template", found["template_id"]),
        ("operator's id", found["operator_message_id"]),
        ("failed", _failure(found)),
        ("trace", found["trace_id"]),
    )
    yield f"{at(found['accepted_on_ms'])}  accepted"
    yield f"    {json.dumps(found['request'], ensure_ascii=False)}"
    for one in found["news"]:
        moved = "" if one["moved"] else " (told to nobody)"
        yield f"{at(one['at_ms'])}  {_with(one['news'], one['detail'])}{moved}"
    yield from _describe_job(found["waiting"], "waits")
    for callback in found["callbacks"]:
        yield from _callback(callback)


def _callback(callback: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{at(callback['created_on_ms'])}  callback {callback['news']}, subscription "
        f"{callback['subscription_id']}, number {callback['sequence']}: {_ended(callback)}"
    )
    yield f"    {callback['id']}"
    for number, one in enumerate(callback["attempts"], 1):
        came = one["error"] if one["status"] is None else f"answered {one['status']}"
        began = _one_line(one["answer"])
        yield (
            f"    {at(one['at_ms'])}  attempt {number}, {one['kind']}: {came} after {one['duration_ms']} ms"
            + (f": {began}" if began else "")
        )
    yield from _describe_job(callback["waiting"], "    waits")


def _describe_job(job: Mapping[str, Any] | None, begin: str) -> Iterator[str]:
    if job is not None:
        defects = f", {job['defects']} defects" if job["defects"] else ""
        yield (
            f"{begin} in queue {job['queue']} at {job['position']}, {job['state'].replace('_', ' ')}, "
            f"due {at(job['due_ms'])}, tried {job['attempt']} times{defects}"
            + (f": {job['note']}" if job["note"] else "")
        )
        if job.get("failing_since_ms"):
            next_ms = job["next_attempt_ms"]
            yield (
                f"{begin} for its receiver, failing since {at(job['failing_since_ms'])}"
                + (f"; next attempt {at(next_ms)}" if next_ms else "")
            )


def _fields(*fields: tuple[str, Any]) -> Iterator[str]:
    for name, value in fields:
        if value is not None:
            yield f"  {name:<14}{value}"


def _failure(found: Mapping[str, Any]) -> str | None:
    if found["code"] is None:
        return None
    return _with(str(found["code"]), found["reason"] or "")


def _ended(callback: Mapping[str, Any]) -> str:
    if callback["ended_on_ms"] is None:
        return "waits"
    how = "taken" if callback["delivered"] else "given up"
    return f"{how} {at(callback['ended_on_ms'])}"


def _with(word: str, more: str) -> str:
    return f"{word}: {more}" if more else word


def _one_line(text: str) -> str:
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 1] + "…"


def at(time_ms: int) -> str:
    """A time as people read it, in UTC."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + "Z"
