"""`waypost callbacks` on a store without a running service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.builders import INSTANCE_KEY
from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink
from tests.support.polling import poll_until
from tests.support.store_locations import SqliteLocation
from waypost.base.clock import SystemClock
from waypost.cli.command_tree import app


async def make_store(folder: Path) -> str:
    """Make a store with one subscription and one delivered callback; return the callback's id."""
    sink = CallbackSink()
    await sink.open()
    service = CallbackService(folder, SqliteLocation(folder), SystemClock())
    await service.open()
    await service.subscribe(sink.url, "orders")
    await service.emit_callbacks("15551234567")
    await sink.wait_until(lambda: len(sink.accepted) == 1)
    await poll_until(lambda: service.admin("GET", "queues"), lambda queues: not queues["callbacks"])
    await service.close()
    await sink.close()
    return sink.accepted[0].callback_id


def test_commands_show_rotate_report_and_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callback_id = asyncio.run(make_store(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAYPOST_DATA", str(tmp_path))
    monkeypatch.setenv("WAYPOST_SECRET_KEY", INSTANCE_KEY)
    monkeypatch.delenv("WAYPOST_ADMIN_TOKEN", raising=False)

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(app, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    [listed] = run("callbacks", "list")["subscriptions"]
    assert (listed["tag"], listed["state"], listed["waiting"]) == ("orders", "active", 0)
    number = str(listed["id"])
    old = run("callbacks", "key", number)["key"]
    assert run("callbacks", "rotate", number, "--keep-old-for-s", "60")["old_key"] == old
    [row] = run("callbacks", "report", "--subscription", number, "--from", "2020-01-01T00:00Z")["subscriptions"]
    assert (row["attempts"], row["by_status"]) == (1, {"2xx": 1})
    assert run("callbacks", "show", callback_id)["delivered"] is True
    shown = CliRunner().invoke(app, ["callbacks", "show", callback_id]).stdout.partition("attempts:\n")[2].splitlines()
    assert shown[0].split() == ["AT", "KIND", "STATUS", "ERROR", "MS", "RESPONSE"]
    assert len(shown) == 2
    assert max(map(len, shown)) <= 100
    assert run("callbacks", "check", number)["delivered"] is False  # its receiver is closed
    assert run("callbacks", "resume", number)["was_paused"] is False
    replay = ("replay", "--subscription", number, "--recipient", "15551234567", "--delivered")
    assert run(*replay, "--dry-run") == {"would_replay": 1, "still_waiting": 0}
    assert run(*replay) == {"replayed": 1, "still_waiting": 0}
    [listed] = run("callbacks", "list")["subscriptions"]
    assert listed["replaying"] == 1


def test_invalid_time_is_reported_in_one_line() -> None:
    result = CliRunner().invoke(app, ["callbacks", "report", "--from", "yesterday"])

    assert result.exit_code == 2
    assert result.stderr == "waypost: --from must be a time such as 2026-11-22T10:00Z\n"
