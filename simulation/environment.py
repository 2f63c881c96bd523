"""The environment of the simulation: Python 3.12 or newer with the service and simloom, made beside the project's own.

`python -m simulation.environment` prints its interpreter; if this machine has no such Python, one line, and exit code 3.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ENVIRONMENT: Final = ROOT / ".venv" / "simulation"
PACKAGES: Final = ("simloom==0.5.0", "greenlet")
VERSIONS: Final = ("3.14", "3.13", "3.12")
NO_PYTHON: Final = 3
_HAS_VENV: Final = "import ensurepip, sqlite3, ssl, sys; sys.exit(sys.version_info < (3, 12))"


def find_python() -> str | None:
    """Return a Python of one of the versions that can make an environment; None if there is none."""
    return next((python for python in _candidates() if _runs(python, "-c", _HAS_VENV)), None)


def _candidates() -> Iterator[str]:
    yield sys.executable
    folders = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*"), reverse=True)
    for version in VERSIONS:
        if found := shutil.which(f"python{version}"):
            yield found
        yield from (str(folder / "bin" / "python") for folder in folders if folder.name.startswith(f"{version}."))


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except OSError:
        return False


def make_environment(python: str) -> Path:
    """Return the interpreter of the environment, which is made again when a pin changes or the checkout moves."""
    pins = b"".join((ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt"))
    wanted = hashlib.sha256(
        pins + " ".join(PACKAGES).encode() + bytes(ROOT)
    ).hexdigest()  # the folder: it is not a copy
    stamp, interpreter = ENVIRONMENT / "stamp", ENVIRONMENT / "bin" / "python"
    if not stamp.is_file() or stamp.read_text() != wanted:
        subprocess.run([python, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        quiet = ("--quiet", "--quiet", "--disable-pip-version-check", "--no-input")
        pinned = ("-c", ROOT / "constraints.txt")
        subprocess.run([interpreter, "-m", "pip", *quiet, "install", *pinned, "-e", ROOT, *PACKAGES], check=True)
        stamp.write_text(wanted)
    return interpreter


if __name__ == "__main__":
    found = find_python()
    if found is None:
        print(
            f"The simulation needs Python {', '.join(reversed(VERSIONS))} with venv; none was found.", file=sys.stderr
        )
        sys.exit(NO_PYTHON)
    print(make_environment(found))
