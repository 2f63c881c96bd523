"""The page about monitoring: its commands, run in order, and its alarms, which name existing metrics."""

import os
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S
from waypost.client.dev_variables import read_variables
from waypost.operations.metrics import METRICS, MetricKind

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
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(running),
            "SERVICE_URL": f"{parts.scheme}://{parts.netloc}",
            "MESSAGE_ID": send_message(variables),
        },
    )

    assert completed.returncode == 0, completed.stderr
    assert '"status":"ok"' in completed.stdout
    assert '"status":"ready"' in completed.stdout
    assert "# TYPE waypost_queue_depth gauge" in completed.stdout
    assert "callback" in completed.stdout or "accepted" in completed.stdout
    assert '"trace_id": "' in completed.stdout


def test_alarms_of_the_page_name_existing_metrics_and_labels() -> None:
    shown = {
        f"waypost_{row.name}{end}": {"process", *row.labels}
        for row in METRICS
        for end in (("_bucket", "_sum", "_count") if row.kind is MetricKind.HISTOGRAM else ("",))
    }
    named = re.findall(r"\b(waypost_\w+)(?:\{(\w+)[=~!])?", PAGE.read_text(encoding="utf-8"))

    assert len(named) > 5
    assert [name for name, _ in named if name not in shown] == []
    assert [label for name, label in named if label and label not in shown[name]] == []


def send_message(variables: dict[str, str]) -> str:
    """Send a message through the demonstration, and return its id."""
    form = {
        "channel": "whatsapp",
        "source": variables["SOURCE"],
        "destination": variables["DESTINATION"],
        "src.name": variables["SRC_NAME"],
        "message": '{"type":"text","text":"Hello"}',
    }
    request = urllib.request.Request(
        f"{variables['API_URL']}/wa/api/v1/msg", urlencode(form).encode(), {"apikey": variables["API_KEY"]}
    )
    with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as response:
        return re.findall(rb'"messageId":"([^"]+)"', response.read())[0].decode()
