"""`waypost callbacks` on a store that no service has open."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.builders import INSTANCE_KEY
from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink
from tests.support.stores import SqlitePlace
from tests.support.waiting import patiently
from waypost.base.clock import SystemClock
from waypost.cli.main import app


async def told_once(folder: Path) -> str:
    """A store with one subscription that was told one thing; gives the callback's id."""
    sink = CallbackSink()
    await sink.open()
    teller = Teller(folder, SqlitePlace(folder), SystemClock())
    await teller.open()
    await teller.subscribe(sink.url, "orders")
    await teller.tell("15551234567")
    await sink.wait_until(lambda: len(sink.taken) == 1)
    await patiently(lambda: teller.admin("GET", "queues"), lambda queues: not queues["callbacks"])
    await teller.close()
    await sink.close()
    return sink.taken[0].callback_id


def test_commands_show_rotate_report_and_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callback_id = asyncio.run(told_once(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAYPOST_DATA", str(tmp_path))
    monkeypatch.setenv("WAYPOST_SECRET_KEY", INSTANCE_KEY)
    monkeypatch.delenv("WAYPOST_ADMIN_TOKEN", raising=False)

    def run(*words: str) -> Any:
        result = CliRunner().invoke(app, ["callbacks", *words])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    [listed] = run("list")["subscriptions"]
    assert (listed["tag"], listed["state"], listed["waiting"]) == ("orders", "active", 0)
    number = str(listed["id"])
    old = run("key", number)["key"]
    assert run("rotate", number, "--keep-old-for-s", "60")["old_key"] == old
    [line] = run("report", "--subscription", number, "--from", "2020-01-01T00:00Z")["subscriptions"]
    assert (line["attempts"], line["by_status"]) == (1, {"2xx": 1})
    assert run("show", callback_id)["delivered"] is True
    assert run("check", number)["taken"] is False  # its receiver is gone
    assert run("resume", number)["was_paused"] is False
    chosen = ("replay", "--subscription", number, "--recipient", "15551234567", "--delivered")
    assert run(*chosen, "--dry-run") == {"would_replay": 1, "still_waiting": 0}
    assert run(*chosen) == {"replayed": 1, "still_waiting": 0}
    [listed] = run("list")["subscriptions"]
    assert listed["replaying"] == 1


def test_time_that_is_none_is_refused_in_one_line() -> None:
    result = CliRunner().invoke(app, ["callbacks", "report", "--from", "yesterday"])

    assert result.exit_code == 2
    assert result.stderr == "waypost: --from must be a time such as 2026-11-22T10:00Z\n"
