"""The tables of states: no transition goes backwards, and every state is in them."""

import itertools
from typing import Final

import pytest

from waypost.domain.lifecycle import (
    EDITABLE,
    MESSAGE_TRANSITIONS,
    NOT_DELETABLE,
    OPERATOR_STATUSES,
    QUALITIES,
    SENDABLE,
    TEMPLATE_TRANSITIONS,
    UNCONFIRMED_FAILURE_TRANSITIONS,
    is_template_transition,
    message_transitions,
)
from waypost.domain.message import MessageState as M
from waypost.domain.templates.template import TemplateStatus as T

ORDER = [M.ACCEPTED, M.UNCERTAIN, M.ENQUEUED, M.SENT, M.DELIVERED, M.READ, M.DELETED]
REPORTED = [M.SENT, M.DELIVERED, M.READ, M.DELETED, M.FAILED]


def test_every_state_has_its_row() -> None:
    assert set(MESSAGE_TRANSITIONS) == set(M)
    assert set(TEMPLATE_TRANSITIONS) == set(T)


@pytest.mark.parametrize("state", MESSAGE_TRANSITIONS)
def test_no_message_moves_backwards(state: M) -> None:
    for target in MESSAGE_TRANSITIONS[state] - {M.FAILED}:
        assert ORDER.index(target) > ORDER.index(state)


def test_delivered_message_does_not_fail() -> None:
    may_fail = {state for state, moves in MESSAGE_TRANSITIONS.items() if M.FAILED in moves}

    assert may_fail == {M.ACCEPTED, M.UNCERTAIN, M.ENQUEUED, M.SENT}


@pytest.mark.parametrize("unconfirmed", [True, False])
@pytest.mark.parametrize(("state", "reported"), list(itertools.product(M, REPORTED)))
def test_transitions_go_forward_and_end_with_the_reported_state(state: M, reported: M, unconfirmed: bool) -> None:
    steps = message_transitions(state, reported, unconfirmed=unconfirmed)

    if steps:
        assert steps[-1] is reported
        forward = [ORDER.index(step) for step in (state, *steps) if step is not M.FAILED]
        assert forward == sorted(set(forward))


@pytest.mark.parametrize("state", [M.ACCEPTED, M.UNCERTAIN])
@pytest.mark.parametrize("reported", REPORTED)
def test_first_report_of_a_message_implies_that_it_was_enqueued(state: M, reported: M) -> None:
    assert message_transitions(state, reported, unconfirmed=False) == (M.ENQUEUED, reported)


def test_state_implied_by_a_later_one_is_not_invented() -> None:
    assert message_transitions(M.ENQUEUED, M.READ, unconfirmed=False) == (M.READ,)


def test_report_behind_the_state_changes_nothing() -> None:
    assert message_transitions(M.READ, M.DELIVERED, unconfirmed=False) == ()
    assert message_transitions(M.SENT, M.SENT, unconfirmed=False) == ()
    assert message_transitions(M.DELIVERED, M.FAILED, unconfirmed=False) == ()


@pytest.mark.parametrize("reported", REPORTED)
def test_deleted_message_stays_deleted(reported: M) -> None:
    assert message_transitions(M.DELETED, reported, unconfirmed=False) == ()


def test_message_may_be_deleted_once_the_operator_has_it() -> None:
    may_be = {state for state, moves in MESSAGE_TRANSITIONS.items() if M.DELETED in moves}

    assert may_be == {M.ENQUEUED, M.SENT, M.DELIVERED, M.READ}


def test_only_an_unconfirmed_failure_changes() -> None:
    for reported in REPORTED:
        assert message_transitions(M.FAILED, reported, unconfirmed=False) == ()
        expected = (reported,) if reported in UNCONFIRMED_FAILURE_TRANSITIONS else ()
        assert message_transitions(M.FAILED, reported, unconfirmed=True) == expected


def test_deleted_template_stays_deleted() -> None:
    assert not any(is_template_transition(T.DELETED, status) for status in T)


@pytest.mark.parametrize("status", [status for status in T if status is not T.DELETED])
def test_every_other_template_may_be_deleted(status: T) -> None:
    assert is_template_transition(status, T.DELETED)


@pytest.mark.parametrize("status", T)
def test_no_status_of_a_template_leads_to_itself(status: T) -> None:
    assert not is_template_transition(status, status)


# fmt: off
STATUSES: Final = (  # Source: operator's facts 3.1, REST `status` and webhook `event`
    ("APPROVED", T.APPROVED), ("REINSTATED", T.APPROVED), ("UNARCHIVED", T.APPROVED), ("REJECTED", T.REJECTED),
    ("PENDING", T.PENDING), ("IN_APPEAL", T.IN_APPEAL), ("PAUSED", T.PAUSED), ("DISABLED", T.DISABLED),
    ("FLAGGED", T.FLAGGED), ("LOCKED", T.LOCKED), ("ARCHIVED", T.ARCHIVED), ("LIMIT_EXCEEDED", T.FAILED),
    ("DELETED", T.DELETED), ("PENDING_DELETION", T.DELETED),
)
# fmt: on


@pytest.mark.parametrize(("name", "status"), STATUSES)
def test_each_status_of_the_operators_has_one_of_ours(name: str, status: T) -> None:
    assert OPERATOR_STATUSES[name] is status


def test_statuses_of_the_operators_are_in_capitals() -> None:
    assert all(name == name.upper() for name in OPERATOR_STATUSES)


@pytest.mark.parametrize("status", OPERATOR_STATUSES.values())
def test_every_status_of_the_operators_is_reached_from_a_template_under_review_or_approved(status: T) -> None:
    assert status in TEMPLATE_TRANSITIONS[T.PENDING] | TEMPLATE_TRANSITIONS[T.APPROVED]


@pytest.mark.parametrize("status", sorted(EDITABLE))
def test_editable_template_may_go_back_to_its_review(status: T) -> None:
    assert is_template_transition(status, T.PENDING)


def test_templates_under_review_disabled_archived_or_locked_are_not_edited() -> None:
    """Source: operator's facts 2.6."""
    locked = {T.PENDING, T.DISABLED, T.IN_APPEAL, T.ARCHIVED, T.LOCKED, T.DELETED}

    assert locked.isdisjoint(EDITABLE)
    assert T.DISABLED in NOT_DELETABLE


def test_sendable_templates_are_approved_or_flagged() -> None:
    """Source: facts 3.4, "Can send?"."""
    assert {T.APPROVED, T.FLAGGED} == SENDABLE


def test_each_quality_of_the_operators_has_one_of_ours() -> None:
    """Source: facts 3.4; operator's facts 3.1."""
    assert QUALITIES == {"GREEN": "HIGH", "YELLOW": "MEDIUM", "RED": "LOW", "UNKNOWN": "UNKNOWN"}
