"""`make resolutions`: installs the wheel with the lowest and with the newest dependencies, and tests what was installed.

For each Python: a new environment, the wheel and what it requires from the package index, and then the quick start of
the README and a part of the suite with the installed packages, not with the checkout. The suite's tools are those of
`constraints.txt`, and pytest-waypost; they change no dependency of the wheel. The PostgreSQL server is that of the
checkout, or the one in `WAYPOST_TEST_DATABASE_URL`: its wheel does not exist for the newest Python.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14", "3.15")
RESOLUTIONS: Final = ("lowest-direct", "highest")

TOOLS: Final = (
    "hypothesis", "jsonschema_rs", "pytest", "pytest-asyncio", "pytest-randomly",
    "pytest-timeout", "pytest-xdist",
)  # fmt: skip
PARTS: Final = (
    "tests/docs/test_readme.py", "tests/unit/api", "tests/unit/base", "tests/unit/http", "tests/unit/wire",
    "tests/operations/test_tracing.py", "tests/store/apps", "tests/store/engines", "tests/store/messages",
    "tests/wire/test_partner_tokens.py",
)  # fmt: skip
"""The quick start, and what uses the dependencies directly, on both engines."""

OTHER_SERVER: Final = "WAYPOST_TEST_DATABASE_URL"
LEFT_OUT: Final = "tests/store/engines/test_flushed_commits.py"
"""It starts a server of its own."""


def main() -> int:
    """Print a row for each Python and resolution. The status is 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make resolutions", description=__doc__)
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, help="versions or paths of interpreters")
    parser.add_argument("--resolutions", nargs="+", default=RESOLUTIONS, choices=RESOLUTIONS)
    parser.add_argument(
        "--wheel", type=Path, help="a wheel that is built already; that of pytest-waypost is next to it"
    )
    parser.add_argument("parts", nargs="*", default=PARTS, help="arguments for pytest")
    arguments = parser.parse_args()
    failed = 0
    with contextlib.ExitStack() as stack:
        if OTHER_SERVER not in os.environ:
            from tests.support.postgres import UNSAFE, running_server

            os.environ[OTHER_SERVER] = stack.enter_context(running_server(settings=UNSAFE)).url()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waypost-resolutions-")))
        uv = install_uv(folder)
        wheel = (arguments.wheel or build_wheels(uv, folder)).resolve()
        print("| Python | Resolution | Packages | Result | Seconds |\n|---|---|---|---|---|", flush=True)
        for python in arguments.pythons:
            for resolution in arguments.resolutions:
                begun = time.monotonic()
                row, has_passed = try_one(uv, folder / "environment", wheel, python, resolution, arguments.parts)
                print(f"| {row} | {time.monotonic() - begun:.0f} |", flush=True)
                failed += not has_passed
    return min(failed, 1)


def install_uv(folder: Path) -> Path:
    """Install uv, which resolves to the lowest versions too, and return its path."""
    run([sys.executable, "-m", "venv", folder / "tools"])
    run([folder / "tools" / "bin" / "python", "-m", "pip", "--quiet", "--quiet", "install", "uv"])
    return folder / "tools" / "bin" / "uv"


def build_wheels(uv: Path, folder: Path) -> Path:
    """Build the wheels of the checkout, and return the path of the service's."""
    for project in (ROOT, ROOT / "pytest-waypost"):
        run([uv, "build", "--quiet", "--wheel", "--out-dir", folder / "dist", project])
    return next((folder / "dist").glob("waypost-*.whl"))


def try_one(
    uv: Path, environment: Path, wheel: Path, python: str, resolution: str, parts: list[str]
) -> tuple[str, bool]:
    """Install and test once. Returns the cells of the row up to the result, and whether everything passed."""
    run([uv, "venv", "--quiet", "--clear", "--python", python, environment])
    interpreter = environment / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--python", interpreter, "--only-binary", ":all:"]
    version = run([interpreter, "-c", "import platform; print(platform.python_version())"]).strip()
    try:
        # The project's own requirements: of a wheel's, `lowest-direct` takes the newest, since only the wheel is direct.
        run([*install, "--resolution", resolution, "--requirements", ROOT / "pyproject.toml", "--extra", "otel"])
        run([*install, "--no-deps", f"waypost @ {wheel.as_uri()}"])
        installed = run([uv, "pip", "freeze", "--quiet", "--python", interpreter])
        pins = environment.with_name("pins.txt")
        names = {normalized(line.partition("==")[0]) for line in installed.splitlines()}
        pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        tools = [line for line in pinned if normalized(line.partition("==")[0]) in {normalized(tool) for tool in TOOLS}]
        pins.write_text("\n".join(line for line in installed.splitlines() if "==" in line), encoding="utf-8")
        plugin = next(wheel.parent.glob("pytest_waypost-*.whl"))
        run([*install, "--constraints", pins, *tools, f"pytest-waypost @ {plugin.as_uri()}"])
    except subprocess.CalledProcessError as problem:
        print(problem.stderr, file=sys.stderr)
        return f"{version} | {resolution} | | cannot be installed", False
    tests = subprocess.run(
        [interpreter, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider", "--ignore", LEFT_OUT,
         "-o", "pythonpath=.", "-o", "addopts=-p no:waypost --import-mode=importlib --strict-markers", *parts],
        cwd=ROOT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    result = re.sub(r"^=* ?| in [\d.]+s.*", "", (tests.stdout.strip().splitlines() or [tests.stderr])[-1])
    if tests.returncode:
        print(tests.stdout[-20_000:], file=sys.stderr)
        print("\n".join(installed.splitlines()), file=sys.stderr)
    return f"{version} | {resolution} | {len(names)} | {result}", tests.returncode == 0


def normalized(name: str) -> str:
    """Return a distribution's name as an index compares it."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def run(command: list[str | Path]) -> str:
    """Run a command, and return its output; raises `CalledProcessError` with what it wrote to stderr."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
