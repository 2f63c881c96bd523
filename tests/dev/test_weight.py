"""What `waypost dev` does not load before it needs it: time at the start, and memory for as long as it runs."""

import json
import subprocess
import sys
from pathlib import Path

# fmt: off
LATE = {  # what is loaded only when it is needed, and when that is. Source: decision 0087, T7
    "alembic":           "a store of an earlier revision is brought up to date",
    "PIL":               "an uploaded image is looked at",
    "rich":              "a command prints a table",
    "phonenumbers":      "somebody asks which country a number is in",
    "prometheus_client": "somebody asks for the figures",
    "opentelemetry":     "spans are wanted",
    "psycopg":           "the store is on PostgreSQL",
    "jinja2":            "somebody looks at a page",
    "puremagic":         "an uploaded file is looked at",
    "waypost.console.routes": "somebody looks at a page",
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
    ask = lambda: urllib.request.urlopen(running.base_url + "/healthz").read()
    await asyncio.to_thread(ask)
    await asyncio.sleep(0.2)  # until every stage has had its turn
    print(json.dumps(sorted(sys.modules)))
    await dev.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_what_is_seldom_needed_is_not_loaded_by_a_start(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))

    assert {"waypost", "uvicorn", "sqlalchemy"} <= loaded
    assert not loaded & LATE.keys()
