"""The page about the simulator without the service: its commands, run in a shell."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

from crashes.processes import free_port
from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "use-the-simulator-alone.md"


def test_page_leads_from_an_empty_folder_to_a_tap_a_late_failure_and_an_error(newcomers_folder: Path) -> None:
    [receiver] = samples_of(PAGE, "python")
    (newcomers_folder / "receiver.py").write_text(receiver)
    script = "\n".join(["set -e", "trap 'kill $(jobs -p)' EXIT", *samples_of(PAGE, "sh")])

    completed = subprocess.run(
        ["bash", "-c", script],
        cwd=newcomers_folder,
        env={"PATH": os.environ["PATH"], "GRAPH_PORT": str(free_port()), "WEBHOOK_PORT": str(free_port())},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )

    assert completed.returncode == 0, completed.stdout + completed.stderr
    webhooks = (newcomers_folder / "webhooks.log").read_text().splitlines()
    assert {line.partition(" ")[0] for line in webhooks} == {"signed"}
    values = [value for line in webhooks for value in values_of(json.loads(line.partition(" ")[2]))]
    statuses = [status["status"] for value in values for status in value.get("statuses", [])]
    messages = [message for value in values for message in value.get("messages", [])]
    assert [message["type"] for message in messages] == ["text", "interactive"]
    assert messages[1]["interactive"]["button_reply"] == {"id": "today", "title": "Yes"}
    assert statuses[:3] == ["sent", "delivered", "read"]
    assert statuses[-1] == "failed"
    assert [value["groups"][0]["type"] for value in values if "groups" in value] == ["group_participants_add"]
    assert re.findall(r'"code":(\d+)', "".join(webhooks)) == ["131047"]
    assert re.findall(r'"code":(\d+)', completed.stdout) == ["131016"]


def values_of(body: Any) -> list[dict[str, Any]]:
    """Return the value of each change in a webhook."""
    return [change["value"] for entry in body["entry"] for change in entry["changes"]]
