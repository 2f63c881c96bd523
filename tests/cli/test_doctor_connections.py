"""The doctor's findings about the connections to PostgreSQL, and about a pooler in front of it."""

import os
import re
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from typer.testing import CliRunner

from tests.support.pgbouncer import PROGRAM, running_pgbouncer
from tests.support.pipeline import PipelineHarness
from tests.support.second_operator import send_admin_request
from tests.support.store_locations import PostgresLocation
from waypost.cli.command_tree import app as commands
from waypost.store.postgresql_connections import ConnectionBudget

TEXT: Final = re.compile(r"(\d+) of (\d+) connections to PostgreSQL are in use")


@pytest.fixture
def engine() -> str:
    """The only engine with connections to a server."""
    return "postgresql"


async def read_finding(pipeline: PipelineHarness) -> dict[str, Any]:
    """Return the finding about connections."""
    response = await send_admin_request(pipeline, "GET", "/admin/doctor")
    [finding] = [each for each in response.body["results"] if each["subject"] == "connections"]
    return finding


async def test_connections_in_use_are_reported_and_too_few_for_another_process_are_a_warning(
    pipeline: PipelineHarness, store_location: PostgresLocation
) -> None:
    database = sql.Identifier(urlsplit(store_location.url).path.lstrip("/"))

    def limit(connections: int) -> None:
        with psycopg.connect(store_location.url, autocommit=True) as server:
            server.execute(sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}").format(database, connections))

    unlimited = await read_finding(pipeline)
    try:
        limit(ConnectionBudget().total)
        limited = await read_finding(pipeline)
    finally:
        limit(-1)

    used, allowed = map(int, TEXT.match(unlimited["text"]).groups())  # pyright: ignore[reportOptionalMemberAccess]
    assert used > 0
    assert unlimited["state"] == ("ok" if used + ConnectionBudget().total <= allowed else "warning")
    assert limited["state"] == "warning"
    assert f"of {ConnectionBudget().total} connections" in limited["text"]
    assert "another process may not be able to start" in limited["text"]
    assert "database_connections" in limited["fix_hint"]


@pytest.mark.skipif(
    PROGRAM is None and "CI" not in os.environ, reason="pgbouncer is not installed (Debian package pgbouncer)"
)
def test_pooler_without_sessions_is_reported_without_a_running_service(store_location: PostgresLocation) -> None:
    with running_pgbouncer(store_location.url, "transaction") as url:
        env = {
            "WAYPOST_DATABASE_URL": url,
            "WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
            "WAYPOST_ADMIN_TOKEN": None,
            "WAYPOST_ADMIN_URL": None,
        }
        result = CliRunner(env=env).invoke(commands, ["doctor"])

    assert result.exit_code == 1
    assert "database_url leads to a pooler" in result.output
    assert "pool_mode = session" in result.output
