"""The README's journey, copied line by line into a shell beside a running `waypost dev`."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.docs.repository import ROOT

MOST_LINES = 10


def journey() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- journey -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert block is not None, "README.md has no journey"
    return block[1].splitlines()


@pytest.mark.timeout(60)
def test_journey_ends_with_the_tapped_buttons_postback_text(running: Path) -> None:
    lines = journey()
    shell = "\n".join([*lines, "sleep 2", "kill %1", "wait"])

    done = subprocess.run(
        ["bash", "-m", "-c", shell],
        cwd=running,
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(running)},
    )

    told: list[dict[str, Any]] = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"app": ')
    ]
    assert told, done.stdout + done.stderr
    assert told[-1]["payload"]["payload"] == {
        "text": "Yes please",
        "type": "button",
        "postbackText": "bring-today",
    }, done.stdout + done.stderr
    kinds = [one["payload"]["type"] for one in told if one["type"] == "message-event"]
    assert kinds == ["enqueued", "sent", "delivered", "read"]


def test_journey_has_at_most_ten_lines() -> None:
    assert 0 < len(journey()) <= MOST_LINES
