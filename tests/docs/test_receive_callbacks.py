"""The page for writers of receivers: its receiver works, and its samples are what is sent."""

import json
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from crashes.processes import free_port
from tests.docs.repository import ROOT, samples_of
from tests.support.waiting import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "receive-callbacks.md"
BODIES: Final = [json.loads(sample) for sample in samples_of(PAGE, "json")]
OF_VERSION_2: Final = [body for body in BODIES if body.get("version") == 2]
KINDS: Final = [f"{body['type']} {body['payload'].get('type', '')}".rstrip() for body in OF_VERSION_2]


def test_shown_receiver_keeps_a_repeated_callback_once(address: str, box: Path) -> None:
    body = json.dumps(BODIES[0]).encode()

    statuses = [
        post(address, body, callback_id=callback_id, sequence=sequence)
        for callback_id, sequence in (("first", 1), ("first", 1), ("second", 2))
    ]

    assert statuses == [200, 200, 200]
    assert kept(box) == [("first", 1, body), ("second", 2, body)]


def test_shown_bodies_cover_each_kind_that_the_page_names() -> None:
    assert KINDS == [
        "account-event subscription-paused",
        "message-event enqueued",
        "message-event sent",
        "message-event failed",
        "message text",
        "message quick_reply",
        "message button_reply",
        "message image",
        "billing-event",
        "template-event status-update",
        "user-event sandbox-start",
    ]


@pytest.mark.parametrize("body", OF_VERSION_2, ids=KINDS)
def test_shown_body_has_the_outside_that_the_page_promises(body: dict[str, Any]) -> None:
    assert list(body) == ["app", "phone", "timestamp", "version", "type", "payload"]


def test_shown_body_of_version_3_is_the_operators_with_the_app() -> None:
    [body] = [body for body in BODIES if body not in OF_VERSION_2]

    assert list(body) == ["object", "entry", "gs_app_id"]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """Where the shown receiver keeps what it got."""
    return tmp_path / "callbacks.db"


@pytest.fixture
def address(tmp_path: Path, box: Path) -> Iterator[str]:
    """The shown receiver, running as a program of its own."""
    port = free_port()
    (program,) = samples_of(PAGE, "python")
    script = tmp_path / "receiver.py"
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, str(script), str(port), str(box)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as receiver:
        yield f"http://127.0.0.1:{port}/"
        receiver.terminate()


def post(address: str, body: bytes, *, callback_id: str, sequence: int) -> int:
    """Deliver one callback; tries for a while, because the receiver may still be starting."""
    headers = {"Waypost-Callback-Id": callback_id, "Waypost-Sequence": str(sequence)}
    request = urllib.request.Request(address, data=body, headers=headers)
    for _ in range(200):
        try:
            with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as answer:
                return answer.status
        except urllib.error.URLError:
            time.sleep(0.05)
    raise AssertionError("the receiver did not start")


def kept(box: Path) -> list[tuple[str, int, bytes]]:
    """What the receiver has in its box, in order."""
    connection = sqlite3.connect(box)
    try:
        return connection.execute("SELECT * FROM callbacks ORDER BY sequence").fetchall()
    finally:
        connection.close()
