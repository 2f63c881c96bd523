"""The page about existing clients: its commands reach a receiver, and its table names what there is."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from tests.docs.repository import ROOT, journey_of
from tests.support.polling import HANGS_AFTER_S
from waypost.cli.command_tree import app

PAGE: Final = ROOT / "docs" / "how-to" / "point-an-existing-client.md"


class Receiver(HTTPServer):
    """A receiver of an existing client: responds 200 to everything."""

    def __init__(self) -> None:
        self.callbacks: Queue[dict[str, Any]] = Queue()
        callbacks = self.callbacks

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                callbacks.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = Thread(target=receiver.serve_forever)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


def test_commands_lead_to_a_callback_at_the_clients_receiver(running_checkout: Path, receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/callbacks"
    outputs = [
        subprocess.run(
            ["bash", "-c", journey_of(PAGE)],
            cwd=running_checkout,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(running_checkout), "RECEIVER_URL": url},
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER_S,
            check=False,
        ).stdout
        for _ in range(2)
    ]

    callback = receiver.callbacks.get(timeout=HANGS_AFTER_S)
    assert (callback["type"], callback["payload"]["type"]) == ("message", "text"), outputs
    assert all('"token":"' in output and '"templates":[' in output for output in outputs), outputs
    assert f'"url":"{url}"' in outputs[0]
    assert "tag" in outputs[1]


def test_table_names_variables_and_commands_that_exist(running_checkout: Path) -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    text = "\n".join(rows)
    variables = set(re.findall(r"^([A-Z_]+)=", (running_checkout / "waypost-dev.env").read_text(), re.MULTILINE))
    named = {name for name in re.findall(r"`([A-Z_]+)`", text) if not name.startswith("WAYPOST_")}
    commands = set(re.findall(r"`waypost ([a-z ]+)`", text))

    assert named - variables == set()
    assert {"EMAIL", "API_KEY", "APP_TOKEN", "SOURCE"} <= named
    assert len(commands) > 3
    for command in commands:
        result = CliRunner().invoke(app, [*command.split(), "--help"], env={"PATH": os.environ["PATH"]})
        assert result.exit_code == 0, command
