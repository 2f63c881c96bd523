"""The page about phones: its commands work in order, and its tables have every row."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S
from waypost.simulator.messages.delivery import PHONE_CONDITIONS
from waypost.simulator.state.script_steps import STEP_ACTIONS, STEP_TRIGGERS

PAGE: Final = ROOT / "docs" / "how-to" / "simulate-phones.md"


def test_shown_commands_work_in_order(running: Path) -> None:
    shell = "\n".join(("set -e", *samples_of(PAGE, "sh")))

    completed = subprocess.run(
        ["bash", "-c", shell],
        cwd=running,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(running)},
    )

    responses: list[dict[str, Any]] = [json.loads(line) for line in completed.stdout.splitlines()]
    crowd = responses[-2]
    assert not any("error" in response for response in responses), completed.stdout
    assert crowd["counts"]["read"] == 10
    assert crowd["counts"]["taps"] == crowd["steps"][1]["planned"] > 0
    assert responses[-1] == {"name": "crowd", "dropped": True}


def test_page_names_every_condition_trigger_and_action() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE.read_text(encoding="utf-8")))

    assert named >= {*PHONE_CONDITIONS, *STEP_TRIGGERS, *STEP_ACTIONS}
