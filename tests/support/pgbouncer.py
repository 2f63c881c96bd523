"""PgBouncer in front of a PostgreSQL server, as a process of one test."""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg

from crashes.postgres import unprivileged_prefix
from crashes.processes import TIMEOUT_S, Child, NotInTime, free_port

PROGRAM: Final = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")

_FILE: Final = """
[databases]
* = host={server.hostname} port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = {pool_mode}
default_pool_size = 40
server_round_robin = {round_robin:d}
"""


@contextlib.contextmanager
def running_pgbouncer(url: str, pool_mode: str, *, round_robin: bool = False) -> Generator[str]:
    """Run it; yield the URL of the database through it.

    Args:
        url: of the database.
        pool_mode: `session`, `transaction` or `statement`.
        round_robin: whether it uses the server connection that has been idle longest, not shortest.
    """
    server, port = urlsplit(url), free_port()
    with tempfile.TemporaryDirectory(prefix="waypost-bouncer-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "users").write_text(f'"{server.username}" "{server.password}"\n')
        (folder / "ini").write_text(
            _FILE.format(server=server, port=port, folder=folder, pool_mode=pool_mode, round_robin=round_robin)
        )
        pgbouncer = Child(
            "PgBouncer", [*unprivileged_prefix(), str(PROGRAM), str(folder / "ini")], {}, folder / "output.log"
        )
        pgbouncer.start()
        try:
            through = server._replace(netloc=f"{server.username}:{server.password}@127.0.0.1:{port}").geturl()
            _wait_until_it_serves(pgbouncer, through)
            yield through
        finally:
            pgbouncer.close()


def _wait_until_it_serves(pgbouncer: Child, url: str) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while pgbouncer.status is None and time.monotonic() < deadline_s:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2).close()
            return
        time.sleep(0.05)
    raise NotInTime(pgbouncer.last_lines())
