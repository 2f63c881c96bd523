"""Commands that fail: a line with the reason, an exit code, and no traceback."""

from pathlib import Path
from typing import Final

import pytest
import typer.main
from typer.testing import CliRunner, Result

from waypost.cli.command_group import SUBJECTS
from waypost.cli.command_tree import app as commands

CLOSED_URL: Final = "http://127.0.0.1:9"

# fmt: off
CASES: Final = {
    # arguments                                                  exit   expected text
    "nosuch":                                                    (2, "No such command 'nosuch'"),
    "parner list":                                               (2, "No such command 'parner'. Did you mean 'partner'?"),
    "partner lst":                                               (2, "No such command 'lst'. Did you mean 'list'?"),
    "partner list --jsn":                                        (2, "No such option: --jsn. Did you mean --json?"),
    "dev --prot 8080":                                           (2, "No such option: --prot. Did you mean --port?"),
    "--versoin":                                                 (2, "No such option: --versoin. Did you mean --version?"),
    "dev --port abc":                                            (2, "'--port'"),
    "dev --port 99999":                                          (2, "the setting port is invalid"),
    "dev --simulator-port 99999":                                (2, "'--simulator-port'"),
    "dev --simulator-port -5":                                   (2, "'--simulator-port'"),
    "dev --set colour=red":                                      (2, "there is no setting colour, in --set: `waypost config` lists"),
    "dev --set rates":                                           (2, "--set must be NAME=VALUE, as in rates=false; 'rates' is not"),
    "dev --set per_second=x":                                    (2, "the setting per_second is invalid"),
    "dev --port 0 --simulator-port 0 --data page.md":            (1, "page.md cannot be used (File exists)"),
    "dev --port 0 --simulator-port 0 --env-file no/where":       (1, "no/where cannot be used (No such file or directory)"),
    "dev --port 0 --simulator-port 0 --from nosuch":             (1, "nosuch"),
    "dev --port 0 --simulator-port 0 --scenario nosuch":         (1, "the scenario nosuch cannot be read"),
    "serve":                                                     (1, "set WAYPOST_SECRET_KEY"),
    "simulator":                                                 (2, "WAYPOST_CONTROL_TOKEN"),
    "simulator --control-token x --port 0":                      (2, "WAYPOST_CONTROL_TOKEN must have at least 32 characters"),
    "simulator --control-token x --port 70000":                  (2, "'--port'"),
    "simulator --control-token a-control-token-of-32-characters-- --port 0 --data page.md":       (1, "page.md cannot be used (File exists)"),
    "listen":                                                    (1, "waypost-dev.env is not there: start `waypost dev`"),
    "listen --env-file page.md":                                 (1, "PARTNER_URL is missing"),
    "listen --env-file .":                                       (1, ". is no file of variables"),
    "listen --env-file bytes":                                   (1, "bytes is no file of variables"),
    "listen --env-file gone.env":                                (1, "no response from http://127.0.0.1:9; start the service"),
    "trace":                                                     (2, "Missing argument"),
    "trace x":                                                   (1, "set WAYPOST_ADMIN_TOKEN to reach a running service"),
    "message x":                                                 (2, "No such command 'message'"),
    "callbacks replay x":                                        (2, "No such command 'replay'"),
    "replay":                                                    (2, "name the callbacks: an id, --subscription, --app or --partner, as in `waypost replay --sub"),
    "requests --status 40":                                      (2, "Invalid value for '--status': 40 is not one of 2xx, 3xx, 4xx, 5xx, or one status such as 404"),
    "listen --events nosuch":                                    (2, "--events: there is no event nosuch; accepted: account-event, audio,"),
    "listen --events read,nosuch":                               (2, "--events: there is no event nosuch; accepted: "),
    "clock advance --hours x":                                   (2, "Invalid value for '--hours': must be a whole number\n"),
    "clock run --factor x":                                      (2, "Invalid value for '--factor': must be a number\n"),
    "audit --days 0":                                            (2, "Invalid value for '--days': must be at least 1\n"),
    "audit --outcome x":                                         (2, "'x' is not one of 'done', 'rejected'"),
    "listen --port 99999":                                       (2, "Invalid value for '--port': must be at most 65535\n"),
    "callbacks key abc":                                         (2, "Invalid value for 'subscription_id': must be a whole number\n"),
    "callbacks key 0":                                           (2, "must be at least 1\n"),
    "partner list extra":                                        (2, "There is nothing to do with: extra"),
    "callbacks report --from yesterday":                         (2, "--from must be a time such as 2026-11-22T10:00Z"),
    "health --port 9":                                           (1, "127.0.0.1:9 cannot be reached"),
    "doctor":                                                    (1, "set WAYPOST_ADMIN_TOKEN to reach a running service"),
    "dead-letter delete x":                                      (2, "position"),
    "account token cloud":                                       (2, "--token-file, or set WAYPOST_OPERATOR_TOKEN"),
    "account operator cloud --base-url x --token-file nosuch":   (2, "nosuch cannot be read for the token"),
    "clock show":                                                (1, "waypost-dev.env is not there: start `waypost dev`"),
    "clock show --env-file page.md":                             (1, "page.md has no CONTROL_URL"),
    "clock show --env-file bytes":                               (1, "bytes is no file of variables"),
    "clock show --env-file gone.env":                            (1, "no response from http://127.0.0.1:9; start the service"),
    "clock advance":                                             (2, "at least one of --days, --hours, --minutes and --seconds"),
    "clock advance --hours -1":                                  (2, "'--hours'"),
    "clock advance --hours 99999999999999 --env-file gone.env":  (1, "no response from"),
    "snapshot save kept --to no/where --env-file gone.env":      (1, "no response from"),
    "snapshot load ../x --env-file gone.env":                    (1, "no response from"),
}
# fmt: on


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a page, a file of bytes, and the variables of a service that has stopped."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text("# A page\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    names = ("PARTNER_URL", "CONTROL_URL", "APP_ID", "APP_TOKEN")
    (tmp_path / "gone.env").write_text("".join(f"{name}={CLOSED_URL}\n" for name in names))
    return tmp_path


def run(line: str, **settings: str | None) -> Result:
    """Run a command line without any setting of this machine."""
    names = ("SECRET_KEY", "ADMIN_TOKEN", "ADMIN_URL", "CONTROL_TOKEN", "CONTROL_URL", "DATA")
    env: dict[str, str | None] = {f"WAYPOST_{name}": None for name in names}
    return CliRunner(env={**env, **settings}).invoke(commands, line.split())


@pytest.mark.parametrize("line", CASES)
def test_command_that_fails_prints_the_reason(folder: Path, line: str) -> None:
    code, text = CASES[line]

    result = run(line)

    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert text in result.stderr, (folder, result.stderr)
    if code == 1:
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [("PER_SECOND", "x", "the setting per_second is invalid: "), ("PUBLIC_URL", "x", "http")],
)
@pytest.mark.parametrize("line", ["doctor", "partner list", "serve", "dev"])
def test_invalid_setting_is_named_by_every_command(
    folder: Path, line: str, setting: str, value: str, expected: str
) -> None:
    result = run(line, **{f"WAYPOST_{setting}": value})

    assert (result.exit_code, folder.is_dir()) == (2, True)
    assert result.stderr.startswith("waypost: the setting ")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


def test_help_shows_defaults_in_brackets() -> None:
    helps = [run(f"{name} --help").output for name in ("dev", "account operator", "app operator")]

    for text, shown in zip(helps, (".waypost]", "[required for a new account]", "by its digits]"), strict=True):
        assert shown in " ".join(text.split())


def test_every_command_is_listed_by_subject_with_its_first_sentence_uncut() -> None:
    lines = run("-h").output.splitlines()
    shown = " ".join(" ".join(lines).split())

    subjects = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert subjects == ["Options", *SUBJECTS]
    for command in vars(typer.main.get_command(commands))["commands"].values():
        assert f" {command.name} {command.get_short_help_str(1000)}" in shown
    assert shown.count("...") == 1, "of [ARGS]..."


@pytest.mark.parametrize("line", ["", "dev", "partner", "partner list", "clock advance"])
def test_short_option_prints_the_help(line: str) -> None:
    assert run(f"{line} -h").output == run(f"{line} --help").output
    assert "-h, --help" in run(f"{line} -h").output


def test_help_is_plain_text_without_boxes() -> None:
    shown = run("--help").output + run("clock --help").output + run("nosuch").stderr

    assert shown.isascii(), shown
    assert "Start service and simulator in one process" in shown
