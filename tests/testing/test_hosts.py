"""The fixtures for programs that have the hosts in their code."""

from pathlib import Path
from typing import Final

from tests.support.inner_pytest import run_pytest

PROJECT: Final = """
import os
import subprocess
import sys
import urllib.request

URL = "https://graph.facebook.com/v25.0/1000000000000002?fields=display_phone_number"
SCRIPT = f"import urllib.request; print(urllib.request.urlopen({URL!r} + '&access_token=demo-graph-token').read().decode())"


def test_program_reaches_the_service(waypost_host_variables):
    environment = {**os.environ, **waypost_host_variables}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert "display_phone_number" in run.stdout, run.stderr


def test_this_process_reaches_the_service(waypost_hosts):
    request = urllib.request.Request(URL, headers={"Authorization": "Bearer demo-graph-token"})
    assert b"display_phone_number" in urllib.request.urlopen(request).read()


def test_later_test_is_not_affected(waypost_host_variables):
    assert os.environ.get("SSL_CERT_FILE") != waypost_host_variables["SSL_CERT_FILE"]
"""


def test_fixtures_lead_programs_and_the_test_itself_to_the_service(tmp_path: Path) -> None:
    (tmp_path / "test_program.py").write_text(PROJECT)
    (tmp_path / "waypost.toml").write_text("secret_key = 'of this folder, and not of what tests start'\n")

    run = run_pytest(tmp_path, tmp_path / "report.xml", "-p", "no:randomly")

    assert run.outcomes == dict.fromkeys(
        (
            "test_program_reaches_the_service",
            "test_this_process_reaches_the_service",
            "test_later_test_is_not_affected",
        ),
        "passed",
    ), run.output
