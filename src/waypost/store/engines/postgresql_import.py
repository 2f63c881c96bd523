"""Import of another store into an empty PostgreSQL database, which is marked until the import is complete."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Table, create_engine, delete, select, text
from sqlalchemy.engine import Engine as Pool
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from waypost.store.contract import StoreUnavailable, WrongStore
from waypost.store.engines.postgresql_bulk import postgres_type
from waypost.store.engines.postgresql_session import connect, driver_connection, require_session
from waypost.store.properties import set_properties, set_revision
from waypost.store.retention.partitions import Partition, create_partitions
from waypost.store.revision import MOVING_PROPERTY, read_schema_status
from waypost.store.schema import create_schema
from waypost.store.tables import REVISION, metadata, store_properties

READ_BATCH_ROWS: Final = 2_000


class PostgresImport:
    """The target database of `waypost move`, by its URL. Only one process fills it at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: Pool = create_engine(
            "postgresql+psycopg://", creator=self._connect, poolclass=NullPool, hide_parameters=True
        )

    @contextmanager
    def open(self) -> Generator[None]:
        """Connect, and lock out other imports.

        Raises:
            StoreUnavailable: no server responds.
            WrongStore: another import is running.
        """
        try:
            self._connection: Connection = self._pool.connect()
        except DBAPIError as error:
            raise StoreUnavailable(f"cannot connect to PostgreSQL: {str(error.orig).splitlines()[0]}") from error
        try:
            with self._connection.begin():
                is_locked = self._connection.execute(_TRY_LOCK).scalar_one()
            if not is_locked:
                raise WrongStore("another `waypost move` is writing to this database")
            try:
                yield
            finally:
                # Before the connection is closed, which the server may notice only after the next import has tried;
                # it is unlocked already if the connection broke.
                with suppress(SQLAlchemyError), self._connection.begin():
                    self._connection.execute(_UNLOCK)
        except (DBAPIError, psycopg.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise StoreUnavailable(f"writing to the database failed: {str(cause).splitlines()[0]}") from error
        finally:
            self._connection.close()
            self._pool.dispose()

    def prepare(self, partitions: Sequence[Partition], *, resume_only: bool = False) -> bool:
        """Create the schema and the mark; return True if the rows of an interrupted import were removed first.

        Args:
            partitions: those that the rows need.
            resume_only: an import must have been interrupted in this database, and nowhere else.

        Raises:
            WrongStore: the database has tables that are not of an interrupted import; or none, where it must
                have some.
        """
        with self._connection.begin():
            status = read_schema_status(self._connection)
            if status is not None and not status.is_moving:
                raise WrongStore("this database holds a store already; choose an empty database")
            if status is None and self._connection.execute(_HAS_TABLES).scalar_one():
                raise WrongStore("this database holds tables already; choose an empty database")
            if status is None and resume_only:
                raise WrongStore(
                    "this store has been moved to PostgreSQL already, to another database; "
                    "if both ran, everything would be sent twice"
                )
            if status is not None:
                for table in reversed(metadata.sorted_tables):
                    self._connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{table.name}" CASCADE')
            create_schema(self._connection)
            create_partitions(self._connection, partitions)
            set_revision(self._connection, REVISION, REVISION)
            set_properties(self._connection, {MOVING_PROPERTY: ""})
        return status is not None

    def add(self, table: Table, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows by COPY, in one commit."""
        names = [column.name for column in table.columns]
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
            sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, names))
        )
        with (
            self._connection.begin(),
            driver_connection(self._connection).cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            copy.set_types([postgres_type(column) for column in table.columns])
            for row in rows:
                copy.write_row(row)

    def add_properties(self, properties: dict[str, str]) -> None:
        """Store properties of the other store."""
        with self._connection.begin():
            set_properties(self._connection, properties)

    def read_rows(self, table: Table) -> Iterator[Sequence[Any]]:
        """Return every row of a table, unordered."""
        statement = select(table)
        if table is store_properties:
            statement = statement.where(store_properties.c.name != MOVING_PROPERTY)
        with self._connection.begin():
            rows = self._connection.execute(statement, execution_options={"yield_per": READ_BATCH_ROWS})
            yield from rows

    def set_sequence(self, table: Table, column: str, last: int) -> None:
        """Set a column's sequence to continue after the last number that was ever used."""
        with self._connection.begin():
            self._connection.execute(
                _SET_SEQUENCE, {"table": table.name, "column": column, "last": max(last, 1), "used": last > 0}
            )

    def finish(self) -> None:
        """Remove the mark: from now on it is an ordinary store."""
        with self._connection.begin():
            self._connection.exec_driver_sql("ANALYZE")
            self._connection.execute(delete(store_properties).where(store_properties.c.name == MOVING_PROPERTY))

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._url)
        try:
            require_session(connection, self._url)
            connection.execute("SET timezone = 'UTC'; SET lock_timeout = '5s'")
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection


_TRY_LOCK: Final = text("SELECT pg_try_advisory_lock(hashtext('waypost move'))")
_UNLOCK: Final = text("SELECT pg_advisory_unlock(hashtext('waypost move'))")
_HAS_TABLES: Final = text(
    "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') "
    "AND relnamespace = current_schema()::regnamespace)"
)
_SET_SEQUENCE: Final = text("SELECT setval(pg_get_serial_sequence(:table, :column), :last, :used)")
