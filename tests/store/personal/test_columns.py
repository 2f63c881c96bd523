"""The lists of columns with and without personal data are complete."""

from sqlalchemy import LargeBinary, Text

from waypost.store.retention.columns import COLUMNS_WITHOUT_PERSONAL_DATA, PERSONAL_COLUMNS, Period
from waypost.store.retention.erasure import ERASED_TABLES
from waypost.store.retention.export import EXPORT_KINDS
from waypost.store.retention.rules import RETENTION_RULES
from waypost.store.tables import metadata


def test_every_text_and_binary_column_is_in_exactly_one_list() -> None:
    listed = [column.name for column in PERSONAL_COLUMNS]
    listed += [f"{table}.{name}" for table, names in COLUMNS_WITHOUT_PERSONAL_DATA.items() for name in names.split()]

    stored = [
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, Text | LargeBinary)
    ]
    assert sorted(listed) == sorted(stored)


def test_exported_columns_name_kinds_of_records() -> None:
    assert {column.exported for column in PERSONAL_COLUMNS} - {""} == set(EXPORT_KINDS)


def test_every_table_with_personal_data_is_compacted_after_an_erasure() -> None:
    tables = {column.name.partition(".")[0] for column in PERSONAL_COLUMNS}

    assert tables <= {table.name for table in ERASED_TABLES}


def test_every_period_of_a_personal_column_has_a_retention_rule() -> None:
    ended_by_others = {Period.EXPIRY, Period.JOB, Period.APP}

    periods = {column.kept for column in PERSONAL_COLUMNS} - ended_by_others

    assert periods <= {rule.period for rule in RETENTION_RULES}
