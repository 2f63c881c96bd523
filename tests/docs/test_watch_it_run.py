"""The page about monitoring: its commands, run in order, and its table of alerts."""

import os
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import yaml

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S
from waypost.client.dev_variables import read_variables

PAGE: Final = ROOT / "docs" / "how-to" / "watch-it-run.md"


def test_shown_commands_print_health_metrics_and_the_trace_of_a_message(running: Path) -> None:
    variables = read_variables(running / "waypost-dev.env")
    parts = urlsplit(variables["ADMIN_URL"])
    shell = "\n".join(["set -e", *samples_of(PAGE, "sh")])

    completed = subprocess.run(
        ["bash", "-c", shell],
        cwd=running,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(running), "SERVICE_URL": f"{parts.scheme}://{parts.netloc}"},
    )

    assert completed.returncode == 0, completed.stderr
    assert '"status":"ok"' in completed.stdout
    assert '"status":"ready"' in completed.stdout
    assert "# TYPE waypost_queue_depth gauge" in completed.stdout
    assert "callback" in completed.stdout or "accepted" in completed.stdout
    assert '"trace_id": "' in completed.stdout


def test_table_of_the_page_has_every_alert() -> None:
    alerts = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    rows = {
        f"| [{rule['alert']}](respond-to-alerts.md#{rule['alert'].lower()}) | {rule['labels']['severity']} "
        f"| {rule['annotations']['description']} |"
        for rule in alerts["groups"][0]["rules"]
    }

    shown = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| [Waypost")]
    assert set(shown) == rows
