"""What makes runs cheap: modules, compiled statements, paths and those that create tables are shared, and idle servers
poll less often.

Everything else of a run is its own. Called once, before the first one.
"""

import asyncio
import contextlib
import functools
import importlib
from typing import Any, Final

import starlette.routing
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

from waypost.assembly.http import servers
from waypost.assembly.http.limits import Connections
from waypost.store import revision

MAX_STATEMENTS: Final = 4_000
DEADLINES_EVERY_S: Final = 5
END_EVERY_S: Final = 0.1


def share_statements() -> None:
    """Let all engines use one cache of compiled statements; its keys contain the dialect, so those of a kind are equal."""
    cache: Any = LRUCache(MAX_STATEMENTS)
    Engine._compiled_cache = property(lambda _engine: cache, lambda _engine, _own: None)  # type: ignore[assignment]
    DefaultDialect.__hash__ = lambda dialect: len(dialect.name)  # type: ignore[method-assign]
    DefaultDialect.__eq__ = lambda dialect, other: type(dialect) is type(other)


def share_schema() -> None:
    """Let a store be created with the statements that created the first one on that engine."""
    recorded: dict[str, list[str]] = {}
    create = revision.create_schema

    def create_again(connection: Connection) -> None:
        name = connection.dialect.name
        if name in recorded:
            driver: Any = connection.connection.driver_connection
            execute = driver.execute if name == "sqlite" else connection.exec_driver_sql
            for statement in recorded[name]:
                execute(statement)
            return
        statements: list[str] = []

        def record(_connection: Any, _cursor: Any, statement: str, *_others: Any) -> None:
            if statement.lstrip().startswith(("CREATE", "ALTER")):
                statements.append(statement)

        event.listen(connection, "before_cursor_execute", record)
        create(connection)
        event.remove(connection, "before_cursor_execute", record)
        recorded[name] = statements

    revision.create_schema = create_again


def poll_less_often() -> None:
    """Let servers check deadlines every five seconds, and the end of their connections ten times a second.

    Most of a run is waiting for minutes, and a stop that waits five seconds would be most of the steps of a run. A
    server without a connection waits for the first one.
    """
    waits: dict[Any, asyncio.Timeout] = {}  # by the connections of a server that has none
    admit = Connections.admit

    def admit_and_wake(connections: Any, *args: Any) -> Any:
        if connections in waits:
            waits.pop(connections).reschedule(asyncio.get_running_loop().time() + DEADLINES_EVERY_S)
        return admit(connections, *args)

    async def main_loop(server: Any) -> None:
        connections = server._connections
        while not await server.on_tick(0):
            connections.check_deadlines(asyncio.get_running_loop().time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DEADLINES_EVERY_S if connections.open_count else None) as wait:
                    if not connections.open_count:
                        waits[connections] = wait
                    await server.stop_requested.wait()
        waits.pop(connections, None)

    async def end_connections(server: Any) -> None:
        state, notified = server.server_state, set[Any]()
        while state.connections or state.tasks:
            for connection in [each for each in state.connections if each not in notified]:
                connection.shutdown()
                notified.add(connection)
            await asyncio.sleep(END_EVERY_S)

    Connections.admit = admit_and_wake  # type: ignore[method-assign]
    servers._SignalFreeServer.main_loop = main_loop  # type: ignore[method-assign]
    servers._SignalFreeServer._end_connections = end_connections  # type: ignore[method-assign]


def import_all() -> None:
    """Import what the service imports when it first needs it: the memory of a run has it from the begin."""
    for name in ("phonenumbers", "phonenumbers.data.region_US", "puremagic"):
        importlib.import_module(name)


def prepare() -> None:
    """Do all of it."""
    import_all()
    share_statements()
    share_schema()
    starlette.routing.compile_path = functools.cache(starlette.routing.compile_path)
    poll_less_often()
