"""The README's journey, copied line by line into a shell beside a running `waypost dev`."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.docs.repository import ROOT

MOST_LINES = 10


def journey() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- journey -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert block is not None, "README.md has no journey"
    return block[1].splitlines()


def typed(shell: subprocess.Popen[str], lines: list[str], *, until: str) -> list[str]:
    """Type lines as one does who waits for the answer, and give what was said up to that."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write("".join(f"{line}\n" for line in lines))
    shell.stdin.flush()
    said: list[str] = []
    for line in shell.stdout:
        said.append(line)
        if until in line:
            return said
    raise AssertionError(f"{until!r} was not said: {said}")


def test_journey_ends_with_the_tapped_buttons_postback_text(running: Path) -> None:
    lines = journey()
    listening = next(nth for nth, line in enumerate(lines) if " listen" in line)

    with (running / "complaints").open("w+") as complaints:
        shell = subprocess.Popen(
            ["bash", "-m"],
            cwd=running,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(running)},
        )
        said = typed(shell, lines[: listening + 1], until="listening at")
        said += typed(shell, lines[listening + 1 :], until='"postbackText": "')
        said += shell.communicate("kill %1\nwait\n", timeout=30)[0].splitlines()
        complaints.seek(0)
        whole = "\n".join([*said, complaints.read()])

    told: list[dict[str, Any]] = [json.loads(line) for line in said if line.startswith('{"app": ')]
    assert told, whole
    assert told[-1]["payload"]["payload"] == {
        "text": "Yes please",
        "type": "button",
        "postbackText": "bring-today",
    }, whole
    kinds = [one["payload"]["type"] for one in told if one["type"] == "message-event"]
    assert kinds == ["enqueued", "sent", "delivered", "read"]


def test_journey_has_at_most_ten_lines() -> None:
    assert 0 < len(journey()) <= MOST_LINES
