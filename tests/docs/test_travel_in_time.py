"""The page about time and snapshots: its commands, run in order."""

import os
import subprocess
from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "travel-in-time.md"


def test_shown_commands_move_the_clock_and_restore_a_snapshot(running: Path) -> None:
    shell = "\n".join(["set -e", *samples_of(PAGE, "sh")])

    completed = subprocess.run(
        ["bash", "-c", shell],
        cwd=running,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(running)},
    )

    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert lines[0].endswith("as the machine's")
    assert "1 day, 0:01:00 ahead" in lines[2]
    assert lines[3].endswith("frozen")
    assert lines[5].endswith("60 times as fast")
    assert lines[9] == "prepared is loaded"
    assert lines[10].split() == ["NAME", "AT", "SIZE", "BYTES"]
    assert lines[12] == "state is reset"
    assert (running / "prepared.waypost").stat().st_size > 1000
