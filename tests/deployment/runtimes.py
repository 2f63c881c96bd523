"""Containers of the image: with podman, or with `unshare` and `chroot` where no container runtime can run.

All of them use the network of the machine, a read-only root, a tmpfs at /tmp, no capabilities, and the user,
environment, entry point and folder of the image's configuration.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from crashes.processes import end_with_parent
from tests.deployment.building import IMAGE, RUNTIMES, Failed, ImageStore, path_of, run

# fmt: off
HARDENED: Final = (  # as the page and deploy/compose.yaml have it
    "--network=host", "--read-only", "--read-only-tmpfs=false", "--tmpfs=/tmp", "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
)
# fmt: on
OF_A_TEST: Final = (
    "--no-healthcheck",
    "--ulimit=nofile=1024:1024",
    "--ulimit=nproc=1024:1024",
    "--log-driver=k8s-file",
)
"""The test runs the health check itself, and may not raise limits to podman's defaults."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a container is started with.

    Attributes:
        name: of the container.
        arguments: instead of the command of the image, if there are any.
        variables: in addition to those of the image.
        volumes: folders of this machine, by their path in the container.
        files: files of this machine, readable only, by their path in the container.
    """

    name: str
    arguments: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    volumes: Mapping[str, Path] = field(default_factory=dict[str, Path])
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])


class Container(Protocol):
    """A container that was started."""

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in it, with its user and variables."""
        ...

    def stop(self, within_s: int) -> int:
        """Send the stop signal of the image, and after `within_s` SIGKILL; return its exit code."""
        ...

    @property
    def status(self) -> int | None:
        """Its exit code; None while it runs."""
        ...

    def logs(self) -> str:
        """Return what it wrote."""
        ...


class Runtime(Protocol):
    """Something that runs containers of the image."""

    name: str

    def start(self, order: Order) -> Container:
        """Start a container."""
        ...

    def close(self) -> None:
        """End and remove all containers."""
        ...


class Podman:
    """Runs containers with podman and an OCI runtime."""

    def __init__(self, store: ImageStore, runtime: str) -> None:
        self.name = f"podman with {runtime}"
        self._podman = ["podman", *store.options, "--cgroup-manager=cgroupfs", "--events-backend=file",
                        f"--runtime={runtime}"]  # fmt: skip

    def check(self) -> None:
        """Run a container once.

        Raises:
            Failed: this machine cannot run it.
        """
        run([*self._podman, "run", "--rm", *HARDENED, *OF_A_TEST, "--entrypoint=id", IMAGE, "-u"], timeout_s=120)

    def start(self, order: Order) -> Container:
        options = [f"--env={name}={text}" for name, text in order.variables.items()]
        options += [f"--volume={source}:{target}" for target, source in order.volumes.items()]
        options += [f"--volume={source}:{target}:ro" for target, source in order.files.items()]
        run([*self._podman, "run", "--detach", f"--name={order.name}", *HARDENED, *OF_A_TEST, *options, IMAGE,
             *order.arguments])  # fmt: skip
        return _PodmanContainer(self._podman, order.name)

    def close(self) -> None:
        run([*self._podman, "rm", "--all", "--force", "--volumes", "--time=1"])


@dataclass(frozen=True)
class _PodmanContainer:
    podman: Sequence[str]
    name: str

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return _finished([*self.podman, "exec", self.name, *command])

    def stop(self, within_s: int) -> int:
        run([*self.podman, "stop", f"--time={within_s}", self.name])
        return self._state()[1]

    @property
    def status(self) -> int | None:
        is_running, status = self._state()
        return None if is_running else status

    def logs(self) -> str:
        done = _finished([*self.podman, "logs", self.name])
        return done.stdout + done.stderr

    def _state(self) -> tuple[bool, int]:
        state = json.loads(run([*self.podman, "inspect", "--format={{json .State}}", self.name]))
        return bool(state["Running"]), int(state["ExitCode"])


_MOUNT: Final = """
set -e
root=$1
shift
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/run"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
while [ "$1" != -- ]; do
    if [ -f "$2" ]; then mkdir -p "$(dirname "$root$3")"; touch "$root$3"; fi
    mount --bind "$2" "$root$3"
    mount -o "remount,$1,bind" "$root$3"
    shift 3
done
shift
mount -o remount,ro "$root/run"
exec "$@"
"""
"""Arguments: the root; for each mount `ro` or `rw`, the source and the target; `--`; a command."""


class Chroot:
    """Runs containers in their own mount and process namespaces, without a container runtime."""

    name = "unshare and chroot, no container runtime"

    def __init__(self, store: ImageStore, folder: Path) -> None:
        self._root = store.mount()
        self._configuration = store.configuration()
        self._folder = folder
        self._containers: list[_ChrootContainer] = []

    def start(self, order: Order) -> Container:
        image = self._configuration
        inside = [
            "chroot", f"--userspec={image.user}", "--groups=", str(self._root), "/usr/bin/env", "-i",
            f"--chdir={image.folder}", *(f"{name}={text}" for name, text in {**image.environment, **order.variables}.items()),
        ]  # fmt: skip
        mounts = [part for target, source in order.volumes.items() for part in ("rw", str(source), target)]
        mounts += [part for target, source in order.files.items() for part in ("ro", str(source), target)]
        command = [*image.entrypoint, *(order.arguments or image.command)]
        log = self._folder / f"{order.name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen[bytes](
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _MOUNT, "sh", str(self._root),
                 *mounts, "--", *inside, *command],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=end_with_parent,
            )  # fmt: skip
        container = _ChrootContainer(process, inside, log, signal.Signals[image.stop_signal])
        self._containers.append(container)
        return container

    def close(self) -> None:
        for container in self._containers:
            with contextlib.suppress(Failed):
                container.stop(1)


@dataclass
class _ChrootContainer:
    process: subprocess.Popen[bytes]
    inside: Sequence[str]
    log: Path
    stop_signal: signal.Signals

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return _finished(["nsenter", f"--target={self._first()}", "--mount", "--pid", *self.inside, *command])

    def stop(self, within_s: int) -> int:
        if self.process.poll() is None:
            os.kill(self._first(), self.stop_signal)
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    @property
    def status(self) -> int | None:
        return self.process.poll()

    def logs(self) -> str:
        return self.log.read_text(errors="replace")

    def _first(self) -> int:
        """Return the pid of the first process of the container, which `unshare` has as its only child."""
        pid = self.process.pid
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                if children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                    return int(children[0])
            time.sleep(0.01)
        raise Failed(f"the container has ended\n{self.logs()}")


def select_runtime(store: ImageStore, folder: Path, wanted: str) -> tuple[Runtime, list[str]]:
    """Return the first runtime that can run the image, and a line for each one that cannot.

    Args:
        store: has the image.
        folder: for logs.
        wanted: `podman`, `chroot`, or `any` for the first that works.
    """
    reasons: list[str] = []
    if wanted != "chroot":
        for runtime in ("crun", "runc"):
            absent = [name for name in ("podman", runtime) if path_of(name) is None]
            if absent:
                packages = " ".join(RUNTIMES[name] for name in absent)
                reasons.append(f"podman with {runtime}: not installed (Debian packages: {packages})")
                continue
            podman = Podman(store, runtime)
            try:
                podman.check()
            except Failed as failure:
                reasons.append(f"{podman.name}: {str(failure).splitlines()[-1].strip()}")
            else:
                return podman, reasons
    if wanted == "podman":
        raise Failed("\n".join(["podman cannot run the image:", *reasons]))
    return Chroot(store, folder), reasons


def _finished(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False)
