"""The plugin's distribution: it needs pytest and the standard library, and nothing of the service."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from venv import EnvBuilder

import pytest

import pytest_waypost
import waypost
from tests.docs.repository import ROOT
from tests.support.inner_pytest import run_pytest

PROJECT: Final = ROOT / "pytest-waypost"
SOURCE: Final = PROJECT / "src" / "pytest_waypost"
MAX_MODULES: Final = 17
MAX_LOADED: Final = 15  # without the wrappers for coroutines
NEEDED_BY_PYTEST: Final = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
SYSTEM_PATH: Final = "/usr/bin:/bin"

LIGHT: Final = f"""
import sys
import pytest

def test_tap(waypost):
    ann = waypost.phone("Ann")
    template = waypost.create_template("visit", "Shall we come today?", buttons=["Yes", "No"])
    waypost.send_template(template, ann)
    ann.tap("Yes")
    assert waypost.wait_for_callback("quick_reply").text == "Yes"

def test_modules(waypost):
    with pytest.raises(ImportError):
        import waypost as service
    loaded = [name for name in sys.modules if name.partition(".")[0] == "pytest_waypost"]
    assert len(loaded) <= {MAX_LOADED}, loaded
"""


def project() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def imported_packages() -> Iterator[str]:
    """Yield the first part of each imported module."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield (node.module or "").partition(".")[0]


def test_plugin_needs_only_pytest_and_the_standard_library() -> None:
    assert set(imported_packages()) - sys.stdlib_module_names == {"pytest", "pytest_waypost"}
    assert project()["dependencies"] == ["pytest>=8.2"]


def test_plugin_has_few_modules_for_pytest_to_rewrite() -> None:
    assert len(list(SOURCE.rglob("*.py"))) <= MAX_MODULES


def test_plugin_has_the_version_and_the_licence_of_the_service() -> None:
    assert pytest_waypost.__version__ == waypost.__version__
    assert (PROJECT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """Make an environment with pytest and the plugin, and return its interpreter."""
    folder = tmp_path / "bare"
    EnvBuilder(symlinks=True).create(folder)
    [packages] = folder.glob("lib/python*/site-packages")
    for name in NEEDED_BY_PYTEST:
        own_files = distribution(name).files or ()
        for top in {file.parts[0] for file in own_files} - {"..", "__pycache__"}:
            (packages / top).symlink_to(str(distribution(name).locate_file(top)))
    (packages / "pytest_waypost").symlink_to(SOURCE)
    return str(folder / "bin" / "python")


def test_tests_run_beside_a_service_of_another_environment(tmp_path: Path, bare_python: str) -> None:
    """The command behaves like an image: an environment and a working directory of its own."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "image.sh").write_text(
        f'cd elsewhere; exec env -i "PATH={SYSTEM_PATH}" "{sys.executable}" -m waypost "$@"\n'
    )
    (tmp_path / "test_light.py").write_text(LIGHT)
    (tmp_path / "pytest.ini").write_text("[pytest]\nwaypost_command = sh image.sh\n")

    run = run_pytest(
        tmp_path, tmp_path / "report.xml", "-W", "error", plugin="pytest_waypost.plugin", python=bare_python
    )

    assert run.outcomes == {"test_tap": "passed", "test_modules": "passed"}, run.output


def test_without_waypost_the_run_ends_with_the_ways_to_start_it(tmp_path: Path, bare_python: str) -> None:
    (tmp_path / "test_light.py").write_text(LIGHT)

    run = run_pytest(
        tmp_path,
        tmp_path / "report.xml",
        plugin="pytest_waypost.plugin",
        python=bare_python,
        variables={"PATH": SYSTEM_PATH},
    )

    assert run.code == pytest.ExitCode.USAGE_ERROR, run.output
    assert "there is no command `waypost` beside this Python or on the PATH" in run.output
    assert "/path/to/venv/bin/waypost), to `uvx --from WHEEL waypost`, or to an image (podman run" in run.output
