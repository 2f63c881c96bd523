"""The table of callbacks has what the code can create, and the code creates what the table has."""

from waypost.domain.callbacks import MODE_ALL, MODES
from waypost.domain.message import MessageState
from waypost.operators.cloud.webhook import CHANGES
from waypost.wire.callbacks import callback_v2 as account_v2
from waypost.wire.callbacks import callback_v2 as inbound_v2
from waypost.wire.callbacks.kinds import (
    ACCOUNT_KINDS,
    CALLBACK_KINDS,
    INBOUND_KINDS,
    OTHER_CHANGE,
    PASSTHROUGH_KINDS,
    STATUS_KINDS,
    TEMPLATE_KINDS,
    change_kind,
    inbound_kind,
)


def test_every_state_that_is_notified_has_a_row_with_a_mode_of_its_name() -> None:
    not_notified = {MessageState.ACCEPTED, MessageState.UNCERTAIN}

    assert set(STATUS_KINDS) == {state.value for state in set(MessageState) - not_notified}
    assert {name.upper() for name in STATUS_KINDS} == {row.mode for row in STATUS_KINDS.values()}


def test_every_mode_that_selects_callbacks_has_a_row() -> None:
    modes = {row.mode for row in CALLBACK_KINDS if row.mode}

    assert modes == set(MODES) - {MODE_ALL, "COPY", "NONE"}


def test_inbound_kinds_are_in_both_tables_under_one_name() -> None:
    shown = {kind for kind, row in INBOUND_KINDS.items() if row.type in ("message", "order")}

    assert shown == set(inbound_v2.V2_INBOUND_PAYLOADS)


def test_account_kinds_are_in_both_tables_under_one_name() -> None:
    shown = {field for field, row in ACCOUNT_KINDS.items() if row.type}

    assert shown == set(account_v2.V2_ACCOUNT_PAYLOADS)


def test_every_change_that_the_operator_reports_has_a_row() -> None:
    assert set(CHANGES) <= set(TEMPLATE_KINDS)
    assert all(change_kind(field).field == field for field in (*TEMPLATE_KINDS, *ACCOUNT_KINDS, *PASSTHROUGH_KINDS))
    assert not (set(PASSTHROUGH_KINDS) & (set(TEMPLATE_KINDS) | set(ACCOUNT_KINDS)))
    assert change_kind("brand_new") is OTHER_CHANGE


def test_inbound_kind_without_a_row_has_the_mode_of_all_others() -> None:
    assert inbound_kind("brand_new").mode == "OTHERS"
    assert inbound_kind("text").mode == "MESSAGE"
