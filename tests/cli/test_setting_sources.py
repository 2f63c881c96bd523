"""Where the settings come from, and which names and files are errors. Source: decision 0097."""

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
from typer.testing import CliRunner

from tests.docs.repository import ROOT
from waypost.cli.command_tree import app as commands
from waypost.cli.setting_sources import read_settings
from waypost.cli.shown_settings import mask_database_url
from waypost.cli.variables import COMMAND_SECRETS, OTHER_VARIABLES, InvalidSetting
from waypost.config import SECRETS, SETTINGS, Settings

KEY: Final = "5ec70b1d" * 8
OTHER_KEY: Final = "0a1b2c3d" * 8
URL: Final = "postgresql://waypost:s3cret@db.test/waypost"

# fmt: off
FILES: Final = {
    "waypost.toml": "",
    "key":          f"{KEY}\r\n",
    "empty":        "\n",
    "bytes":        b"\xff\xfe",
}
CASES: Final[dict[str, tuple[dict[str, str], str, tuple[str, object, str | None]]]] = {
    # environment (names without WAYPOST_)    waypost.toml                       setting, its value, its source
    "one variable":
    ({"PORT": "9999"},                        "",                                ("port", 9999, "WAYPOST_PORT")),
    "a list":
    ({"ALLOWED_NETWORKS": "10.0.0.0/8, ::1/128"}, "",          ("allowed_networks", ("10.0.0.0/8", "::1/128"), "WAYPOST_ALLOWED_NETWORKS")),
    "an empty variable is unset":
    ({"SECRET_KEY": "", "PORT": ""},          "port = 7",                        ("port", 7, "port in waypost.toml")),
    "an empty variable is the default":
    ({"STAGES": ""},                          "",                                ("stages", Settings().stages, None)),
    "a variable is before the file":
    ({"PORT": "8"},                           "port = 7",                        ("port", 8, "WAYPOST_PORT")),
    "a TOML list":
    ({},                                      "stages = ['api', 'events']",      ("stages", ("api", "events"), "stages in waypost.toml")),
    "an empty member is unset":
    ({},                                      "admin_token = ''",                ("admin_token", None, None)),
    "a secret in a file, without its line end":
    ({"SECRET_KEY_FILE": "key"},              "",                                ("secret_key", KEY, "WAYPOST_SECRET_KEY_FILE (key)")),
    "a file that the TOML file names":
    ({},                                      "secret_key_file = 'key'",         ("secret_key", KEY, "secret_key_file in waypost.toml (key)")),
    "a variable is before a file in TOML":
    ({"SECRET_KEY": OTHER_KEY},               "secret_key_file = 'key'",         ("secret_key", OTHER_KEY, "WAYPOST_SECRET_KEY")),
    "an empty name of a file is unset":
    ({"SECRET_KEY_FILE": "", "SECRET_KEY": KEY}, "",                             ("secret_key", KEY, "WAYPOST_SECRET_KEY")),
    "another file":
    ({"CONFIG": "other.toml"},                "port = 7",                        ("port", 6, "port in other.toml")),
    "a variable that is no setting":
    ({"ADMIN_URL": "http://x", "CONTROL_TOKEN_FILE": "key"}, "",                 ("port", 8080, None)),
}
ERRORS: Final[dict[str, tuple[dict[str, str], str, str]]] = {
    # environment                             waypost.toml                       text of the error
    "a misspelled variable":
    ({"PROT": "1"},                           "",                                "there is no setting WAYPOST_PROT: did you mean WAYPOST_PORT?"),
    "a misspelled file of a secret":
    ({"SECRETKEY_FILE": "key"},               "",                                "did you mean WAYPOST_SECRET_KEY_FILE?"),
    "a file of what is no secret":
    ({"PORT_FILE": "key"},                    "",                                "there is no setting WAYPOST_PORT_FILE: did you mean WAYPOST_PORT?"),
    "an unknown name that is empty":
    ({"PROT": ""},                            "",                                "there is no setting WAYPOST_PROT"),
    "nothing is near":
    ({"XYZZYXYZZY": "1"},                     "",                                "there is no setting WAYPOST_XYZZYXYZZY: `waypost config` lists the settings"),
    "of Kubernetes":
    ({"SERVICE_PORT": "80"},                  "",                                "enableServiceLinks: false"),
    "of Kubernetes, with a port":
    ({"PORT_80_TCP_ADDR": "10.0.0.1"},        "",                                "enableServiceLinks: false"),
    "a misspelled member":
    ({},                                      "prot = 1",                        "there is no setting prot, in waypost.toml: did you mean port?"),
    "a table":
    ({},                                      "[waypost]\nport = 1",             "there is no setting waypost, in waypost.toml"),
    "no TOML":
    ({},                                      "port = ",                         "'waypost.toml' is not valid TOML"),
    "a file that is not there":
    ({"CONFIG": "nosuch.toml"},               "",                                "'nosuch.toml' is not there"),
    "an invalid variable":
    ({"PORT": "many"},                        "",                                r"the setting port is invalid: .*\(WAYPOST_PORT is 'many'\)"),
    "an invalid member":
    ({},                                      "port = 70000",                    r"the setting port is invalid: .*\(port in waypost.toml is 70000\)"),
    "a secret that is too short":
    ({"ADMIN_TOKEN": "hunter2"},              "",                                r"the setting admin_token is invalid: .* \(WAYPOST_ADMIN_TOKEN\)$"),
    "secret and file":
    ({"SECRET_KEY": KEY, "SECRET_KEY_FILE": "key"}, "",                          "WAYPOST_SECRET_KEY and WAYPOST_SECRET_KEY_FILE are both set"),
    "secret and file in TOML":
    ({},                         f"secret_key = '{KEY}'\nsecret_key_file = 'key'", "secret_key in waypost.toml and secret_key_file in waypost.toml are both set"),
    "no such file of a secret":
    ({"SECRET_KEY_FILE": "nosuch"},           "",                                "WAYPOST_SECRET_KEY_FILE names 'nosuch', which cannot be read"),
    "an empty file of a secret":
    ({"SECRET_KEY_FILE": "empty"},            "",                                "WAYPOST_SECRET_KEY_FILE names 'empty', which is empty"),
    "a file that is no text":
    ({"SECRET_KEY_FILE": "bytes"},            "",                                "it is no text in UTF-8"),
    "a path that is no text":
    ({},                                      "secret_key_file = 1",             "secret_key_file in waypost.toml must be the path of a file"),
}
MASKED: Final = {  # a URL, and what is shown of it
    URL: "postgresql://waypost@db.test/waypost",
    "postgres://h1:5432,h2:5433/db": "postgresql://h1:5432,h2:5433/db",
    "postgresql://u@/db?host=/run/pg&password=s3cret&sslpassword=s3cret": "postgresql://u@/db?host=/run/pg",
    "postgresql://u:s3%40cret@[::1]:5432/db": "postgresql://u@[::1]:5432/db",
    "postgresql://h/db?passfile=x": "postgresql://h/db",
}
AMBIGUOUS: Final = ("u:x@s3cret@h/db", "u:s3/cret@h/db", "u:s3?cret@h/db", "h/db?password=s3@cret", "h?password=s3@cret")
# fmt: on


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with these files and no setting of this machine."""
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "other.toml").write_text("port = 6\n")
    for name in [name for name in os.environ if name.startswith("WAYPOST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arrange(monkeypatch: pytest.MonkeyPatch, folder: Path, variables: dict[str, str], toml: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"WAYPOST_{name}", value)
    (folder / "waypost.toml").write_text(toml)


@pytest.mark.parametrize("case", CASES)
def test_first_source_that_has_a_setting_wins(folder: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    variables, toml, (name, value, source) = CASES[case]
    arrange(monkeypatch, folder, variables, toml)

    found = read_settings()

    assert (getattr(found.settings, name), found.sources.get(name)) == (value, source)


def test_option_of_the_command_line_is_before_everything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange(monkeypatch, folder, {"PORT": "8"}, "port = 7")

    found = read_settings(Path("other.toml"), port=5, host=None)

    assert (found.settings.port, found.settings.host) == (5, "127.0.0.1")
    assert found.sources == {"port": "--port"}
    assert read_settings(Path("other.toml")).sources.keys() == {"port"}


def test_option_may_have_the_type_of_its_setting(folder: Path) -> None:
    settings = read_settings(data=folder, port=5, rates=False, stages=("api",), drain_s=2).settings

    assert (settings.data, settings.port, settings.rates) == (folder, 5, False)
    assert (settings.stages, settings.drain_s) == (("api",), 2.0)


@pytest.mark.parametrize("case", ERRORS)
def test_name_or_value_that_cannot_be_used_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    variables, toml, text = ERRORS[case]
    arrange(monkeypatch, folder, variables, toml)

    with pytest.raises(InvalidSetting, match=text) as error:
        read_settings()
    assert KEY not in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("command", ["serve", "dev", "doctor", "config", "store upgrade"])
def test_misspelled_name_ends_every_command_that_reads_settings(folder: Path, command: str) -> None:
    result = CliRunner(env={"WAYPOST_PROT": "1", "WAYPOST_DATA": str(folder)}).invoke(commands, command.split())

    assert (result.exit_code, result.stderr) == (
        2,
        "waypost: there is no setting WAYPOST_PROT: did you mean WAYPOST_PORT?\n",
    )


def test_config_shows_each_setting_with_its_source_and_no_secret(folder: Path) -> None:
    (folder / "waypost.toml").write_text("per_second = 20\nadmin_token_file = 'key'\n")
    runner = CliRunner(env={"WAYPOST_DATABASE_URL": URL, "WAYPOST_SECRET_KEY_FILE": "key", "WAYPOST_HOLD": "yes"})

    shown = runner.invoke(commands, ["config", "--json"]).stdout
    as_table = runner.invoke(commands, ["config"]).stdout

    rows: dict[str, dict[str, Any]] = {row.pop("setting"): row for row in json.loads(shown)["settings"]}
    assert list(rows) == list(SETTINGS)
    assert {name: row for name, row in rows.items() if row["source"] != "default"} == {
        "database_url": {"value": MASKED[URL], "source": "WAYPOST_DATABASE_URL"},
        "hold": {"value": True, "source": "WAYPOST_HOLD"},
        "secret_key": {"value": "set", "source": "WAYPOST_SECRET_KEY_FILE (key)"},
        "admin_token": {"value": "set", "source": "admin_token_file in waypost.toml (key)"},
        "per_second": {"value": 20, "source": "per_second in waypost.toml"},
    }
    assert re.search(r"^per_second +20 +per_second in waypost.toml$", as_table, re.MULTILINE)
    assert re.search(r"^metrics_token +not set +default$", as_table, re.MULTILINE)
    for text in (shown, as_table):
        assert KEY not in text
        assert "s3cret" not in text


@pytest.mark.parametrize("url", MASKED)
def test_database_url_is_shown_without_its_password(url: str) -> None:
    assert mask_database_url(url) == MASKED[url]


@pytest.mark.parametrize("rest", AMBIGUOUS)
def test_database_url_whose_password_may_be_anywhere_is_not_shown(rest: str) -> None:
    shown = mask_database_url(f"postgresql://{rest}")

    assert re.search(r"s3|cret", shown) is None


def test_secret_of_a_command_is_read_from_a_file(folder: Path) -> None:
    runner = CliRunner(env={"WAYPOST_CONTROL_TOKEN_FILE": "empty"})
    arguments = ["simulator", "--port", "0"]

    assert "WAYPOST_CONTROL_TOKEN_FILE names 'empty', which is empty" in runner.invoke(commands, arguments).stderr
    (folder / "empty").write_text("short\n")
    assert "WAYPOST_CONTROL_TOKEN must have at least 32" in runner.invoke(commands, arguments).stderr


def test_every_variable_of_a_command_is_known() -> None:
    used = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r'(?:envvar=|environ(?:\.get\(|\[)|getenv\()"(WAYPOST_\w+)"', path.read_text("utf-8"))
    }
    of_options = {
        name
        for command in _leaf_commands(typer.main.get_command(commands))
        for parameter in command.params
        for name in ([parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or ())
    }

    assert used
    assert of_options
    settings = {f"WAYPOST_{name.upper()}" for name in SETTINGS}
    assert of_options | used <= OTHER_VARIABLES.keys() | settings
    assert not OTHER_VARIABLES.keys() & settings
    assert set(COMMAND_SECRETS) <= OTHER_VARIABLES.keys()
    assert not set(COMMAND_SECRETS) & {f"WAYPOST_{name.upper()}" for name in SECRETS}


def _leaf_commands(command: Any) -> list[Any]:
    inner: dict[str, Any] | None = getattr(command, "commands", None)
    return [command] if inner is None else [each for one in inner.values() for each in _leaf_commands(one)]
