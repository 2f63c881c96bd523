"""The page about the simulator without the service, copied line by line into a shell."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

from crashes.processes import free_port
from tests.docs.repository import ROOT, samples_of
from tests.support.waiting import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "use-the-simulator-alone.md"


def test_page_leads_from_an_empty_folder_to_a_tap_a_late_failure_and_a_refusal(newcomers_folder: Path) -> None:
    [receiver] = samples_of(PAGE, "python")
    (newcomers_folder / "receiver.py").write_text(receiver)
    script = "\n".join(["set -e", "trap 'kill $(jobs -p)' EXIT", *samples_of(PAGE, "sh")])

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=newcomers_folder,
        env={"PATH": os.environ["PATH"], "GRAPH_PORT": str(free_port()), "WEBHOOK_PORT": str(free_port())},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    told = (newcomers_folder / "webhooks.log").read_text().splitlines()
    assert {line.partition(" ")[0] for line in told} == {"signed"}
    values = [value for line in told for value in values_of(json.loads(line.partition(" ")[2]))]
    statuses = [one["status"] for value in values for one in value.get("statuses", [])]
    messages = [one for value in values for one in value.get("messages", [])]
    assert [one["type"] for one in messages] == ["text", "interactive"]
    assert messages[1]["interactive"]["button_reply"] == {"id": "today", "title": "Yes"}
    assert statuses[:3] == ["sent", "delivered", "read"]
    assert statuses[-1] == "failed"
    assert [one["groups"][0]["type"] for one in values if "groups" in one] == ["group_participants_add"]
    assert re.findall(r'"code":(\d+)', "".join(told)) == ["131047"]
    assert re.findall(r'"code":(\d+)', done.stdout) == ["131016"]


def values_of(body: Any) -> list[dict[str, Any]]:
    """What a webhook tells, change by change."""
    return [change["value"] for entry in body["entry"] for change in entry["changes"]]
