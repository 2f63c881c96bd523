"""The page that connects the Cloud API, copied line by line into a shell; a simulator is the operator."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from crashes.processes import free_port
from tests.docs.repository import ROOT, samples_of
from tests.support.waiting import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "connect-the-cloud-api.md"
CONTROL_TOKEN: Final = "operators-control-token-of-32-and-more"
WABA_ID: Final = "102290129340398"
NUMBER_ID: Final = "106540352242922"
SOURCE: Final = "15550001111"
MY_PHONE: Final = "15551234567"
SECRETS: Final = {
    "token.txt": "the-system-users-token",
    "app-secret.txt": "the-apps-secret",
    "verify-token.txt": "made-up-by-me",
}


@pytest.fixture
def free_ports() -> list[int]:
    """Of the service, of the operator, and of the simulator that the page starts."""
    return [free_port() for _ in range(3)]


@pytest.fixture
def folder(tmp_path: Path, free_ports: list[int]) -> Path:
    """What a reader has at the beginning: the command, the secrets, and `cloud.env`."""
    command = tmp_path / ".venv" / "bin" / "waypost"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m waypost "$@"\n')
    command.chmod(0o755)
    for name, secret in SECRETS.items():
        (tmp_path / name).write_text(f"{secret}\n")
    service, operator, play = free_ports
    lines = {
        "export WAYPOST_SECRET_KEY": "5ec7" * 16,
        "export WAYPOST_ADMIN_TOKEN": "ad31" * 16,
        "export WAYPOST_PUBLIC_URL": f"http://127.0.0.1:{service}",
        "export WAYPOST_PORT": str(service),
        "export WAYPOST_PARTNER_PASSWORD": "Correct-horse-1",
        "OPERATOR_URL": f"http://127.0.0.1:{operator}",
        "OPERATOR_APP_ID": "100",
        "WABA_ID": WABA_ID,
        "NUMBER_ID": NUMBER_ID,
        "SOURCE": SOURCE,
        "EMAIL": "ada@acme.example",
        "MY_PHONE": MY_PHONE,
        "PLAY_PORT": str(play),
    }
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    (tmp_path / "cloud.env").write_text(text)
    return tmp_path


@pytest.fixture
def operator(folder: Path, free_ports: list[int]) -> Iterator[str]:
    """A simulator that has what the console has made, and a phone that has written."""
    url = f"http://127.0.0.1:{free_ports[1]}"
    command = [sys.executable, "-m", "waypost", "simulator", "--port", str(free_ports[1])]
    environment = plain() | {"WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN}
    with subprocess.Popen(
        [*command, "--data", "operator"], cwd=folder, env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"listens at" in process.stdout.readline()
        account = {
            "name": "Acme",
            "token": SECRETS["token.txt"],
            "app_id": "100",
            "app_secret": SECRETS["app-secret.txt"],
        }
        control(url, "PUT", f"accounts/{WABA_ID}", account)
        number = {"waba_id": WABA_ID, "phone_number": SOURCE, "name": "Acme Shop"}
        control(url, "PUT", f"numbers/{NUMBER_ID}", number)
        control(url, "POST", f"phones/{MY_PHONE}/messages", {"to": SOURCE, "text": "Hello"})
        yield url
        process.terminate()


def test_page_leads_to_a_delivered_message_to_the_simulator_and_back(folder: Path, operator: str) -> None:
    script = "\n".join(["set -e", "trap 'kill $(jobs -p)' EXIT", *samples_of(PAGE, "sh")])

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=plain(),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )

    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert json.loads((folder / "sent.json").read_text())["status"] == "submitted"
    delivered = control(operator, "GET", "deliveries")["deliveries"]
    assert [one["to"] for one in delivered] == [MY_PHONE], told
    assert [line for line in shown_by_the_doctor(folder) if line not in told] == [], told
    assert '"left": "cloud"' in told
    assert '"left": "play"' in told
    assert not [name for name, secret in SECRETS.items() if secret in told]


def shown_by_the_doctor(folder: Path) -> list[str]:
    """The lines of the page, with the address and the messaging limit of this run."""
    shown = next(one for one in samples_of(PAGE, "text") if one.startswith("ok "))
    [address] = re.findall(r"PUBLIC_URL=(\S+)", (folder / "cloud.env").read_text())
    shown = shown.replace("https://waypost.acme.example", address)
    return shown.replace("TIER_250", "TIER_UNLIMITED").splitlines()


def control(url: str, method: str, path: str, body: Any = None) -> Any:
    """One request to a control door."""
    request = urllib.request.Request(
        f"{url}/control/{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {CONTROL_TOKEN}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as answer:
        return json.loads(answer.read())


def plain() -> dict[str, str]:
    """The environment without any setting of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
