"""The image of the Containerfile, made with Debian's mmdebstrap and buildah, and its configuration.

No registry of images is used: the base is a root of Debian 13 with Python.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.postgres import binaries

ROOT: Final = Path(__file__).resolve().parents[2]
RELEASE: Final = "trixie"
IN_BASE: Final = ("ca-certificates", "passwd", "python3", "python3-venv")

NEEDED: Final = {  # a program, and its Debian package
    "mmdebstrap": "mmdebstrap",
    "buildah": "buildah",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "nginx": "nginx-light",
}
RUNTIMES: Final = {"podman": "podman", "crun": "crun", "runc": "runc"}
"""They may be missing: the image then runs without a container runtime."""
BASE: Final = "localhost/waypost-base"
IMAGE: Final = "localhost/waypost"
OF_THIS_MACHINE: Final = (Path("/etc/pip.conf"), Path("/etc/ssl/certs/ca-certificates.crt"))
"""Mounted while the image is built, if they exist: a package index of the organisation then works."""


class Failed(Exception):
    """A check or a program failed; the text is all that is printed."""


def missing_programs() -> list[str]:
    """Return a line for each program that is needed and not there."""
    lines = [f"{name}: Debian package {package}" for name, package in NEEDED.items() if path_of(name) is None]
    try:
        binaries()
    except RuntimeError as problem:
        lines.append(f"postgres: {problem}")
    return lines


def path_of(program: str) -> str | None:
    """Return the path of a program, those of the system included."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def run(command: Sequence[str | Path], *, timeout_s: float = 1800) -> str:
    """Run a command and return its output.

    Raises:
        Failed: it ended with another status than 0; with the last lines that it wrote.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode:
        tail = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}:\n    {tail}")
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Configuration:
    """What an image says about its containers.

    Attributes:
        health: the command of its health check.
        size: of all layers, in bytes.
    """

    user: str
    environment: Mapping[str, str]
    entrypoint: Sequence[str]
    command: Sequence[str]
    folder: str
    volumes: Sequence[str]
    stop_signal: str
    health: Sequence[str]
    size: int


class ImageStore:
    """Images in a folder of their own, which buildah and podman share."""

    def __init__(self, folder: Path) -> None:
        driver = os.environ.get("STORAGE_DRIVER", "overlay")
        self.options = ["--root", str(folder / "store"), "--runroot", str(folder / "run"), "--storage-driver", driver]
        self._folder = folder

    def buildah(self, *arguments: str | Path) -> str:
        """Run a command of buildah."""
        return run(["buildah", *self.options, *arguments])

    def make_base(self, archive: Path | None, made: Path | None) -> None:
        """Make the base image.

        Args:
            archive: of a root that exists; without one, mmdebstrap makes it.
            made: where the archive that was made is kept.
        """
        if archive is None:
            archive = (made or self._folder / "base.tar").absolute()
            run(["mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(IN_BASE)}", RELEASE, archive])
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, archive, "/")
        self.buildah("commit", "--quiet", "--rm", container, BASE)

    def build(self) -> None:
        """Build the image of the Containerfile in this checkout."""
        mounts = [f"--volume={path}:{path}:ro" for path in OF_THIS_MACHINE if path.exists()]
        self.buildah("build", "--isolation=chroot", "--network=host", "--format=docker", f"--build-arg=BASE={BASE}",
                     *mounts, "--tag", IMAGE, "--file", ROOT / "Containerfile", ROOT)  # fmt: skip

    def configuration(self, image: str = IMAGE) -> Configuration:
        """Return the configuration that an image has in the store."""
        image_of: dict[str, Any] = json.loads(self.buildah("inspect", "--type=image", image))["Docker"]
        config: dict[str, Any] = image_of["config"]
        shown: list[dict[str, Any]] = json.loads(self.buildah("images", "--json", image))
        kind, *health = (config.get("Healthcheck") or {"Test": ["NONE"]})["Test"]
        return Configuration(
            user=config["User"],
            environment=dict(entry.split("=", 1) for entry in config["Env"] or ()),
            entrypoint=config["Entrypoint"] or [],
            command=config["Cmd"] or [],
            folder=config["WorkingDir"],
            volumes=list(config["Volumes"] or ()),
            stop_signal=config.get("StopSignal") or "SIGTERM",
            health=health if kind == "CMD" else [],
            size=size_in_bytes(str(shown[0]["size"])),
        )

    def mount(self) -> Path:
        """Mount the root of the image, and return where; only in the mount namespace of this process."""
        return Path(self.buildah("mount", self.buildah("from", IMAGE)))

    def close(self) -> None:
        """Unmount and remove all containers."""
        self.buildah("umount", "--all")
        self.buildah("rm", "--all")


def size_in_bytes(shown: str) -> int:
    """Return the bytes of a size as buildah shows it: `349 MB`."""
    number, unit = shown.split()
    return round(float(number) * 1000 ** ["B", "KB", "MB", "GB"].index(unit.upper()))
