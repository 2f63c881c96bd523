"""A command that starts no service loads no module that only a service needs."""

import subprocess
import sys

HEAVY = ("sqlalchemy", "uvicorn", "starlette", "structlog", "psycopg", "waypost.simulator")


def test_command_line_loads_neither_store_nor_servers() -> None:
    script = f"import sys, waypost.cli.main; print([name for name in {HEAVY} if name in sys.modules])"

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"
