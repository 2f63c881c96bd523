"""`waypost intercept` does not start beside production, nor with a service that is no sandbox."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.interception.test_programs import WAYPOST, clean_environment
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev.dev import DevOptions, DevServer
from waypost.client.api_client import ApiClient, HttpTransport
from waypost.config import PRODUCTION_SETTINGS, convert_settings

EXIT_FAILURE, EXIT_USAGE = 1, 2
KEY: Final = "a key of production, with 32 characters"
VALUES: Final = {
    "database_url": "postgresql://waypost@db/waypost",
    "secret_key": KEY,
    "old_secret_key": KEY,
    "media_url": "s3://bucket",
}
CLOSED: Final = "http://127.0.0.1:9"


def intercept(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WAYPOST, "intercept", *arguments],
        cwd=folder,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )


@pytest.mark.parametrize("name", PRODUCTION_SETTINGS)
def test_setting_of_production_is_refused_and_its_value_not_shown(tmp_path: Path, name: str) -> None:
    run = intercept(tmp_path, "--", "true", **{f"WAYPOST_{name.upper()}": VALUES[name]})

    assert run.returncode == EXIT_FAILURE
    assert f"does not run beside production: WAYPOST_{name.upper()} is set" in run.stderr
    assert VALUES[name] not in run.stderr


def test_setting_of_production_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "waypost.toml").write_text(f'secret_key = "{KEY}"\n')

    run = intercept(tmp_path, "--", "true")

    assert "secret_key in waypost.toml is set" in run.stderr


def test_store_of_a_service_is_refused(tmp_path: Path) -> None:
    environment = clean_environment(WAYPOST_SECRET_KEY=KEY, WAYPOST_PARTNER_PASSWORD="A-password-1")
    command = [WAYPOST, "partner", "add", "ann@acme.example", "Acme"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)

    run = intercept(tmp_path, "--", "true")

    assert run.returncode == EXIT_FAILURE
    assert "is the store of `waypost serve`" in run.stderr


@pytest.mark.parametrize("content", ["no database", ""])
def test_store_that_cannot_be_read_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / ".waypost").mkdir()
    (tmp_path / ".waypost" / "waypost.db").write_text(content)

    run = intercept(tmp_path, "--", "true")

    assert "cannot be read as a sandbox's store" in run.stderr


def test_service_that_does_not_respond_is_refused(tmp_path: Path) -> None:
    run = intercept(tmp_path, "--url", CLOSED, "--graph-url", CLOSED, "--", "true")

    assert run.returncode == EXIT_FAILURE
    assert f"{CLOSED} is no service of `waypost dev`" in run.stderr


async def test_sandbox_with_an_account_at_the_real_operator_is_refused(tmp_path: Path) -> None:
    """Its graph is not asked: the account's address is enough."""
    settings = convert_settings({"port": 0, "host": "127.0.0.1"})
    dev = DevServer(DevOptions(settings, simulator_port=0, memory=True, env_file=tmp_path / "waypost-dev.env"))
    try:
        running = await dev.open()
        token = running.variables["ADMIN_TOKEN"]
        admin = ApiClient(HttpTransport(running.base_url), {"Authorization": f"Bearer {token}"})
        fields = {
            "base_url": "https://graph.facebook.com",
            "version": "v25.0",
            "token": "t",
            "app_secret": "s",
            "app_id": "1",
            "verify_token": "v",
        }
        await admin.json("PUT", "/admin/operator-accounts/real", fields)

        run = await asyncio.to_thread(intercept, tmp_path, "--", sys.executable, "-c", "print('started')")

        assert run.returncode == EXIT_FAILURE
        assert "the operator account real of" in run.stderr
        assert run.stdout == ""
    finally:
        await dev.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name a program after --"),
        (["--print-variables", "--", "true"], "one of them"),
        (["--by", "magic", "--", "true"], "--by must be one of auto, names, proxy"),
        (["--print-variables", "--by", "names"], "--by names needs a program"),
        (["--until-stdin-ends", "--", "true"], "--until-stdin-ends is for --print-variables"),
        (["--graph-url", CLOSED, "--", "true"], "give both"),
        (["--url", CLOSED, "--", "true"], "--graph-url is missing"),
        (["--url", "nonsense", "--graph-url", CLOSED, "--", "true"], "--url must be a URL without a path"),
        (["--url", f"{CLOSED}/partner", "--graph-url", CLOSED, "--", "true"], "--url must be a URL without a path"),
    ],
)
def test_wrong_usage_names_the_option_and_what_is_accepted(tmp_path: Path, arguments: list[str], text: str) -> None:
    run = intercept(tmp_path, *arguments)

    assert run.returncode == EXIT_USAGE
    assert text in run.stderr
