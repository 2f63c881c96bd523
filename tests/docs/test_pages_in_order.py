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
from tests.docs.repository import ROOT, journey_of, name_of, pages, samples_of
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


def check_quick_start(output: str) -> None:
    assert re.search(r"status +APPROVED", output)
    assert re.search(r"button\.payload +bring-today", output)


def check_existing_client(output: str) -> None:
    bodies = bodies_in(output)
    assert [template["status"] for body in bodies for template in body.get("templates", ())]
    assert [body["subscription"]["tag"] for body in bodies if "subscription" in body] == ["my-receiver"]
    assert re.search(r"event +text", output)


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
    assert re.search(
        r"1 day, 0:0[01]:\d\d ahead; \d+ due times? on the way", output
    )  # after lines of progress, on a busy machine
    assert "state is reset" in lines


def check_personal_data(output: str) -> None:
    assert re.search(r"keep bodies days +7 +7 ", output)
    assert re.search(r"\d+ records are in export-\d", output)
    assert "of every partner? [y/N]" in output
    assert "Aborted" not in output


def check_secure_the_service(output: str) -> None:
    assert re.search(r"universal token +ut_", output)
    assert re.search(r"^[0-9a-f]{64}$", output, re.MULTILINE)


def check_any_language(output: str) -> None:
    [partner] = bodies_in(output)
    assert {"API_KEY", "APP_ID"} <= set(partner["env"])
    assert "ADMIN_TOKEN" not in partner["env"]


def check_watch_it_run(output: str) -> None:
    assert output.startswith('{"status":"ok"')
    assert "# TYPE waypost_queue_depth gauge" in output
    assert "submitted" in output or "accepted" in output
    assert '"trace_id": "' in output


def check_embedded_signup(output: str) -> None:
    token, linked, armed, *_ = bodies_in(output)
    assert token["token_type"] == "bearer"
    assert linked["status"] == "success"
    assert armed["faults"][-1]["what"] == {"break": "callback_first"}


def check_play_a_flow(output: str) -> None:
    opened, refused, ended = bodies_in(output)
    assert opened["view"]["screen_id"] == "ASK"
    assert refused["rule"] == "guest: min-chars: Enter at least 2 characters."
    assert ended["events"] == [{"type": "completed", "response": {"flow_token": "t-1", "guest": "Bo"}}]


# fmt: off
PAGES: Final[dict[Path, Callable[[str], None]]] = {  # in the order in which README.md and docs/README.md list them
    ROOT / "README.md":                     check_quick_start,
    ROOT / "docs" / "tutorial.md":          check_tutorial,
    HOW_TO / "point-an-existing-client.md": check_existing_client,
    HOW_TO / "retry-safely.md":             check_retry_safely,
    HOW_TO / "receive-callbacks.md":        check_receive_callbacks,
    HOW_TO / "use-the-simulator-alone.md":  check_simulator_alone,
    HOW_TO / "try-embedded-signup.md":      check_embedded_signup,
    HOW_TO / "simulate-phones.md":          check_simulate_phones,
    HOW_TO / "simulate-failures.md":        check_simulate_failures,
    HOW_TO / "travel-in-time.md":           check_travel_in_time,
    HOW_TO / "play-a-flow.md":              check_play_a_flow,
    HOW_TO / "personal-data.md":            check_personal_data,
    HOW_TO / "watch-it-run.md":             check_watch_it_run,
    HOW_TO / "secure-the-service.md":       check_secure_the_service,
    HOW_TO / "test-from-any-language.md":   check_any_language,
}
ELSEWHERE: Final = {  # how-to pages whose commands are not pasted here: another test runs them, or the reason
    "back-up-and-restore":      "test_storage_pages: the service has to stop",
    "behind-a-proxy":           "test_behind_a_proxy in tests/processes: configurations, no commands",
    "build-a-flow-endpoint":    "test_build_a_flow_endpoint: a Flow with an endpoint",
    "check-a-flow":             "test_check_a_flow: a file of its own",
    "connect-the-cloud-api":    "test_connect_the_cloud_api: a service with an operator of its own",
    "fill-a-template":          "test_fill_a_template: forms, no commands",
    "intercept-a-program":      "test_command in tests/interception: programs in several languages",
    "media-in-a-bucket":        "needs a bucket",
    "replace-the-secret-key":   "restarts every process with other keys; the command has tests of its own",
    "respond-to-alerts":        "no commands to paste",
    "run-in-a-container":       "needs Docker or Podman",
    "run-on-kubernetes":        "needs a cluster",
    "run-on-postgresql":        "test_storage_pages: needs a server",
    "run-with-systemd":         "needs root and systemd",
    "set-up-from-a-file":       "test_set_up_from_a_file: a store of its own",
    "several-machines":         "no commands to paste: settings of several machines",
    "test-your-integration":    "test_test_your_integration: programs, no commands",
    "upgrade":                  "test_storage_pages: an older store",
    "use-from-agents":          "test_use_from_agents: recorded tasks of an MCP client",
    "use-the-command-line":     "test_use_the_command_line: a recorded session, compared line by line",
    "use-the-console":          "pages of a browser, in tests/console",
    "users-without-a-number":   "no commands to paste",
    "write-a-flow":             "pages of a browser, in tests/console/flows",
}
# fmt: on


def commands_of(page: Path) -> list[str]:
    """Return the blocks that a reader pastes beside a running `waypost dev`, without the one that starts it.

    Of the README these are the quick start: installation and production have tests of their own.
    """
    blocks = [journey_of(page)] if page.name == "README.md" else samples_of(page, "sh")
    return [block for block in blocks if "make run" not in block and "waypost dev" not in block]


@pytest.mark.timeout(10 * HANGS_AFTER_S)
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
        "RECEIVER_URL": f"http://127.0.0.1:{free_port()}/callbacks",
        **{name: str(free_port()) for name in ("GRAPH_PORT", "WEBHOOK_PORT", "RECEIVER_PORT")},
    }
    with (
        subprocess.Popen(["yes"], stdout=subprocess.PIPE) as answers,  # to the question before an erasure
        (running / "printed.txt").open("w+", encoding="utf-8") as file,  # a pipe stays open with the listener
    ):
        shell = subprocess.Popen(
            ["bash", "-c", "\n".join(script)],
            cwd=running,
            env=environment,
            stdin=answers.stdout,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = shell.wait(8 * HANGS_AFTER_S)
        finally:
            answers.kill()
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


def test_each_how_to_page_is_run_or_has_a_reason() -> None:
    run = {page.stem for page in PAGES if page.parent == HOW_TO}

    assert {page.stem for page in HOW_TO.glob("*.md")} == run | set(ELSEWHERE)
    assert run & set(ELSEWHERE) == set()


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
