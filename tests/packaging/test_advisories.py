"""`make advisories` names pins with an advisory, and says in one line when it cannot ask."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.docs.repository import ROOT
from tests.support.closed_port import closed_port

PINS = "# pins\naiohttp==3.12.14\nmsgspec==0.22.0  # a comment\n"


class Database(BaseHTTPRequestHandler):
    """A database that knows advisories by name and version."""

    answer: ClassVar[bytes | None] = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        known = {("aiohttp", "3.12.14"): [{"id": "GHSA-0001"}, {"id": "GHSA-0002"}]}
        found = [known.get((query["package"]["name"], query["version"])) for query in body["queries"]]
        content = self.answer or json.dumps({"results": [{"vulns": ids} if ids else {} for ids in found]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def database() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Database)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run_check(database: str, folder: Path, pins: str = PINS) -> "subprocess.CompletedProcess[str]":
    (folder / "pins.txt").write_text(pins)
    command = [sys.executable, "-m", "tests.advisories", "--database", database, "--pins", str(folder / "pins.txt")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_pin_with_an_advisory_is_named_and_fails(database: str, tmp_path: Path) -> None:
    run = run_check(database, tmp_path)

    assert run.returncode == 1
    assert run.stderr == "aiohttp 3.12.14 has GHSA-0001, GHSA-0002\n"
    assert run.stdout == "2 pins checked, 1 with an advisory\n"


def test_pins_without_an_advisory_pass(database: str, tmp_path: Path) -> None:
    run = run_check(database, tmp_path, "msgspec==0.22.0\n")

    assert (run.returncode, run.stdout) == (0, "1 pins checked, 0 with an advisory\n")


@pytest.mark.parametrize("answer", [None, b"<html>", b"{}", b'{"results": []}'])
def test_database_that_cannot_be_read_is_one_line(
    database: str, tmp_path: Path, answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "answer", answer)
    with closed_port() as port:
        run = run_check(database if answer else f"http://127.0.0.1:{port}", tmp_path)

    assert run.returncode == 0
    assert run.stderr == ""
    assert run.stdout.startswith("the pins were not checked: ")
    assert run.stdout.count("\n") == 1


def test_the_merge_gate_runs_the_check() -> None:
    assert "make advisories" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
