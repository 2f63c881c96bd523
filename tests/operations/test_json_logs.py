"""With `log_format=json` everything that a process writes is JSON, one record a line."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.polling import HANGS_AFTER_S

resource = pytest.importorskip("resource", reason="not on Windows")

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")  # RFC 3339, section 5.6
SETTINGS: Final = {
    "WAYPOST_LOG_FORMAT": "json",
    "WAYPOST_PORT": "0",
    "WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
    "WAYPOST_ADMIN_TOKEN": "ad310f5e" * 8,
}
DEFECTS: Final = """
import logging, threading, warnings
from waypost.cli.errors import log_process
from waypost.config import Settings

print_line = log_process(Settings(log_format="json", log_level="error"), worker=3)
print_line("the first line")
warnings.warn("two\\nlines", DeprecationWarning)
logging.getLogger("a.library").warning("%s of %s", 1)
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
class Destroyed:
    def __del__(self): raise LookupError("unraisable")
Destroyed()
raise ValueError("at the\\nend")
"""


def read_records(output: str) -> list[dict[str, Any]]:
    """Return the records of an output; each line has to be one."""
    records = [json.loads(line) for line in output.splitlines()]
    for record in records:
        assert list(record)[:4] == ["time", "level", "logger", "event"]
        assert TIME.fullmatch(record["time"])
        assert record["level"] in {"debug", "info", "warning", "error"}
    return records


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a service in a folder, without this machine's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WAYPOST_")}
    return {**inherited, **SETTINGS, "WAYPOST_DATA": str(folder / "data"), "PYTHONWARNINGS": "always"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `waypost serve`, with standard error in its standard output."""
    process = subprocess.Popen(
        [sys.executable, "-m", "waypost", "serve"],
        env=environment(tmp_path),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def request_status(url: str, body: bytes) -> int:
    """Return the status of the response to a request of the administrator."""
    headers = {"Authorization": f"Bearer {SETTINGS['WAYPOST_ADMIN_TOKEN']}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=HANGS_AFTER_S) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process: Linux only")
def test_every_line_of_serve_is_a_record_from_its_start_through_an_error_to_its_end(
    service: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert service.stdout is not None
    lines: list[str] = []
    while not lines or "serves at" not in lines[-1]:
        lines.append(service.stdout.readline())
        assert lines[-1], f"the process ended: {lines}"
    url = read_records(lines[-1])[0]["event"].rpartition(" ")[2]
    partner = json.dumps({"email": "a@b.example", "name": "A", "password": "long enough 1"}).encode()
    _, hard = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (0, hard))

    statuses = [request_status(f"{url}/admin/partners", partner), request_status(f"{url}/nothing", b"")]
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (hard, hard))
    second = subprocess.run(
        [sys.executable, "-m", "waypost", "serve"],
        env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=HANGS_AFTER_S,
    )  # fmt: skip
    service.send_signal(signal.SIGTERM)
    rest, _ = service.communicate(timeout=HANGS_AFTER_S)

    assert statuses == [500, 404]
    records = read_records("".join(lines) + rest)
    assert {record["level"] for record in records} > {"info"}
    assert service.returncode == 0
    assert second.returncode == 1
    [error] = [record for record in read_records(second.stdout + second.stderr) if record["level"] == "error"]
    assert error["logger"] == "cli"
    assert str(tmp_path) in error["event"]


def test_warnings_libraries_and_defects_are_records(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DEFECTS],
        env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=HANGS_AFTER_S,
    )  # fmt: skip

    [line] = read_records(ran.stdout)
    warning, library, in_thread, in_destructor, last = read_records(ran.stderr)
    assert ran.returncode == 1
    assert (line["event"], line["worker"]) == ("the first line", 3)
    assert (warning["logger"], warning["level"], "two\nlines" in warning["event"]) == ("py.warnings", "warning", True)
    assert (library["logger"], library["event"], library["worker"]) == ("a.library", "%s of %s", 3)
    assert "ZeroDivisionError" in in_thread["exception"]
    assert "LookupError: unraisable" in in_destructor["exception"]
    assert last["exception"].endswith("ValueError: at the\nend")
