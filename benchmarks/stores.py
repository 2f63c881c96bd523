"""The store of a measurement: an SQLite folder, or a database on a separate PostgreSQL server."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.processes import cpu_s

if TYPE_CHECKING:
    from tests.support.postgres import Server

ENGINES = ("sqlite", "postgresql")
# fmt: off
SETTINGS = {  # as its documentation recommends for a machine of this size; flushes stay on
    "shared_buffers":      "512MB",
    "wal_buffers":         "16MB",
    "max_wal_size":        "4GB",
    "checkpoint_timeout":  "15min",
}
# fmt: on


@dataclass
class Store:
    """The store of one service.

    Attributes:
        url: the URL of a PostgreSQL database; None for SQLite.
        server_pid: the pid of the PostgreSQL server, if any.
    """

    engine: str
    folder: Path
    url: str | None = None
    server_pid: int | None = None
    version: str = ""
    _cpu_s_by_pid: dict[int, float] = field(default_factory=dict[int, float])

    @property
    def options(self) -> tuple[str, ...]:
        options = ("--data", str(self.folder))
        return options if self.url is None else (*options, "--database-url", self.url)

    def server_cpu_s(self) -> float:
        """Return the processor time of the database's processes, including ended ones."""
        if self.server_pid is None:
            return 0.0
        for pid in (self.server_pid, *_children(self.server_pid)):
            try:
                self._cpu_s_by_pid[pid] = cpu_s(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
        return sum(self._cpu_s_by_pid.values())


class Stores:
    """Creates empty stores of one engine."""

    def __init__(self, engine: str, at: Path, server: "Server | None") -> None:
        self.engine = engine
        self._at = at
        self._server = server
        self._count = 0

    @property
    def server(self) -> "Server | None":
        """The PostgreSQL server; None for SQLite."""
        return self._server

    @property
    def version(self) -> str:
        """The name and version of the engine."""
        if self._server is None:
            import sqlite3

            return f"SQLite {sqlite3.sqlite_version}"
        import psycopg

        with psycopg.connect(self._server.url()) as connection:
            [(version,)] = connection.execute("SHOW server_version").fetchall()
        return f"PostgreSQL {version}"

    def new(self) -> Store:
        """Create an empty store."""
        self._count += 1
        folder = self._at / f"{self.engine}-{self._count}"
        folder.mkdir()
        if self._server is None:
            return Store(self.engine, folder)
        url = self._server.create(f"bench_{self._count}")
        return Store(self.engine, folder, url, self._server_pid())

    def kill_server(self) -> None:
        """Kill the processes of the database server, if there is one."""
        if self._server is not None:
            self._server.kill()

    def start_server(self, store: Store) -> None:
        """Start a killed database server, and note its new process in a store of it."""
        if self._server is not None:
            self._server.start()
            store.server_pid = self._server_pid()

    def _server_pid(self) -> int | None:
        return self._server.process.pid if self._server and self._server.process else None


@contextmanager
def open_stores(engine: str, at: Path) -> Generator[Stores]:
    """Yield the stores of one engine; its server, if any, is stopped at the end."""
    if engine == "sqlite":
        yield Stores(engine, at, None)
        return
    from tests.support.postgres import Server

    server = Server(at / "server", settings=SETTINGS)
    let_others_traverse(at)
    server.make()
    server.start()
    try:
        yield Stores(engine, at, server)
    finally:
        server.stop()


def let_others_traverse(at: Path) -> None:
    """Let a program that runs as another user reach a folder of ours."""
    for folder in (at, *at.parents):
        if folder.stat().st_uid == at.stat().st_uid and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)


def _children(pid: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
