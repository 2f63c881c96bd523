"""Rows that are read from the store are typed: each field is a column with the column's type."""

import dataclasses
import subprocess
import sys
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import pytest
from sqlalchemy import LargeBinary, NullPool, Table, create_engine

from waypost.domain.app import App, AppKey, AppUser, BusinessAccount, OperatorAccount
from waypost.domain.callbacks import Subscription
from waypost.domain.media import InboundMedia, UploadedMedia
from waypost.domain.templates.template import Template
from waypost.store import tables
from waypost.store.callbacks.callbacks import CallbackRow
from waypost.store.callbacks.deliveries import DeliveryJob
from waypost.store.callbacks.receivers import ReceiverRow
from waypost.store.callbacks.subscriptions import ActiveSubscription
from waypost.store.messages.messages import MessageRow
from waypost.store.queue.depths import DeadLetter
from waypost.store.queue.inbound_webhooks import WebhookItemRow
from waypost.store.queue.jobs import JobRow
from waypost.store.sql import RowReader

ROWS: Final[tuple[tuple[type[NamedTuple], Table], ...]] = (
    (MessageRow, tables.messages),
    (CallbackRow, tables.callbacks),
    (WebhookItemRow, tables.webhook_items),
    (JobRow, tables.queue_jobs),
    (DeadLetter, tables.queue_jobs),
    (DeliveryJob, tables.queue_jobs),
    (ReceiverRow, tables.subscriptions),
    (ActiveSubscription, tables.subscriptions),
)
VALUES: Final[tuple[tuple[type[Any], Table, set[str]], ...]] = (
    #                                           made of other columns
    (App, tables.apps, {"phone_number", "preferences", "rates"}),
    (BusinessAccount, tables.business_accounts, set()),
    (OperatorAccount, tables.operator_accounts, {"fields"}),
    (Template, tables.templates, {"draft", "edit"}),
    (Subscription, tables.subscriptions, {"id", "modes", "meta", "headers"}),
    (AppKey, tables.app_keys, set()),
    (AppUser, tables.app_users, {"opted_on_ms", "last_written_ms"}),
    (UploadedMedia, tables.media, set()),
    (InboundMedia, tables.inbound_media, set()),
)


@pytest.mark.parametrize(("kind", "table", "derived"), [*((row, table, set[str]()) for row, table in ROWS), *VALUES])
def test_field_is_a_column_of_its_type(kind: type[Any], table: Table, derived: set[str]) -> None:
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(kind._fields)

    for name in names:
        if name in derived:
            continue
        column, kinds = table.c[name], _kinds(hints[name])
        assert column.nullable == (NoneType in kinds), name
        stored = bytes if isinstance(column.type, LargeBinary) else column.type.python_type
        assert all(member is NoneType or issubclass(member, stored) for member in kinds), name


def test_value_of_another_type_than_its_field_is_not_read() -> None:
    with create_engine("sqlite://", poolclass=NullPool).connect() as connection:
        row = connection.exec_driver_sql("SELECT 7 AS id, 'main' AS namespace").one()

    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$.id`"):
        RowReader(BusinessAccount)(row, partner_id=1, operator_account_id="main")


def _kinds(hint: Any) -> tuple[type[Any], ...]:
    return get_args(hint) if get_origin(hint) is UnionType else (hint,)


READ_ON_THREADS: Final = """
import sys, threading
from dataclasses import make_dataclass
from enum import StrEnum
from types import SimpleNamespace
from waypost.store.sql import RowReader

sys.setswitchinterval(1e-6)
for _ in range(200):
    State = StrEnum("State", ["A", "B"])
    Inner = make_dataclass("Inner", [("state", State)])
    Kind = make_dataclass("Kind", [*((f"f{n}", State) for n in range(10)), ("inner", tuple[Inner, ...])])
    row = SimpleNamespace(**{f"f{n}": "a" for n in range(10)}, inner=())
    read = RowReader(Kind)
    together = threading.Barrier(8)
    def work():
        together.wait()
        read(row)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_threads_may_read_the_first_rows_of_a_kind_at_the_same_time() -> None:
    ran = subprocess.run([sys.executable, "-c", READ_ON_THREADS], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
