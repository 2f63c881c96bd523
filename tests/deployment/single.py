"""Checks of one container: `waypost serve` with SQLite, and `waypost dev`."""

import json
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crashes.processes import free_port
from tests.deployment.building import Configuration, Failed
from tests.deployment.runtimes import Container, Order, Runtime

HANGS_AFTER_S: Final = 180
STOP_WITHIN_S: Final = 30
SECRETS: Final = "/run/secrets"

_LOOK: Final = """
import json, os
written = []
for folder, folders, _ in os.walk("/"):
    if folder == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
    name = os.path.join(folder, "written-by-a-test")
    try:
        open(name, "x").close()
    except OSError:
        continue
    os.remove(name)
    written.append(folder)
status = dict(line.split(":\\t", 1) for line in open("/proc/1/status").read().splitlines())
print(json.dumps({"uids": status["Uid"].split(), "capabilities": int(status["CapEff"], 16), "written": written}))
"""
"""Tries to make a file in every folder, and reads what the first process may do."""


@dataclass
class Report:
    """Prints what was done, each with its seconds."""

    def timed(self, name: str, began_s: float, result: str = "") -> None:
        """Print a line; `began_s` is by the monotonic clock."""
        print(f"  {name:<44} {time.monotonic() - began_s:6.1f} s  {result}".rstrip(), flush=True)

    def line(self, text: str) -> None:
        """Print a line without seconds."""
        print(f"  {text}", flush=True)


def check(is_so: object, text: str, container: Container | None = None) -> None:
    """Raise `Failed` with the text, and with what a container wrote, unless `is_so` is true."""
    if not is_so:
        raise Failed(text if container is None else f"{text}\n{container.logs()}")


def wait_healthy(container: Container, health: Sequence[str]) -> str:
    """Run the health check until its exit code is 0; return what it printed."""
    wait_until(lambda: container.execute(health).returncode == 0, "the health check does not succeed", container)
    return container.execute(health).stdout.strip()


def wait_until(condition: Callable[[], bool], text: str, container: Container | None = None) -> None:
    """Return when the condition is true; it is an error if a container ends meanwhile."""
    until_s = time.monotonic() + HANGS_AFTER_S
    while not condition():
        ended = container is not None and container.status is not None
        check(not ended and time.monotonic() < until_s, text, container)
        time.sleep(0.1)


def own_folder(folder: Path, configuration: Configuration) -> Path:
    """Make a folder that belongs to the user of the image."""
    folder.mkdir()
    user, group = map(int, configuration.user.split(":"))
    shutil.chown(folder, user, group)
    folder.chmod(0o700)
    return folder


def write_secret(path: Path, text: str | None = None) -> Path:
    """Write a secret as the page says: random, and readable for the user of the image."""
    path.parent.mkdir(mode=0o711, exist_ok=True)
    path.write_text(text or secrets.token_hex(32))
    path.chmod(0o444)
    return path


def check_single(runtime: Runtime, configuration: Configuration, folder: Path, report: Report) -> None:
    """Run `serve` and `dev` in turn, and check all that the page promises of a container."""
    check(configuration.user.split(":")[0] not in ("", "0", "root"), "the user of the image is root")
    secret = write_secret(folder / "secrets" / "secret_key")
    for command, arguments in (("serve", ()), ("dev", ("dev", "--simulator-port", str(free_port())))):
        volume = own_folder(folder / command, configuration)
        variables = {"WAYPOST_PORT": str(free_port())}
        if command == "serve":
            variables["WAYPOST_SECRET_KEY_FILE"] = f"{SECRETS}/secret_key"
        order = Order(
            command, arguments, variables, {configuration.volumes[0]: volume}, {f"{SECRETS}/secret_key": secret}
        )
        began_s = time.monotonic()
        container = runtime.start(order)
        printed = wait_healthy(container, configuration.health)
        report.timed(f"waypost {command}: ready", began_s, f"`{' '.join(configuration.health)}` prints `{printed}`")
        check_confined(container, configuration, report)
        began_s = time.monotonic()
        status = container.stop(STOP_WITHIN_S)
        report.timed(f"waypost {command}: stopped", began_s, f"{configuration.stop_signal}, exit code {status}")
        check(status == 0, f"exit code {status} of `waypost {command}` after {configuration.stop_signal}", container)
        written = sorted(path.name for path in volume.iterdir())
        check("waypost.db" in written, f"no store on the volume: {written}", container)


def check_confined(container: Container, configuration: Configuration, report: Report) -> None:
    """Check the user, the capabilities, and where files can be written."""
    done = container.execute(["python3", "-c", _LOOK])
    check(done.returncode == 0, done.stderr, container)
    seen = json.loads(done.stdout)
    user = configuration.user.split(":")[0]
    check(seen["uids"] == [user] * 4, f"the user is {seen['uids']}, not {user}")
    check(seen["capabilities"] == 0, f"capabilities: {seen['capabilities']:x}")
    allowed = (*configuration.volumes, "/tmp")
    outside = [name for name in seen["written"] if not name.startswith(allowed)]
    check(not outside, f"folders that can be written outside {allowed}: {outside}")
    check(set(allowed) <= set(seen["written"]), f"of {allowed} only {seen['written']} can be written")
    report.line(f"user {user}, no capabilities; files can be written in {' and '.join(allowed)} only")
