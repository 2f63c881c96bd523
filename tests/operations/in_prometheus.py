"""The dashboard and the alerts in a real Prometheus, which scrapes a real service: `make alerts`.

Not part of the suite: Prometheus is a package of 100 MB.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest

from crashes.processes import free_port
from tests.docs.repository import ROOT
from tests.operations.test_monitoring_files import ALERTS, DASHBOARD
from waypost.client.dev_variables import read_variables

ALERT_FILE: Final = ROOT / "deploy" / "prometheus" / "alerts.yml"
WITHIN_S: Final = 120
VARIABLES: Final = {"$job": "waypost", "$instance": ".+", "$__rate_interval": "60s"}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def children() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return a function that starts a process, which is ended with the test."""
    with ExitStack() as stack:

        def start(*command: object, cwd: Path) -> subprocess.Popen[bytes]:
            environment = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
            with (cwd / f"{Path(str(command[0])).name}.log").open("ab") as log:
                process = subprocess.Popen(
                    [str(part) for part in command], cwd=cwd, env=environment, stdout=log, stderr=log
                )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        yield start


def wait_for(read: Callable[[], object], what: str) -> None:
    """Return once a value can be read that is not None."""
    until_s = time.monotonic() + WITHIN_S
    while time.monotonic() < until_s:
        if read() is not None:
            return
        time.sleep(0.3)
    raise AssertionError(f"not within {WITHIN_S} s: {what}")


def request(url: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, Any]:
    """Return the status and the JSON of a response; status 0 while nobody responds."""
    body = None if form is None else urlencode(form).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=WITHIN_S) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None
    except (OSError, ValueError):
        return 0, None


def make_traffic(variables: dict[str, str]) -> None:
    """Send a message, a request with a wrong key, a login with a wrong password, and one that is too large."""
    form = {
        "channel": "whatsapp", "source": variables["SOURCE"], "destination": variables["DESTINATION"],
        "src.name": variables["SRC_NAME"], "message": '{"type":"text","text":"Hello"}',
    }  # fmt: skip
    send = f"{variables['API_URL']}/wa/api/v1/msg"
    request(send, form, apikey=variables["API_KEY"])
    request(send, form, apikey="wrong")
    login = f"{variables['PARTNER_URL']}/partner/account/login"
    request(login, {"email": variables["EMAIL"], "password": "wrong"})
    request(send, form, apikey="a" * 100_000)


def test_every_panel_has_data_and_every_alert_can_be_evaluated(
    tmp_path: Path, children: Callable[..., subprocess.Popen[bytes]]
) -> None:
    waypost = (sys.executable, "-m", "waypost")
    children(*waypost, "dev", "--memory", "--port", 0, "--simulator-port", 0, cwd=tmp_path)
    env_file = tmp_path / "waypost-dev.env"
    wait_for(lambda: True if env_file.exists() else None, "the service runs")
    variables = read_variables(env_file)
    children(*waypost, "listen", cwd=tmp_path)
    service, port = urlsplit(variables["ADMIN_URL"]).netloc, free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{ALERT_FILE}]\n"
        f"scrape_configs: [{{job_name: waypost, static_configs: [{{targets: ['{service}']}}]}}]\n",
        encoding="utf-8",
    )
    children(
        "prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", cwd=tmp_path,
    )  # fmt: skip

    def query(expression: str) -> list[Any] | None:
        status, content = request(f"http://127.0.0.1:{port}/api/v1/query", {"query": expression})
        assert status in {0, 200}, f"{status}: {expression}"
        return content["data"]["result"] if status else None

    def panels_without_data() -> dict[str, str]:
        empty: dict[str, str] = {}
        for panel in DASHBOARD["panels"]:
            for target in panel.get("targets", ()):
                expression = target["expr"]
                for name, value in VARIABLES.items():
                    expression = expression.replace(name, value)
                if not query(expression):
                    empty[f"{panel['title']} {target['refId']}"] = expression
        return empty

    def all_have_data() -> bool | None:
        make_traffic(variables)
        # An open circuit is rare; a healthy service has no such sample, and the panel then shows 0.
        return True if panels_without_data().keys() <= {"Open circuits A"} else None

    wait_for(lambda: query("waypost_ready") or None, "Prometheus has scraped the service")
    try:
        wait_for(all_have_data, "each panel has data")
    except AssertionError as error:
        raise AssertionError(f"{error}: {panels_without_data()}") from error
    rules = request(f"http://127.0.0.1:{port}/api/v1/rules")[1]["data"]["groups"][0]["rules"]
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in ALERTS}
    assert {rule["health"] for rule in rules} == {"ok"}
    assert {rule["name"] for rule in rules if rule["state"] == "firing"} == set()


def test_each_alert_fires_for_its_problem_and_not_for_a_healthy_service() -> None:
    tested = Path(__file__).with_name("alerts.test.yml")

    for command in (["check", "rules", str(ALERT_FILE)], ["test", "rules", str(tested)]):
        ran = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, timeout=WITHIN_S)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {rule["alert"] for rule in ALERTS} == {
        line.split()[-1] for line in tested.read_text(encoding="utf-8").splitlines() if "alertname:" in line
    }
