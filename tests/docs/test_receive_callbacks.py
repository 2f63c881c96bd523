"""The page about receiving callbacks: its receiver works, and its samples match what is sent."""

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
from tests.support.polling import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "receive-callbacks.md"
BODIES: Final = [json.loads(sample) for sample in samples_of(PAGE, "json")]
OF_VERSION_2: Final = [body for body in BODIES if body.get("version") == 2]
KINDS: Final = [f"{body['type']} {body['payload'].get('type', '')}".rstrip() for body in OF_VERSION_2]


def test_shown_receiver_stores_a_repeated_callback_once(receiver_url: str, store_file: Path) -> None:
    body = json.dumps(BODIES[0]).encode()

    statuses = [
        post(receiver_url, body, callback_id=callback_id, sequence=sequence)
        for callback_id, sequence in (("first", 1), ("first", 1), ("second", 2))
    ]

    assert statuses == [200, 200, 200]
    assert stored_callbacks(store_file) == [("first", 1, body), ("second", 2, body)]


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
def test_shown_body_has_the_envelope_that_the_page_documents(body: dict[str, Any]) -> None:
    assert list(body) == ["app", "phone", "timestamp", "version", "type", "payload"]


def test_shown_body_of_version_3_is_the_operators_with_the_app() -> None:
    [body] = [body for body in BODIES if body not in OF_VERSION_2]

    assert list(body) == ["object", "entry", "gs_app_id"]


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """The file in which the shown receiver stores callbacks."""
    return tmp_path / "callbacks.db"


@pytest.fixture
def receiver_url(tmp_path: Path, store_file: Path) -> Iterator[str]:
    """The URL of the shown receiver, which runs as a process."""
    port = free_port()
    (program,) = samples_of(PAGE, "python")
    script = tmp_path / "receiver.py"
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, str(script), str(port), str(store_file)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as receiver:
        yield f"http://127.0.0.1:{port}/"
        receiver.terminate()


def post(url: str, body: bytes, *, callback_id: str, sequence: int) -> int:
    """Deliver a callback; retry for a while, because the receiver may still be starting."""
    headers = {"Waypost-Callback-Id": callback_id, "Waypost-Sequence": str(sequence)}
    request = urllib.request.Request(url, data=body, headers=headers)
    for _ in range(200):
        try:
            with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as response:
                return response.status
        except urllib.error.URLError:
            time.sleep(0.05)
    raise AssertionError("the receiver did not start")


def stored_callbacks(store_file: Path) -> list[tuple[str, int, bytes]]:
    """Return the callbacks that the receiver has stored, in order."""
    connection = sqlite3.connect(store_file)
    try:
        return connection.execute("SELECT * FROM callbacks ORDER BY sequence").fetchall()
    finally:
        connection.close()
