"""`waypost health`, the probe of a container, against a real process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashes.processes import free_port
from tests.support.polling import HANGS_AFTER_S, poll_until


def run_health(*arguments: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "waypost", "health", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.fixture
def held_port(tmp_path: Path) -> Iterator[int]:
    """The port of a service that is alive and, because it is held, not ready."""
    port = free_port()
    environment = {**os.environ, "WAYPOST_SECRET_KEY": "of a test, 32 characters at least"}
    with subprocess.Popen(
        [sys.executable, "-m", "waypost", "serve", "--hold", "--port", str(port)], cwd=tmp_path, env=environment
    ) as process:
        yield port
        process.terminate()


async def test_health_distinguishes_alive_from_ready(held_port: int) -> None:
    async def is_alive() -> bool:
        return run_health("--live", "--port", str(held_port)) == (0, "alive", "")

    await poll_until(is_alive)

    code, output, error = run_health(WAYPOST_HOST="0.0.0.0", WAYPOST_PORT=str(held_port))

    assert (code, output) == (1, "")
    assert error.startswith("waypost: /readyz responded with 503: ")
    assert "held" in error


def test_health_of_nothing_names_the_settings() -> None:
    port = free_port()

    code, output, error = run_health("--port", str(port))

    assert (code, output) == (1, "")
    assert error.startswith(f"waypost: 127.0.0.1:{port} cannot be reached (")
    assert error.endswith("; start the service, or check WAYPOST_HOST and WAYPOST_PORT")
