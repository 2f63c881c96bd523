"""The table of callbacks has what the code can make, and the code makes what the table has."""

from waypost.domain.callbacks.subscription import ALL, MODES
from waypost.domain.message import MessageState
from waypost.operators.cloud.webhooks.changes import CHANGES
from waypost.wire.callbacks import account_v2, inbound_v2
from waypost.wire.callbacks.kinds import (
    ACCOUNT,
    INBOUND,
    KINDS,
    OTHER_CHANGE,
    PASSED_ON,
    STATUS,
    TEMPLATE,
    change_kind,
    inbound_kind,
)


def test_every_state_that_is_told_has_a_row_with_a_mode_of_its_name() -> None:
    silent = {MessageState.ACCEPTED, MessageState.UNCERTAIN}

    assert set(STATUS) == {state.value for state in set(MessageState) - silent}
    assert {name.upper() for name in STATUS} == {row.mode for row in STATUS.values()}


def test_every_mode_but_those_that_bring_nothing_has_a_row() -> None:
    modes = {row.mode for row in KINDS if row.mode}

    assert modes == set(MODES) - {ALL, "COPY", "NONE"}


def test_what_recipients_send_is_in_both_tables_under_one_name() -> None:
    shown = {kind: row.inner_type for kind, row in INBOUND.items() if row.type == "message"}

    assert shown == {kind: row.type for kind, row in inbound_v2.KINDS.items()}


def test_what_is_said_of_accounts_is_in_both_tables_under_one_name() -> None:
    shown = {field: (row.type, row.inner_type) for field, row in ACCOUNT.items() if row.type}

    assert shown == {field: (row.type, row.inner_type) for field, row in account_v2.KINDS.items()}


def test_every_change_that_the_operator_tells_has_a_row() -> None:
    assert set(CHANGES) <= set(TEMPLATE)
    assert all(change_kind(field).field == field for field in (*TEMPLATE, *ACCOUNT, *PASSED_ON))
    assert not (set(PASSED_ON) & (set(TEMPLATE) | set(ACCOUNT)))
    assert change_kind("brand_new") is OTHER_CHANGE


def test_what_no_row_names_is_for_those_who_hear_everything_else() -> None:
    assert inbound_kind("brand_new").mode == "OTHERS"
    assert inbound_kind("text").mode == "MESSAGE"
