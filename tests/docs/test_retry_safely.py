"""The page about idempotency keys: its commands send one message, and get the documented responses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "retry-safely.md"


def test_shown_commands_send_one_message_and_reject_another_under_its_key(tmp_path: Path) -> None:
    shell = "\necho\n".join(samples_of(PAGE, "sh"))
    command = [sys.executable, "-m", "waypost", "dev", "--memory", "--port", "0"]

    with subprocess.Popen(
        [*command, "--simulator-port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert any("README" in line for line in process.stdout)
            completed = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", shell],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=HANGS_AFTER_S,
                check=False,
                env={"PATH": os.environ["PATH"]},
            )
        finally:
            process.send_signal(signal.SIGTERM)

    assert completed.returncode == 0, completed.stderr
    lines = [line for line in completed.stdout.splitlines() if line]
    first, again, other = (json.loads(line) for line in lines if line.startswith("{"))
    assert first == again
    assert first["status"] == "submitted"
    assert other["status"] == "error"
    assert "idempotent-replayed: true" in completed.stdout.lower()
