"""The pages that use a running `waypost dev`, read from the first to the last: their commands in one shell, twice."""

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from crashes.processes import free_port
from tests.docs.repository import ROOT, name_of, pages, samples_of
from tests.support.polling import HANGS_AFTER_S
from waypost.client.dev_variables import read_variables

HOW_TO: Final = ROOT / "docs" / "how-to"
RUNS: Final = 2
_MARK: Final = "=== "
_SILENT_CURL: Final = re.compile(r"(?<!\$\()(?<!until )curl -(?=\w*s)(?!\w*[wo])\w+ ")


def bodies_in(output: str) -> list[dict[str, Any]]:
    """Return the JSON objects that begin a line, without callbacks; the listener may print beside a response."""
    bodies: list[dict[str, Any]] = []
    for line in output.splitlines():
        while line.startswith('{"'):
            body, end = json.JSONDecoder().raw_decode(line)
            bodies += [] if "app" in body else [body]
            line = line[end:]
    return bodies


def check_tutorial(output: str) -> None:
    bodies = bodies_in(output)
    [sent] = [body["messageId"] for body in bodies if body.get("status") == "submitted"]
    listed = next(body["messages"] for body in bodies if "messages" in body and "accepted_on_ms" in str(body))
    assert listed[0]["id"] == sent, "the newest message is not the first of the list"
    assert listed[0]["state"] in ("sent", "delivered", "read")


def check_retry_safely(output: str) -> None:
    first, again, other = bodies_in(output)
    assert first == again
    assert (first["status"], other["status"]) == ("submitted", "error")


def check_receive_callbacks(output: str) -> None:
    created, *_, paused = [body["subscription"] for body in bodies_in(output) if "subscription" in body]
    assert (created["active"], paused["active"]) == (True, False)
    assert '"type":"text"' in output


def check_simulate_phones(output: str) -> None:
    bodies = bodies_in(output)
    assert [body for body in bodies if "error" in body or body.get("status") == "error"] == []
    assert bodies[-2]["counts"]["read"] == 10
    assert bodies[-1] == {"name": "crowd", "dropped": True}


def check_simulate_failures(output: str) -> None:
    *armed, every, first, disarmed, rest = bodies_in(output)
    ids = [response["faults"][0]["id"] for response in armed]
    assert [fault["id"] for fault in every["faults"]] == ids
    assert first["id"] == ids[0]
    assert (disarmed, rest) == ({"disarmed": ids[:1]}, {"disarmed": ids[1:]})


def check_simulator_alone(output: str) -> None:
    assert re.search(r"listens at http://127\.0\.0\.1:\d+", output)
    assert re.findall(r'"code":(\d+)', output) == ["131016"]


def check_travel_in_time(output: str) -> None:
    lines = output.splitlines()
    assert lines[0].endswith("as the machine's"), "the page before has moved the clock of another simulator"
    assert re.search(r"1 day, 0:0[01]:\d\d ahead; \d+ due times? on the way", lines[1])
    assert "state is reset" in lines


def check_watch_it_run(output: str) -> None:
    assert output.startswith('{"status":"ok"')
    assert "# TYPE waypost_queue_depth gauge" in output
    assert "submitted" in output or "accepted" in output
    assert '"trace_id": "' in output


# fmt: off
PAGES: Final[dict[Path, Callable[[str], None]]] = {  # in the order in which docs/README.md lists them
    ROOT / "docs" / "tutorial.md":          check_tutorial,
    HOW_TO / "retry-safely.md":             check_retry_safely,
    HOW_TO / "receive-callbacks.md":        check_receive_callbacks,
    HOW_TO / "use-the-simulator-alone.md":  check_simulator_alone,
    HOW_TO / "simulate-phones.md":          check_simulate_phones,
    HOW_TO / "simulate-failures.md":        check_simulate_failures,
    HOW_TO / "travel-in-time.md":           check_travel_in_time,
    HOW_TO / "watch-it-run.md":             check_watch_it_run,
}
# fmt: on


def commands_of(page: Path) -> list[str]:
    """Return the blocks that a reader pastes beside a running `waypost dev`, without the one that starts it."""
    blocks = samples_of(page, "sh")
    return [block for block in blocks if "make run" not in block and "waypost dev" not in block]


@pytest.mark.timeout(4 * HANGS_AFTER_S)
def test_pages_leave_each_other_a_working_state(running: Path) -> None:
    """Each command of each page succeeds, and prints what the page claims, in one shell and a second time."""
    script = ["trap 'echo \"failed: $BASH_COMMAND\"' ERR", "set -eE"]
    for number in range(RUNS):
        for page in PAGES:
            script.append(f"echo '{_MARK}{number} {page.stem}'")
            if receiver := samples_of(page, "python")[:1]:
                script += ["cat >receiver.py <<'END'", *receiver, "END"]
            script += commands_of(page)
    script.append(f"echo '{_MARK}end'")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(running),
        "SERVICE_URL": read_variables(running / "waypost-dev.env")["API_URL"],
        **{name: str(free_port()) for name in ("GRAPH_PORT", "WEBHOOK_PORT", "RECEIVER_PORT")},
    }
    with (running / "printed.txt").open("w+", encoding="utf-8") as file:  # a pipe stays open with the listener
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(script)],
            cwd=running,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = shell.wait(3 * HANGS_AFTER_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)  # the listeners, and after a failure everything else
        file.seek(0)
        printed = file.read()

    assert status == 0, printed[-4000:]
    _, *parts = printed.split(_MARK)
    for part, (page, check) in zip(parts, [*PAGES.items()] * RUNS, strict=False):
        title, _, output = part.partition("\n")
        assert title.endswith(page.stem)
        try:
            check(output)
        except (AssertionError, ValueError, KeyError, IndexError) as error:
            pytest.fail(f"{title}: {error!r}\n{output}")


def test_response_that_a_page_prints_ends_its_line() -> None:
    """Without `-w`, the prompt and the next response follow on the line of a response."""
    unfinished = [
        f"{name_of(page)}: {line}"
        for page in pages()
        for block in samples_of(page, "sh")
        for line in block.splitlines()
        if _SILENT_CURL.search(line)
        and not re.search(r" -w |[|>]\s*(grep|sed|python3|[a-z]+\.json)|/metrics|\\$", line)
    ]

    assert unfinished == []
