"""Modules that `waypost dev` loads only when it needs them, for a fast start and less memory."""

import json
import subprocess
import sys
from pathlib import Path

# fmt: off
LAZY_MODULES = {  # each module, and when it is loaded. Source: decision 0087, T7
    "alembic":           "a store of an earlier revision is upgraded",
    "PIL":               "an uploaded image is inspected",
    "rich":              "a command prints a table",
    "phonenumbers":      "the country of a number is looked up",
    "prometheus_client": "metrics are requested",
    "opentelemetry":     "spans are enabled",
    "psycopg":           "the store is on PostgreSQL",
    "jinja2":            "a page is rendered",
    "puremagic":         "an uploaded file is inspected",
    "waypost.console.routes": "a console page is requested",
}
# fmt: on

PROGRAM = """
import asyncio, json, sys, urllib.request
from pathlib import Path
from waypost.assembly.dev.dev import DevOptions, DevServer
from waypost.config import Settings

async def main(folder):
    settings = Settings(data=folder, port=0)
    dev = DevServer(DevOptions(settings, 0, memory=False, env_file=folder / "dev.env"))
    running = await dev.open()
    request = lambda: urllib.request.urlopen(running.base_url + "/healthz").read()
    await asyncio.to_thread(request)
    await asyncio.sleep(0.2)  # until every stage has run once
    print(json.dumps(sorted(sys.modules)))
    await dev.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_start_does_not_load_rarely_needed_modules(tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded = set(json.loads(result.stdout.splitlines()[-1]))

    assert {"waypost", "uvicorn", "sqlalchemy"} <= loaded
    assert not loaded & LAZY_MODULES.keys()
