"""Operator accounts by command: where secrets come from, what is kept, what is shown."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import ACCOUNT, APP, OPERATOR, PARTNER
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.cli.main import app as commands
from waypost.domain.app import OperatorAccount

NEW: Final = ("account", "operator", "cloud", "--base-url", "https://graph.example", "--app-id", "9")


class Typist:
    """Types commands to the street's service."""

    def __init__(self, pipeline: PipelineHarness, folder: Path) -> None:
        self._pipeline = pipeline
        self.folder = folder
        self._env = {"WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN, "WAYPOST_ADMIN_URL": f"{pipeline.service_url}/admin"}

    async def run(self, *words: str, typed: str | None = None, **env: str) -> Result:
        runner = CliRunner(env=self._env | env)
        return await asyncio.to_thread(runner.invoke, commands, list(words), input=typed)

    async def told(self, *words: str, typed: str | None = None, **env: str) -> Any:
        result = await self.run(*words, typed=typed, **env)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    async def kept(self, account_id: str = "cloud") -> OperatorAccount:
        account = await self._pipeline.waypost.directory.operator_account(account_id)
        assert account is not None
        return account


@pytest.fixture
def typist(pipeline: PipelineHarness, tmp_path: Path) -> Typist:
    return Typist(pipeline, tmp_path)


async def test_each_secret_takes_a_line_of_standard_input(typist: Typist) -> None:
    files = ("--token-file", "-", "--app-secret-file", "-", "--verify-token-file", "-")

    told = await typist.told(*NEW, *files, typed="the-token\nthe-secret\nthe-word\n")

    account = await typist.kept()
    assert (account["token"], account["app_secret"]) == ("the-token", "the-secret")
    assert account["verify_token"] == "the-word"
    assert "the-" not in json.dumps(told)


async def test_secrets_come_from_files_and_from_the_environment(typist: Typist) -> None:
    file = typist.folder / "token.txt"
    file.write_text("from-a-file\nand what stands below\n")

    await typist.told(*NEW, "--token-file", str(file), WAYPOST_OPERATOR_APP_SECRET="from-the-environment")

    account = await typist.kept()
    assert (account["token"], account["app_secret"]) == ("from-a-file", "from-the-environment")


async def test_new_account_without_a_verify_token_gets_one_that_is_shown_once(typist: Typist) -> None:
    made = await typist.told(*NEW, "--token", "t", "--app-secret", "s")
    listed = await typist.told("account", "list")
    again = await typist.told("account", "operator", "cloud", "--version", "v26.0")

    account = await typist.kept()
    assert made["verify_token"] == account["verify_token"]
    assert account["verify_token"] not in json.dumps([listed, again])
    assert (account["version"], account["token"]) == ("v26.0", "t")


async def test_token_is_rotated_and_nothing_else(typist: Typist) -> None:
    await typist.told("account", "token", "main", "--token-file", "-", typed="the-next\n")

    account = await typist.kept("main")
    assert account["token"] == "the-next"
    assert account["app_secret"] == OPERATOR["app_secret"]


async def test_list_shows_who_carries_what_without_a_secret(typist: Typist) -> None:
    listed = await typist.told("account", "list")

    [main] = listed["operator_accounts"]
    [owner] = main["business_accounts"]
    assert main["callback_url"].endswith("/operator/webhook/main")
    assert (owner["id"], owner["apps"][0]["id"]) == (ACCOUNT.id, APP.id)
    secrets = (OPERATOR["token"], OPERATOR["app_secret"], OPERATOR["verify_token"])
    assert not [secret for secret in secrets if secret in json.dumps(listed)]


async def test_numbers_of_a_business_account_are_asked_of_the_operator(typist: Typist) -> None:
    told = await typist.told("account", "numbers", "main", ACCOUNT.id)

    assert [one["id"] for one in told["numbers"]] == [APP.phone_number_id]


async def test_namespace_of_a_business_account_is_asked_of_the_operator(
    typist: Typist, pipeline: PipelineHarness
) -> None:
    wish = {"name": "B", "namespace": "of_the_operator", "token": OPERATOR["token"]}
    app = {"app_id": OPERATOR["app_id"], "app_secret": OPERATOR["app_secret"]}
    await pipeline.control("PUT", "accounts/77", wish | app)

    told = await typist.told("account", "business", "77", str(PARTNER.id), "main")

    assert told == {"id": "77", "namespace": "of_the_operator"}


# fmt: off
REFUSED: Final = (
    # words                                                             what is said
    ((*NEW, "--app-secret", "s"),                                       "token is required"),
    ((*NEW, "--token", "with a space", "--app-secret", "s"),            "token must be visible ASCII"),
    (("account", "operator", "a/b", "--version", "v1.0"),               "waypost: "),
    (("account", "operator", "a b", "--base-url", "http://x", "--app-id", "1", "--token", "t", "--app-secret", "s"), "id must be 1 to 64"),
    (("account", "operator", "main", "--base-url", "http://x/"),        "without a slash at its end"),
    (("account", "operator", "main", "--version", "25"),                "such as v25.0"),
    (("account", "token", "nobody", "--token", "t"),                    "base_url is required"),
    (("account", "token", "main"),                                      "--token-file"),
    (("account", "token", "main", "--token-file", "not-there.txt"),     "cannot be read"),
    (("account", "numbers", "nobody", "1"),                             "must name an operator account"),
    (("account", "numbers", "main", "424242"),                          "The operator returned an error"),
    (("account", "subscribe", "424242"),                                "no such business account"),
    (("account", "business", "424242", str(PARTNER.id), "main"),        "The operator returned an error"),
)
# fmt: on


async def test_what_cannot_be_is_refused_with_the_reason(typist: Typist) -> None:
    results = [(await typist.run(*words), said) for words, said in REFUSED]

    unsaid = [
        (said, result.output)
        for result, said in results
        if result.exit_code == 0 or said not in " ".join(result.output.replace("│", " ").split())
    ]
    assert unsaid == []
