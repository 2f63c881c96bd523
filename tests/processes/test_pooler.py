"""PgBouncer between service and database: transaction pooling is rejected at the start, session pooling works."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg
import pytest

from crashes.cluster import ClusterUnderTest
from crashes.layout import ClusterLayout
from crashes.load import Load
from crashes.verification import MAX_IN_FLIGHT, verify_load
from tests.support.pgbouncer import PROGRAM, running_pgbouncer
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine

MESSAGES: Final = 30
PHONES: Final = [f"1555900{number:04}" for number in range(10)]

pytestmark = pytest.mark.skipif(
    PROGRAM is None and "CI" not in os.environ, reason="pgbouncer is not installed (Debian package pgbouncer)"
)


@pytest.mark.parametrize(
    ("pool_mode", "round_robin"), [("transaction", False), ("transaction", True), ("statement", False)]
)
def test_pooler_without_sessions_is_rejected_in_one_line(
    database_url: str, tmp_path: Path, pool_mode: str, round_robin: bool
) -> None:
    with running_pgbouncer(database_url, pool_mode, round_robin=round_robin) as url:
        # A pool in use: there are several idle server connections to choose from.
        in_use = [psycopg.connect(url, autocommit=True) for _ in range(3)]
        if pool_mode == "transaction":
            with in_use[0].transaction(), in_use[1].transaction(), in_use[2].transaction():
                for connection in in_use:
                    connection.execute("SELECT 1")
        completed = subprocess.run(
            [sys.executable, "-m", "waypost", "serve", "--port", "0", "--data", str(tmp_path)],
            env={**os.environ, "WAYPOST_DATABASE_URL": url, "WAYPOST_SECRET_KEY": "0123456789abcdef" * 4},
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER_S,
            check=False,
        )
        for connection in in_use:
            connection.close()

    assert completed.returncode == 1, completed.stdout + completed.stderr
    [line] = completed.stderr.splitlines()
    assert "pooler" in line
    assert "set the pooler to session pooling (PgBouncer: pool_mode = session)" in line
    assert str(urlsplit(url).password) not in completed.stdout + completed.stderr
    with psycopg.connect(database_url) as server:
        assert server.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


async def test_workers_share_a_store_through_a_pooler_with_sessions(database_url: str, tmp_path: Path) -> None:
    with running_pgbouncer(database_url, "session") as url:
        layout = ClusterLayout(
            database_url=url, reader_url=database_url.replace("postgresql://", "postgresql+psycopg://"), workers=2
        )
        cluster = ClusterUnderTest(tmp_path, layout)
        try:
            await cluster.open()
            await asyncio.gather(*map(cluster.send_inbound_text, PHONES))
            load = Load(cluster, PHONES, PHONES, at_least=MESSAGES)
            await load.run()
            await cluster.wait_idle()
            verification = await verify_load(
                cluster, load, None, inbound_count=len(PHONES), max_uncertain=2 * MAX_IN_FLIGHT
            )
        finally:
            await cluster.close()
            for child in cluster.children:  # shown by pytest if the test failed
                sys.stdout.write(child.last_lines() + "\n")

    assert not verification.violations
    assert len(load.acknowledged) == MESSAGES


async def test_notifications_pass_a_pooler_with_sessions(database_url: str) -> None:
    received: list[tuple[str, str]] = []
    with running_pgbouncer(database_url, "session") as url:
        sender, receiver = Database(PostgresEngine(url)), Database(PostgresEngine(url))
        for database in (sender, receiver):
            await database.open()
        receiver.add_notification_listener(lambda subject, content: received.append((subject, content)))

        async def notify() -> bool:
            sender.notify("subject", "content")  # lost until the receiver listens
            return ("subject", "content") in received

        try:
            await poll_until(notify)
        finally:
            for database in (sender, receiver):
                await database.close()
