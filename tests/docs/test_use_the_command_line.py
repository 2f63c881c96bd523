"""The recorded session of the page about the command line: each command, run again, prints the same.

`RECORD_SESSION=1 pytest tests/docs/test_use_the_command_line.py` writes what the commands print now into the page.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT

PAGE: Final = ROOT / "docs" / "how-to" / "use-the-command-line.md"
SESSION: Final = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)

SHELL_TIMEOUT_S: Final = 60

# fmt: off
COMMANDS: Final = (
    "waypost app list",
    "waypost listen --events delivered,text --pretty --background >callbacks.txt",
    "waypost send --template order_ready --param Ann --param 4711",
    "waypost trigger text --set 'text=Where is it?'",
    "while [ $(wc -l <callbacks.txt) -lt 4 ]; do sleep 0.1; done; cat callbacks.txt",
    "waypost tail --no-follow -n 3",
    "waypost send Hello --to 12",
    "until waypost requests | grep -q destination; do sleep 0.1; done; waypost requests --status 4xx",
    "waypost callbacks list",
    "waypost replay --app 01990000-0000-7000-8000-0000000000a1 --dry-run",
    "waypost partner lst",
)
VARYING: Final = (  # what differs each time
    #           pattern                                                            shown as
    (re.compile(r"01a[0-9a-f]{5}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"wamid\.[A-Za-z0-9+/=]+"),                                        "WAMID"),
    (re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ"),                              "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"),                                              "HOST"),
    (re.compile(r"kill \d+"),                                                      "kill PID"),
    (re.compile(r"listen-\d+"),                                                    "TAG"),
    (re.compile(r"  \d+\.\d+  "),                                                  "  DURATION  "),
    (re.compile(r"  waiting  "),                                                   "  delivered  "),
    (re.compile(r"(would replay) +[0-9]+"),                                        r"\1 COUNT"),
    (re.compile(r"  +"),                                                           "  "),
)
# fmt: on


def test_recorded_session_is_what_the_commands_print(running: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(running), "COLUMNS": "100"}
    printed = ""
    try:
        for command in COMMANDS:
            with (running / "printed.txt").open("w+", encoding="utf-8") as file:  # a pipe stays open with the listener
                line = ["bash", "-c", command]
                subprocess.run(
                    line, cwd=running, env=environment, stdout=file, stderr=file, check=False, timeout=SHELL_TIMEOUT_S
                )
                file.seek(0)
                printed += f"$ {command}\n{file.read()}"
    finally:
        stopped = re.search(r"kill (\d+)", (running / "callbacks.txt").read_text())
        if stopped is not None:
            subprocess.run(["kill", stopped[1]], check=True)
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("RECORD_SESSION"):
        PAGE.write_text(SESSION.sub(lambda _: printed, page), encoding="utf-8")
        return
    [recorded] = SESSION.findall(page)

    assert normalise(printed) == normalise(recorded)


def normalise(session: str) -> list[str]:
    """Return the lines of a session without what differs each time."""
    for pattern, shown in VARYING:
        session = pattern.sub(shown, session)
    return session.splitlines()
