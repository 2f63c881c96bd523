"""The commands for partners and apps, on their own store."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from waypost.cli.command_tree import app

PASSWORD = "Correct-horse-1"


class Commands:
    """Runs commands on a store."""

    def __init__(self, folder: Path) -> None:
        self._env = {
            "WAYPOST_DATA": str(folder),
            "WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
            "WAYPOST_ADMIN_TOKEN": None,
            "WAYPOST_ADMIN_URL": None,
        }

    def run(self, *arguments: str) -> Result:
        return CliRunner(env=self._env).invoke(app, list(arguments))

    def run_json(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    """Return commands on a new store with one partner, whose id is 1."""
    commands = Commands(tmp_path)
    commands.run_json("partner", "add", "ada@acme.test", "Acme", "--password", PASSWORD)
    return commands


def test_weak_password_is_an_error_with_the_rule(commands: Commands) -> None:
    result = commands.run("partner", "password", "1", "--password", "password")

    assert result.exit_code == 1
    assert "an upper-case letter" in result.output


def test_password_can_be_changed(commands: Commands) -> None:
    result = commands.run_json("partner", "password", "1", "--password", "Another-horse-2")

    assert result["changed"] is True


def test_partner_has_shorter_retention_periods_than_the_service_and_never_longer_ones(commands: Commands) -> None:
    service = commands.run_json("partner", "retention", "1")
    changed = commands.run_json("partner", "retention", "1", "--bodies-days", "7")
    both = commands.run_json("partner", "retention", "1", "--messages-days", "90")
    longer = commands.run("partner", "retention", "1", "--bodies-days", "31")
    unknown = commands.run("partner", "retention", "2", "--bodies-days", "7")
    again = commands.run_json("partner", "retention", "1", "--default")

    bodies = {"days": 30, "own_days": None, "service_days": 30}
    records = {"days": 400, "own_days": None, "service_days": 400}
    assert service == {"keep_bodies_days": bodies, "keep_messages_days": records}
    short = {"days": 7, "own_days": 7, "service_days": 30}
    assert changed == service | {"keep_bodies_days": short}
    assert both == {"keep_bodies_days": short, "keep_messages_days": records | {"days": 90, "own_days": 90}}
    assert longer.exit_code == 1
    assert "keep_bodies_days must be 1 to 30" in longer.output
    assert unknown.exit_code == 1
    assert again == service


def test_secrets_are_listed_without_their_values_and_revoked_by_id(commands: Commands) -> None:
    secret = commands.run_json("partner", "secret", "1", "--days", "90")["client_secret"]
    listed = commands.run_json("partner", "secrets", "1")["client_secrets"]

    revoked = commands.run_json("partner", "revoke-secret", "1", listed[0]["id"])

    assert secret not in json.dumps(listed)
    assert listed[0]["expired"] is False
    assert revoked == {"revoked": listed[0]["id"], "tokens_ended": 0}
    assert commands.run_json("partner", "secrets", "1") == {"client_secrets": []}


def test_keys_are_listed_without_their_values_and_revoked_by_id(commands: Commands) -> None:
    key = commands.run_json("partner", "key", "1", "--name", "shop")["api_key"]
    listed = commands.run_json("partner", "keys", "1")["api_keys"]

    revoked = commands.run_json("partner", "revoke-key", listed[0]["id"], "--of", "1")

    assert key not in json.dumps(listed)
    assert listed[0]["name"] == "shop"
    assert revoked == {"revoked": listed[0]["id"]}
    assert commands.run_json("partner", "keys", "1") == {"api_keys": []}


def test_connecting_an_unknown_app_is_an_error(commands: Commands) -> None:
    result = commands.run("app", "connect", "none", "15550001111", "2", "1")

    assert result.exit_code == 1
    assert "There is no app none." in result.output


def test_app_can_be_made_a_sandbox_app_and_live_again(commands: Commands) -> None:
    account = ("--base-url", "http://127.0.0.1:9", "--app-id", "3", "--token", "t")
    secrets = ("--app-secret", "s", "--verify-token", "v")
    commands.run_json("account", "operator", "main", *account, *secrets)
    commands.run_json("account", "business", "1000", "1", "main", "--namespace", "a_namespace")
    made = commands.run_json("app", "add", "1", "AcmeShop", "15550001111", "2000", "1000")

    sandbox = commands.run_json("app", "connect", made["id"], "15550001111", "2000", "1000", "--no-live")
    live = commands.run_json("app", "connect", made["id"], "15550002222", "2001", "1000")

    assert (sandbox["live"], live["live"]) == (False, True)
    assert live["phone_number"] == "15550002222"


def test_quotas_are_set_shown_and_removed(commands: Commands) -> None:
    before = commands.run_json("partner", "quota", "1")
    changed = commands.run_json("partner", "quota", "1", "--messages", "500", "--callbacks", "0")
    removed = commands.run_json("partner", "quota", "1", "--default", "--callbacks", "7")
    invalid = commands.run("partner", "quota", "1", "--messages", "-1")

    assert before["messages"] == {"waiting": 0, "quota": 1_000_000, "own_quota": None, "service_quota": 1_000_000}
    assert [changed[name]["quota"] for name in ("messages", "callbacks")] == [500, 0]
    assert [removed[name]["own_quota"] for name in ("messages", "callbacks")] == [None, 7]
    assert invalid.exit_code == 1
    assert "message_quota must be a number of 0 to 1000000000" in invalid.output
