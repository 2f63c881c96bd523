"""The commands of the page about connecting the Cloud API, run in a shell; a simulator is the operator."""

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
from tests.support.polling import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "connect-the-cloud-api.md"
CONTROL_TOKEN: Final = "operators-control-token-of-32-and-more"
WABA_ID: Final = "102290129340398"
NUMBER_ID: Final = "106540352242922"
SOURCE: Final = "15550001111"
MY_PHONE: Final = "15551234567"
SUBSCRIBE: Final = "waypost account subscribe $WABA_ID"
SECRETS: Final = {
    "token.txt": "the-system-users-token",
    "app-secret.txt": "the-apps-secret",
    "verify-token.txt": "made-up-by-me",
}


@pytest.fixture
def free_ports() -> list[int]:
    """Ports for the service, the operator, and the simulator that the page starts."""
    return [free_port() for _ in range(3)]


@pytest.fixture
def folder(newcomers_folder: Path, free_ports: list[int]) -> Path:
    """The folder of a reader at the start: the secrets, and `cloud.env`."""
    for name, secret in SECRETS.items():
        (newcomers_folder / name).write_text(f"{secret}\n")
    service, operator, simulator = free_ports
    lines = {
        "export WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
        "export WAYPOST_ADMIN_TOKEN": "ad310f5e" * 8,
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
        "PLAY_PORT": str(simulator),
    }
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    (newcomers_folder / "cloud.env").write_text(text)
    return newcomers_folder


@pytest.fixture
def operator(folder: Path, free_ports: list[int]) -> Iterator[str]:
    """A simulator with an account and a number, to which a phone has written."""
    url = f"http://127.0.0.1:{free_ports[1]}"
    command = [sys.executable, "-m", "waypost", "simulator", "--port", str(free_ports[1])]
    environment = clean_environment() | {"WAYPOST_CONTROL_TOKEN": CONTROL_TOKEN}
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
    by_hand = configure_webhook(operator)
    commands = "\n".join(samples_of(PAGE, "sh")).replace(SUBSCRIBE, by_hand + SUBSCRIBE, 1)
    script = "\n".join(["set -e", "trap 'kill $(jobs -p)' EXIT", commands])

    completed = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )

    output = completed.stdout + completed.stderr
    assert completed.returncode == 0, output
    assert json.loads((folder / "sent.json").read_text())["status"] == "submitted"
    delivered = control(operator, "GET", "deliveries")["deliveries"]
    assert [message["to"] for message in delivered] == [MY_PHONE], output
    assert [line for line in expected_doctor_output(folder) if line not in output] == [], output
    left = [line.split()[1] for line in output.splitlines() if line.startswith("left ")]
    assert left == ["cloud", "play"]
    assert not [name for name, secret in SECRETS.items() if secret in output]


def configure_webhook(operator: str) -> str:
    """Return a command for what the page tells the reader to do by hand in the app's configuration."""
    webhook = json.dumps({"callback_uri": "$URL", "verify_token": SECRETS["verify-token.txt"]})
    body = webhook.replace('"', '\\"').replace("$URL", "$WAYPOST_PUBLIC_URL/operator/webhook/cloud")
    headers = f"-H 'Authorization: Bearer {CONTROL_TOKEN}' -H 'Content-Type: application/json'"
    return f'curl -sS --fail-with-body -X PUT {operator}/control/apps/100/webhook {headers} -d "{body}" > /dev/null\n'


def expected_doctor_output(folder: Path) -> list[str]:
    """Return the lines of the page, with the URL and the messaging limit of this run."""
    shown = next(sample for sample in samples_of(PAGE, "text") if sample.startswith("ok "))
    [public_url] = re.findall(r"PUBLIC_URL=(\S+)", (folder / "cloud.env").read_text())
    shown = shown.replace("https://waypost.acme.example", public_url)
    return shown.replace("TIER_250", "TIER_UNLIMITED").splitlines()


def control(url: str, method: str, path: str, body: Any = None) -> Any:
    """Send a request to the simulator control API, and return the body of the response."""
    request = urllib.request.Request(
        f"{url}/control/{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {CONTROL_TOKEN}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as response:
        return json.loads(response.read())


def clean_environment() -> dict[str, str]:
    """Return the environment without our settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
