"""`waypost simulator --scenario`: applied faults stay counted after the process is killed."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.polling import HANGS_AFTER_S

WABA: Final = "1000000000000001"
NUMBER: Final = "2000000000000002"
CONTROL_TOKEN = "c0de1a5f" * 8
SCENARIO: Final = """
[[faults]]
on = "call"
call = "messages.send"
when = { next = 3 }
what = { error = 131016 }
"""


def test_killed_simulator_continues_its_scenario(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(SCENARIO, encoding="utf-8")
    with running_simulator(tmp_path) as (process, url):
        account = {"name": "One", "token": "t", "app_id": "3", "app_secret": "s"}
        send_request("PUT", f"{url}/control/accounts/{WABA}", account)
        number = {"waba_id": WABA, "phone_number": "15550001111", "name": "Shop"}
        send_request("PUT", f"{url}/control/numbers/{NUMBER}", number)
        before = [send(url) for _ in range(2)]
        process.kill()

    with running_simulator(tmp_path) as (_, url):
        after = [send(url) for _ in range(2)]

    assert (before, after) == ([503, 503], [503, 200])


def test_invalid_scenario_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(SCENARIO.replace("131016", '"busy"'), encoding="utf-8")

    result = subprocess.run(command(), cwd=tmp_path, env=environment(), capture_output=True, text=True)

    assert result.returncode == 1
    assert result.stderr == (
        "waypost: the scenario three.toml is wrong: faults[0].what.error: cannot be 'busy'; "
        "accepted: a whole number from 0 to 9999999\n"
    )


@contextmanager
def running_simulator(folder: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start a simulator with the scenario on a free port; kill it at the end."""
    with subprocess.Popen(command(), cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()


def command() -> list[str]:
    arguments = ["simulator", "--port", "0", "--data", "data", "--scenario", "three.toml"]
    return [sys.executable, "-m", "waypost", *arguments]


def environment() -> dict[str, str]:
    """Return the environment without this machine's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    return {**inherited, "WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN}


def send(url: str) -> int:
    """Send a text; return the status of the response."""
    message = {"messaging_product": "whatsapp", "to": "15551234567", "type": "text"}
    messages_url = f"{url}/v25.0/{NUMBER}/messages"
    return send_request("POST", messages_url, {**message, "text": {"body": "Hello"}}, token="t")


def send_request(method: str, url: str, body: dict[str, Any], *, token: str = CONTROL_TOKEN) -> int:
    """Send a request; return the status of the response."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
