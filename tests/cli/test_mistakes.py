"""A mistyped id, name, status, token or file: an error in our words with its exit code, never a silent success."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ANN, APP
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.cli.command_tree import app as commands

# fmt: off
UNKNOWN: Final = (
    # command                                            text
    ("replay nosuch",                                    "There is no callback nosuch. (404); accepted: an id that `waypost trace` of its message shows"),
    ("replay --subscription 99",                         "There is no subscription 99. (404); accepted: one that `waypost callbacks list` lists"),
    ("replay --app nosuch",                              "There is no app nosuch. (404); accepted: one that `waypost app list` lists"),
    ("replay --partner 99",                              "There is no partner 99. (404); accepted: one that `waypost partner list` lists"),
    (f"replay --app {APP.id} --event nosuch",            "no callback matches"),
    ("callbacks list --app nosuch",                      "There is no app nosuch."),
    ("callbacks list --partner 99",                      "There is no partner 99."),
    ("callbacks report --app nosuch",                    "There is no app nosuch."),
    ("callbacks report --subscription 99",               "There is no subscription 99."),
    ("callbacks report --partner 99",                    "There is no partner 99."),
    ("callbacks show nosuch",                            "There is no callback nosuch."),
    ("callbacks show nosuch --reveal",                   "There is no callback nosuch."),
    ("callbacks check 99",                               "There is no subscription 99."),
    ("callbacks resume 99",                              "There is no subscription 99."),
    ("callbacks key 99",                                 "There is no subscription 99."),
    ("callbacks rotate 99",                              "There is no subscription 99."),
    ("trace nosuch",                                     "There is no message nosuch. (404); accepted: an id that a send has returned"),
    ("trace nosuch --reveal",                            "There is no message nosuch."),
    ("tail --no-follow --app nosuch",                    "There is no app nosuch."),
    ("requests show nosuch",                             "There is no request nosuch. (404); accepted: an id that `waypost requests` lists"),
    ("requests --app nosuch",                            "There is no app nosuch."),
    ("requests --partner 99",                            "There is no partner 99."),
    ("dead-letter retry 99",                             "There is no dead letter 99."),
    ("dead-letter delete 99",                            "There is no dead letter 99."),
    ("app rates nosuch",                                 "There is no app nosuch."),
    ("app rates nosuch templates=20/60s",                "There is no app nosuch."),
    ("app revoke-token nosuch",                          "There is no app nosuch."),
    ("app operator nosuch main",                         "There is no app nosuch."),
    (f"app operator {APP.id} nosuch",                    "There is no operator account nosuch. (404); accepted: one that `waypost account list` lists"),
    ("app connect nosuch 15551234567 1 2",               "There is no app nosuch."),
    ("app contact-email nosuch",                         "There is no app nosuch."),
    ("app onboard nosuch",                               "There is no app nosuch."),
    ("account numbers nosuch 1",                         "There is no operator account nosuch."),
    ("account subscribe 99",                             "There is no business account 99."),
    ("audit --partner 99",                               "There is no partner 99."),
)
# fmt: on


async def run(*arguments: str, **env: str) -> Result:
    return await asyncio.to_thread(CliRunner(env=env).invoke, commands, list(arguments))


@pytest.mark.parametrize(("command", "text"), UNKNOWN, ids=[row[0] for row in UNKNOWN])
async def test_unknown_id_is_an_error_that_repeats_it(pipeline: PipelineHarness, command: str, text: str) -> None:
    env = {"WAYPOST_ADMIN_URL": pipeline.service_url, "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN}

    result = await run(*command.split(), **env)

    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert result.stderr.startswith(f"waypost: {text}")
    assert result.stderr.count("\n") == 1


def copy_env_file(env_file: Path, old: str = "", new: str = "") -> None:
    """Copy it to where a command looks for it."""
    text = env_file.read_text()
    (env_file.parent / "waypost-dev.env").write_text(text.replace(f"={old}\n", f"={new}\n") if old else text)


async def test_wrong_token_is_looked_for_where_it_came_from(pipeline: PipelineHarness, env_file: Path) -> None:
    """A message that names a variable which is not set sends its reader to the wrong place."""
    folder = env_file.parent
    copy_env_file(env_file, ADMIN_TOKEN, "of-yesterday")
    (folder / "token").write_text("of-yesterday-with-more-than-32-characters")
    file = str(folder / "token")
    url = {"WAYPOST_ADMIN_URL": pipeline.service_url}

    async def error_of(**env: str) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "waypost", "partner", "list", cwd=folder, env={**os.environ, **env}, stderr=-1
        )
        _, error = await process.communicate()
        assert process.returncode == 1
        return error.decode()

    of_dev = await error_of()
    elsewhere = await error_of(WAYPOST_ADMIN_TOKEN=ADMIN_TOKEN, WAYPOST_PORT="9")
    of_variable = await error_of(WAYPOST_ADMIN_TOKEN="of-yesterday-with-more-than-32-characters", **url)
    of_file = await error_of(WAYPOST_ADMIN_TOKEN_FILE=file, **url)

    assert of_dev.endswith("; check that ADMIN_TOKEN in waypost-dev.env is right\n")
    assert elsewhere.startswith("waypost: no service responds at http://127.0.0.1:9: set WAYPOST_ADMIN_URL")
    assert of_variable.endswith("; check that WAYPOST_ADMIN_TOKEN is right\n")
    assert of_file.endswith(f"; check that WAYPOST_ADMIN_TOKEN_FILE ({file}) is right\n")


async def test_health_checks_the_dev_of_the_folder(pipeline: PipelineHarness, env_file: Path) -> None:
    copy_env_file(env_file)

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "waypost", "health", cwd=env_file.parent, stdout=-1, stderr=-1
    )
    printed, error = await process.communicate()

    assert (process.returncode, printed.decode()) == (0, "ready\n"), error


async def test_trigger_lists_each_event_once_in_groups() -> None:
    as_text = (await run("trigger")).stdout
    events = json.loads((await run("trigger", "--json")).stdout)["events"]

    groups = ["states of a message:", "what the recipient does:", "templates:", "the account:"]
    assert [line for line in as_text.splitlines() if line in groups] == groups
    names = {row["event"] for row in events}
    assert len(names) == len(events)
    assert {"status-update", "tier-event"} <= names
    assert not names & {"message_template_status_update", "phone_number_quality_update"}  # their other names


async def test_trigger_says_what_it_sent_first(pipeline: PipelineHarness, env_file: Path) -> None:
    more = ("--env-file", str(env_file), "--json")

    tapped = json.loads((await run("trigger", "quick_reply", *more)).stdout)
    text = json.loads((await run("trigger", "text", *more)).stdout)

    assert re.fullmatch(rf"template message \S+ to {ANN}", tapped["sent_first"])
    assert "sent_first" not in text
    assert pipeline.callbacks


async def test_unknown_member_of_a_trigger_is_one_short_line(env_file: Path) -> None:
    result = await run("trigger", "text", "--set", "foo=bar", "--env-file", str(env_file))

    assert result.exit_code == 1
    assert result.stderr.startswith("waypost: foo: is unknown; accepted: context_id, forwarded, ")
    assert len(result.stderr) < 240
