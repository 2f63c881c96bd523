"""Operator accounts by command: the sources of secrets, and what is stored and shown."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ACCOUNT, APP, OPERATOR, PARTNER
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.cli.command_tree import app as commands
from waypost.domain.app import OperatorAccount

NEW: Final = ("account", "operator", "cloud", "--base-url", "https://graph.example", "--app-id", "9")


class CommandRunner:
    """Runs commands against the pipeline's service."""

    def __init__(self, pipeline: PipelineHarness, folder: Path) -> None:
        self._pipeline = pipeline
        self.folder = folder
        self._env = {"WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN, "WAYPOST_ADMIN_URL": f"{pipeline.service_url}/admin"}

    async def run(self, *arguments: str, typed: str | None = None, **env: str) -> Result:
        runner = CliRunner(env=self._env | env)
        return await asyncio.to_thread(runner.invoke, commands, list(arguments), input=typed)

    async def run_json(self, *arguments: str, typed: str | None = None, **env: str) -> Any:
        result = await self.run(*arguments, "--json", typed=typed, **env)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    async def stored_account(self, account_id: str = "cloud") -> OperatorAccount:
        account = await self._pipeline.waypost.directory.operator_account(account_id)
        assert account is not None
        return account


@pytest.fixture
def runner(pipeline: PipelineHarness, tmp_path: Path) -> CommandRunner:
    return CommandRunner(pipeline, tmp_path)


async def test_each_secret_is_read_from_a_line_of_standard_input(runner: CommandRunner) -> None:
    files = ("--token-file", "-", "--app-secret-file", "-", "--verify-token-file", "-")

    response = await runner.run_json(*NEW, *files, typed="the-token\nthe-secret\nthe-word\n")

    account = await runner.stored_account()
    assert (account["token"], account["app_secret"]) == ("the-token", "the-secret")
    assert account["verify_token"] == "the-word"
    assert "the-" not in json.dumps(response)


async def test_secrets_are_read_from_files_and_from_the_environment(runner: CommandRunner) -> None:
    file = runner.folder / "token.txt"
    file.write_text("from-a-file\nand a second line\n")

    await runner.run_json(*NEW, "--token-file", str(file), WAYPOST_OPERATOR_APP_SECRET="from-the-environment")

    account = await runner.stored_account()
    assert (account["token"], account["app_secret"]) == ("from-a-file", "from-the-environment")


async def test_new_account_without_a_verify_token_gets_a_token_that_is_shown_once(runner: CommandRunner) -> None:
    made = await runner.run_json(*NEW, "--token", "t", "--app-secret", "s")
    listed = await runner.run_json("account", "list")
    updated = await runner.run_json("account", "operator", "cloud", "--version", "v26.0")

    account = await runner.stored_account()
    assert made["verify_token"] == account["verify_token"]
    assert account["verify_token"] not in json.dumps([listed, updated])
    assert (account["version"], account["token"]) == ("v26.0", "t")


async def test_rotation_changes_the_token_only(runner: CommandRunner) -> None:
    await runner.run_json("account", "token", "main", "--token-file", "-", typed="the-next\n")

    account = await runner.stored_account("main")
    assert account["token"] == "the-next"
    assert account["app_secret"] == OPERATOR["app_secret"]


async def test_list_shows_accounts_with_their_apps_and_no_secret(runner: CommandRunner) -> None:
    listed = await runner.run_json("account", "list")

    [main] = listed["operator_accounts"]
    [owner] = main["business_accounts"]
    assert main["callback_url"].endswith("/operator/webhook/main")
    assert (owner["id"], owner["apps"][0]["id"]) == (ACCOUNT.id, APP.id)
    secrets = (OPERATOR["token"], OPERATOR["app_secret"], OPERATOR["verify_token"])
    assert not [secret for secret in secrets if secret in json.dumps(listed)]


async def test_numbers_of_a_business_account_are_read_from_the_operator(runner: CommandRunner) -> None:
    listed = await runner.run_json("account", "numbers", "main", ACCOUNT.id)

    assert [number["id"] for number in listed["numbers"]] == [APP.phone_number_id]


async def test_namespace_of_a_business_account_is_read_from_the_operator(
    runner: CommandRunner, pipeline: PipelineHarness
) -> None:
    account = {"name": "B", "namespace": "of_the_operator", "token": OPERATOR["token"]}
    app = {"app_id": OPERATOR["app_id"], "app_secret": OPERATOR["app_secret"]}
    await pipeline.control("PUT", "accounts/77", account | app)

    response = await runner.run_json("account", "business", "77", str(PARTNER.id), "main")

    assert response == {"id": "77", "namespace": "of_the_operator"}


# fmt: off
INVALID_COMMANDS: Final = (
    # arguments                                                         expected text
    ((*NEW, "--app-secret", "s"),                                       "token is required"),
    ((*NEW, "--token", "with a space", "--app-secret", "s"),            "token must be visible ASCII"),
    (("account", "operator", "a/b", "--version", "v1.0"),               "waypost: "),
    (("account", "operator", "a b", "--base-url", "http://x", "--app-id", "1", "--token", "t", "--app-secret", "s"), "id must be 1 to 64"),
    (("account", "operator", "main", "--base-url", "http://x/"),        "without a slash at its end"),
    (("account", "operator", "main", "--version", "25"),                "such as v25.0"),
    (("account", "token", "nobody", "--token", "t"),                    "base_url is required"),
    (("account", "token", "main"),                                      "--token-file"),
    (("account", "token", "main", "--token-file", "not-there.txt"),     "cannot be read"),
    (("account", "numbers", "nobody", "1"),                             "There is no operator account nobody. (404); accepted: one that `waypost account list` lists"),
    (("account", "numbers", "main", "424242"),                          "The operator returned an error"),
    (("account", "subscribe", "424242"),                                "There is no business account 424242."),
    (("account", "business", "424242", str(PARTNER.id), "main"),        "The operator returned an error"),
)
# fmt: on


async def test_invalid_command_fails_with_the_reason(runner: CommandRunner) -> None:
    results = [(await runner.run(*arguments), expected) for arguments, expected in INVALID_COMMANDS]

    wrong = [
        (expected, result.output)
        for result, expected in results
        if result.exit_code == 0 or expected not in " ".join(result.output.replace("│", " ").split())
    ]
    assert wrong == []
