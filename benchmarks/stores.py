"""The store of a measurement: a SQLite folder, or a database on a PostgreSQL server of its own."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import cpu_s

ENGINES = ("sqlite", "postgresql")
# fmt: off
SETTINGS = {  # of the server: what its documentation recommends for a machine of this size; it flushes as it must
    "shared_buffers":      "512MB",
    "wal_buffers":         "16MB",
    "max_wal_size":        "4GB",
    "checkpoint_timeout":  "15min",
}
# fmt: on


@dataclass
class Store:
    """Where one service keeps what it has.

    Attributes:
        options: for `benchmarks.service`.
        pids: of the database's own processes, as far as it has any.
    """

    engine: str
    folder: Path
    url: str | None = None
    server_pid: int | None = None
    version: str = ""
    _seen: dict[int, float] = field(default_factory=dict[int, float])

    @property
    def options(self) -> tuple[str, ...]:
        given = ("--data", str(self.folder))
        return given if self.url is None else (*given, "--database-url", self.url)

    def server_cpu_s(self) -> float:
        """Processor time of the database's processes, those that have ended included."""
        if self.server_pid is None:
            return 0.0
        for pid in (self.server_pid, *_children(self.server_pid)):
            try:
                self._seen[pid] = cpu_s(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
        return sum(self._seen.values())


class Stores:
    """Makes stores of one engine, each empty."""

    def __init__(self, engine: str, at: Path, server: "object | None") -> None:
        self.engine = engine
        self._at = at
        self._server = server
        self._made = 0

    @property
    def version(self) -> str:
        """Of the engine."""
        if self._server is None:
            import sqlite3

            return f"SQLite {sqlite3.sqlite_version}"
        import psycopg

        with psycopg.connect(self._server.url()) as connection:
            [(version,)] = connection.execute("SHOW server_version").fetchall()
        return f"PostgreSQL {version}"

    def new(self) -> Store:
        """An empty store."""
        self._made += 1
        folder = self._at / f"{self.engine}-{self._made}"
        folder.mkdir()
        if self._server is None:
            return Store(self.engine, folder)
        url = self._server.create(f"bench_{self._made}")
        return Store(self.engine, folder, url, self._server.process.pid)


@contextmanager
def stores_of(engine: str, at: Path) -> Generator[Stores]:
    """Stores of one engine; its server, where it has one, is gone at the end."""
    if engine == "sqlite":
        yield Stores(engine, at, None)
        return
    from tests.support.postgres import Server

    server = Server(at / "server", settings=SETTINGS)
    for folder in (at, *at.parents):  # the server's user must be able to walk there
        if folder.stat().st_uid == at.stat().st_uid and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    server.make()
    server.start()
    try:
        yield Stores(engine, at, server)
    finally:
        server.stop()


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
