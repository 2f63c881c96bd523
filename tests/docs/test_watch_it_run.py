"""The page about watching a service: its commands, typed one after the other, and its alarms, which name what there is."""

import os
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from tests.docs.repository import ROOT, samples_of
from tests.support.waiting import HANGS_AFTER_S
from waypost.client.dev_variables import read_variables
from waypost.operations.metrics import METRICS, MetricKind

PAGE: Final = ROOT / "docs" / "how-to" / "watch-it-run.md"


def test_shown_commands_tell_that_it_works_what_it_does_and_what_became_of_a_message(running: Path) -> None:
    known = read_variables(running / "waypost-dev.env")
    parts = urlsplit(known["ADMIN_URL"])
    shell = "\n".join(["set -e", *samples_of(PAGE, "sh")])

    done = subprocess.run(
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
            "MESSAGE_ID": sent(known),
        },
    )

    assert done.returncode == 0, done.stderr
    assert '"status":"ok"' in done.stdout
    assert '"status":"ready"' in done.stdout
    assert "# TYPE waypost_queue_depth gauge" in done.stdout
    assert "callback" in done.stdout or "accepted" in done.stdout
    assert '"trace_id": "' in done.stdout


def test_alarms_of_the_page_name_metrics_and_labels_that_there_are() -> None:
    shown = {
        f"waypost_{row.name}{end}": {"process", *row.labels}
        for row in METRICS
        for end in (("_bucket", "_sum", "_count") if row.kind is MetricKind.HISTOGRAM else ("",))
    }
    named = re.findall(r"\b(waypost_\w+)(?:\{(\w+)[=~!])?", PAGE.read_text(encoding="utf-8"))

    assert len(named) > 5
    assert [name for name, _ in named if name not in shown] == []
    assert [label for name, label in named if label and label not in shown[name]] == []


def sent(known: dict[str, str]) -> str:
    """The id of a message that the demonstration has taken."""
    form = {
        "channel": "whatsapp",
        "source": known["SOURCE"],
        "destination": known["DESTINATION"],
        "src.name": known["SRC_NAME"],
        "message": '{"type":"text","text":"Hello"}',
    }
    asked = urllib.request.Request(
        f"{known['API_URL']}/wa/api/v1/msg", urlencode(form).encode(), {"apikey": known["API_KEY"]}
    )
    with urllib.request.urlopen(asked, timeout=HANGS_AFTER_S) as answer:
        return re.findall(rb'"messageId":"([^"]+)"', answer.read())[0].decode()
