"""`waypost apply`: a set-up is created, then found unchanged, then changed; nothing is half-written."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.docs.repository import ROOT, samples_of
from tests.support.builders import ACCOUNT, OPERATOR, PARTNER
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from waypost.assembly.components import WEBHOOK_PATH
from waypost.base.encryption import hash_secret
from waypost.cli.command_tree import app

KEY: Final = "key-of-the-shop-" * 2
SECRET: Final = "secret-of-the-shop" * 2
DOCUMENT: Final = samples_of(ROOT / "docs" / "how-to" / "set-up-from-a-file.md", "toml")[0]
URL: Final = '{ env = "SHOP_CALLBACK_URL" }'
PARTS: Final = (
    "operator account cloud",
    "partner ada@acme.test",
    "client secret 1 of ada@acme.test",
    "API key shop of ada@acme.test",
    "API key generated of ada@acme.test",
    "business account 1000000000000001",
    "app Shop of ada@acme.test",
    "subscription shop of Shop",
)


class Setup:
    """A set-up file beside its store, and the variables that it refers to."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "setup.toml"
        self.file.write_text(DOCUMENT)
        self.secret_file = folder / "app-secret.txt"
        self.secret_file.write_text("the-app-secret\n")
        self.env: dict[str, str | None] = {
            "WAYPOST_DATA": str(folder / "data"),
            "WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
            "WAYPOST_ALLOWED_NETWORKS": "192.0.2.0/24",
            "WAYPOST_ADMIN_TOKEN": None,
            "WAYPOST_ADMIN_URL": None,
            "SHOP_TOKEN": "the-token",
            "SHOP_VERIFY_TOKEN": "the-verify-token",
            "SHOP_PASSWORD": "Correct-horse-1",
            "SHOP_SECRET": SECRET,
            "SHOP_KEY": KEY,
            "SHOP_CALLBACK_TOKEN": "Bearer of-the-shop",
            "SHOP_CALLBACK_URL": "https://192.0.2.1/callbacks",
        }

    def run(self, *arguments: str) -> Result:
        return CliRunner(env=self.env).invoke(app, list(arguments))

    def apply(self, *options: str) -> list[str]:
        """Apply the file and return the lines printed about its parts, without what is shown once."""
        result = self.run("apply", str(self.file), *options)
        assert result.exit_code == 0, result.output
        assert "the-" not in result.output
        return [line for line in result.stdout.splitlines() if not line.startswith(" ")]

    def replace(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))

    def list(self, *command: str) -> Any:
        return self.run(*command, "--json").stdout


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def test_file_creates_everything_once_and_is_then_unchanged(setup: Setup) -> None:
    planned = setup.apply("--dry-run")
    nothing = setup.run("partner", "list").stdout
    created = setup.apply()
    again = setup.apply()

    assert planned == [*(f"+ {part}" for part in PARTS), "8 to create, 0 to change, 0 unchanged"]
    assert nothing == "no partners\n"
    assert created == [*(f"+ {part}" for part in PARTS), "8 created, 0 changed, 0 unchanged"]
    assert again == [*(f"= {part}" for part in PARTS), "0 created, 0 changed, 8 unchanged"]
    assert hash_secret(KEY)[:16] in setup.list("partner", "keys", "1")
    assert hash_secret(SECRET)[:16] in setup.list("partner", "secrets", "1")
    assert '"own_days": 7' in setup.list("partner", "retention", "1")
    [app] = json.loads(setup.list("app", "list"))["apps"]
    assert (app["phone_number"], app["rates"]) == ("4915112345678", {"templates": "20/60s"})


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("https://graph.facebook.com", "https://graph.example", "~ operator account cloud: base_url"),
        ('name = "Acme"', 'name = "Acme Ltd"', "~ partner ada@acme.test: name"),
        ("keep_bodies_days = 7", "keep_messages_days = 90", "~ partner ada@acme.test: retention"),
        ("{ keep_bodies_days = 7 }", "{}", "~ partner ada@acme.test: retention"),
        ("per_second = 40", "per_second = 80", "~ app Shop of ada@acme.test: per_second"),
        ('"20/60s"', '"30/1m"', "~ app Shop of ada@acme.test: rates"),
        ('{ templates = "20/60s" }', "{}", "~ app Shop of ada@acme.test: rates"),
        ("+49 1511 2345678", "+49 1511 2345679", "~ app Shop of ada@acme.test: phone_number"),
        ('"SENT", ', "", "~ subscription shop of Shop: modes"),
        (URL, '"https://192.0.2.1/hooks"', "~ subscription shop of Shop: url"),
        ('{ Authorization = { env = "SHOP_CALLBACK_TOKEN" } }', "{}", "~ subscription shop of Shop: headers"),
        ("check = false", "check = false\nactive = false", "~ subscription shop of Shop: active"),
        ('{ name = "generated" }', '{ name = "second" }', "+ API key second of ada@acme.test"),
    ],
)
def test_only_what_differs_is_changed(setup: Setup, old: str, new: str, line: str) -> None:
    setup.apply()
    setup.replace(old, new)

    planned, changed, again = setup.apply("--dry-run"), setup.apply(), setup.apply()

    assert [each for each in changed[:-1] if not each.startswith("=")] == [line]
    assert planned[:-1] == changed[:-1]
    assert again[-1] == "0 created, 0 changed, 8 unchanged"


@pytest.mark.parametrize(("variable", "text"), [("SHOP_TOKEN", "the-other"), ("SHOP_VERIFY_TOKEN", "the-other")])
def test_changed_secret_of_an_operator_account_is_found(setup: Setup, variable: str, text: str) -> None:
    setup.apply()
    setup.env[variable] = text

    assert setup.apply()[0].startswith("~ operator account cloud: ")
    assert setup.apply()[0] == "= operator account cloud"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('name = "Shop"', 'name = "Shop"\ncolour = "red"', "apps[0].colour is not one of name, phone_number,"),
        ("per_second = 40", "per_second = 0", "per_second must be 1 to 1000"),
        ("keep_bodies_days = 7", "keep_bodies_days = 31", "partner ada@acme.test: keep_bodies_days must be 1 to 30"),
        ('name = "Shop"', "name = 5", "setup.toml: partners[0].apps[0].name must be a text, not a number"),
        ("per_second = 40", 'per_second = "40"', "per_second must be a whole number"),
        ('"20/60s"', '"0/60s"', "rates: 'templates=0/60s': a rate has 1 to 1000000 requests"),
        ("{ templates", "{ create_app", "the rate create_app is per partner; an app can have its own of app_token,"),
        ("+49 1511 2345678", "12", "phone_number must be 8 to 15 digits"),
        ('"MESSAGE"]', '"MESSAGES"]', "modes must be some of"),
        (URL, '"ftp://192.0.2.1/"', "url must be an absolute http or https address"),
        (URL, '"http://127.0.0.1/"', "must lead to public addresses only"),
        ('business_account = "1', 'business_account = "7', "must name a business account of its partner"),
        ('operator_account = "cloud"', 'operator_account = "clod"', "must name an operator account"),
        ('app_id = "900"', 'appid = "900"', "appid is not one of version, token, app_id,"),
        ('{ env = "SHOP_TOKEN" }', '"the-plain-token"', "operator_accounts.cloud.token is a secret"),
        ('{ env = "SHOP_TOKEN" }', '{ env = "SHOP_TOKN" }', "the environment variable SHOP_TOKN is not set"),
        ("app-secret.txt", "no-such-file.txt", "cannot be read"),
        ("[[partners]]", "[[partners", "is not valid TOML at line 9, column 11: a [table] has no closing bracket"),
        ('{ name = "generated" }', '{ name = "shop" }', "api_keys names shop twice"),
    ],
)
def test_invalid_file_changes_nothing_and_the_error_names_the_part(setup: Setup, old: str, new: str, text: str) -> None:
    setup.replace(old, new)

    result = setup.run("apply", str(setup.file))

    assert result.exit_code in (1, 2)
    assert text in result.output
    assert "Traceback" not in result.output
    assert "no partners" in setup.run("partner", "list").stdout


def test_credential_of_another_partner_is_an_error(setup: Setup) -> None:
    setup.apply()
    second = '\n[[partners]]\nemail = "bob@acme.test"\nname = "Bob"\napi_keys = [{ name = "b", value = { env = "SHOP_KEY" } }]\n'
    setup.file.write_text(second)

    result = setup.run("apply", str(setup.file))

    assert result.exit_code == 1
    assert "partner bob@acme.test: The text of the API key is taken" in result.output
    assert "bob" not in setup.run("partner", "list").stdout


def test_step_that_fails_is_named_and_the_same_file_continues(setup: Setup) -> None:
    """The operator that would tell the namespace is away, after the partner has been created."""
    setup.replace('namespace = "acme_templates"\n', "")
    setup.replace("https://graph.facebook.com", "http://127.0.0.1:9")

    failed = setup.run("apply", str(setup.file))
    setup.file.write_text(DOCUMENT)
    continued = setup.apply()

    assert failed.exit_code == 1
    assert "+ partner ada@acme.test" in failed.stdout
    assert "business account 1000000000000001: " in failed.output
    assert continued[-1] == "3 created, 1 changed, 4 unchanged"


async def test_webhook_is_subscribed_once(pipeline: PipelineHarness, tmp_path: Path) -> None:
    """At the operator, which is the simulator; an administrator there has unsubscribed the service."""
    file = tmp_path / "setup.toml"
    file.write_text(f"""
[[partners]]
email = "{PARTNER.email}"
name = "{PARTNER.name}"
contact_name = "{PARTNER.contact_name}"
business_accounts = [{{ id = "{ACCOUNT.id}", operator_account = "{OPERATOR.id}", subscribe = true }}]
""")
    runner = CliRunner(env={"WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN, "WAYPOST_ADMIN_URL": f"{pipeline.service_url}/admin"})
    at_operator = f"{pipeline.operator_url}/v25.0/{ACCOUNT.id}/subscribed_apps"
    headers = {"Authorization": f"Bearer {OPERATOR['token']}"}
    (await pipeline.http.delete(at_operator, headers=headers)).raise_for_status()

    async def apply(*options: str) -> tuple[str, list[Any]]:
        result = await asyncio.to_thread(runner.invoke, app, ["apply", str(file), *options])
        assert result.exit_code == 0, result.output
        async with pipeline.http.get(at_operator, headers=headers) as response:
            subscribed = (await response.json())["data"]
        line = next(line for line in result.stdout.splitlines() if "webhook subscription" in line)
        return line.partition(" webhook")[0], [one["override_callback_uri"] for one in subscribed]

    planned, created, kept = await apply("--dry-run"), await apply(), await apply()

    url = f"{pipeline.service_url}{WEBHOOK_PATH}/{OPERATOR.id}"
    assert (planned, created, kept) == (("+", []), ("+", [url]), ("=", [url]))


IF_MISSING: Final = (  # a command, and a word of it that differs from what exists, with the error
    ("partner add ada@acme.test Acme --password Correct-horse-1", ("Acme", "Other"), "it exists with name Acme"),
    ("account business 1000000000000001 1 cloud --namespace acme_templates", ("acme_templates", "other"), "namespace"),
    ("app add 1 Shop +4915112345678 2000000000000002 1000000000000001", ("+4915112345678", "+4915112345679"),
     "it exists with phone_number 4915112345678"),
    ("partner key 1 --name shop", None, ""),
)  # fmt: skip


@pytest.mark.parametrize(("command", "change", "text"), IF_MISSING, ids=[row[0][:12] for row in IF_MISSING])
def test_if_missing_shows_what_exists_as_requested(
    setup: Setup, command: str, change: tuple[str, str] | None, text: str
) -> None:
    setup.file.write_text(DOCUMENT.partition("[[partners]]")[0])
    setup.apply()
    for row, _, _ in IF_MISSING:  # what the command needs, and what it adds
        added = setup.run(*row.split(), "--if-missing", "--json")
        assert added.exit_code == 0, added.output
        if row == command:
            break

    shown = setup.run(*command.split(), "--if-missing", "--json")

    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["id"] or command.startswith("partner key")
    if change is not None:
        other = setup.run(*[change[1] if word == change[0] else word for word in command.split()], "--if-missing")
        assert other.exit_code == 1
        assert text in other.output


def test_api_key_with_if_missing_is_created_once(setup: Setup) -> None:
    setup.apply()

    created, shown = (setup.run("partner", "key", "1", "--name", "ci", "--if-missing", "--json") for _ in range(2))

    assert "api_key" in json.loads(created.stdout)
    assert json.loads(shown.stdout)["name"] == "ci"
    assert "api_key" not in json.loads(shown.stdout)


def test_app_rates_are_shown_set_and_removed(setup: Setup) -> None:
    setup.apply()
    app_id = json.loads(setup.list("app", "list"))["apps"][0]["id"]

    def own(*arguments: str) -> dict[str, str]:
        rates = json.loads(setup.list("app", "rates", app_id, *arguments))["rates"]
        return {rate["rate"]: rate["app"] for rate in rates if rate["app"]}

    assert own() == {"templates": "20/60s"}
    assert own("download=100/1h", "upload=50/s") == {
        "templates": "20/60s", "download": "100/3600s", "upload": "50/1s",
    }  # fmt: skip
    assert own("--reset", "mmlite=3/h") == {"mmlite": "3/3600s"}
    for text in ("mmlite", "login=1/s"):
        rejected = setup.run("app", "rates", app_id, "upload=9/s", text)
        assert rejected.exit_code in (1, 2)
        assert text.partition("=")[0] in rejected.output
    assert own() == {"mmlite": "3/3600s"}
