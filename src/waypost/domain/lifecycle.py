"""Tables of the states of messages and templates, and of the transitions between them."""

from typing import Final

from waypost.domain.message import MessageState as M
from waypost.domain.templates.template import TemplateStatus as T

MESSAGE_TRANSITIONS: Final = {  # Source: decision 0085; facts 5
    # from          to
    M.ACCEPTED: {M.UNCERTAIN, M.ENQUEUED, M.FAILED},
    M.UNCERTAIN: {M.ENQUEUED, M.FAILED},
    M.ENQUEUED: {M.SENT, M.DELIVERED, M.READ, M.DELETED, M.FAILED},
    M.SENT: {M.DELIVERED, M.READ, M.DELETED, M.FAILED},
    M.DELIVERED: {M.READ, M.DELETED},
    M.READ: {M.DELETED},
    M.DELETED: set[M](),
    M.FAILED: set[M](),
}
UNCONFIRMED_FAILURE_TRANSITIONS: Final = {M.SENT, M.DELIVERED, M.READ, M.DELETED}
"""The only transitions out of `failed`. Source: decision 0085."""

TEMPLATE_TRANSITIONS: Final = {  # Source: facts 3.4; operator's facts 3.2
    # from                 to
    T.SANDBOX_REQUESTED: {T.PENDING, T.APPROVED, T.REJECTED, T.FAILED, T.DELETED},
    T.PENDING: {T.APPROVED, T.REJECTED, T.FAILED, T.PAUSED, T.DISABLED, T.IN_APPEAL, T.LOCKED, T.ARCHIVED, T.DELETED},
    T.APPROVED: set(T) - {T.APPROVED, T.SANDBOX_REQUESTED},
    T.FLAGGED: {T.APPROVED, T.PAUSED, T.DISABLED, T.IN_APPEAL, T.REJECTED, T.LOCKED, T.ARCHIVED, T.PENDING, T.DELETED},
    T.PAUSED: {T.APPROVED, T.DISABLED, T.IN_APPEAL, T.REJECTED, T.FLAGGED, T.LOCKED, T.ARCHIVED, T.PENDING, T.DELETED},
    T.LOCKED: {T.APPROVED, T.PAUSED, T.DISABLED, T.REJECTED, T.FLAGGED, T.ARCHIVED, T.PENDING, T.DELETED},
    T.ARCHIVED: {T.APPROVED, T.DISABLED, T.REJECTED, T.DELETED},
    T.REJECTED: {T.APPROVED, T.IN_APPEAL, T.DISABLED, T.ARCHIVED, T.PENDING, T.DELETED},
    T.IN_APPEAL: {T.APPROVED, T.REJECTED, T.DISABLED, T.PENDING, T.DELETED},
    T.DISABLED: {T.APPROVED, T.IN_APPEAL, T.REJECTED, T.DELETED},
    T.FAILED: {T.PENDING, T.APPROVED, T.REJECTED, T.DELETED},
    T.DELETED: set[T](),
}
SENDABLE: Final = {T.APPROVED, T.FLAGGED}  # Source: facts 3.4, "Can send?"; REINSTATED is APPROVED here
EDITABLE: Final = {T.APPROVED, T.FLAGGED, T.REJECTED, T.PAUSED, T.FAILED}
"""To the operator a flagged one is approved, and a failed one does not exist. Source: operator's facts 2.6."""
CATEGORY_FIXED: Final = {T.APPROVED, T.FLAGGED}  # their category cannot be edited. Source: operator's facts 2.6
NOT_DELETABLE: Final = {T.DISABLED}  # the operator does not delete these. Source: operator's facts 2.6

OPERATOR_STATUSES: Final = {  # the operator's name of a status, and ours. Source: operator's facts 3.1
    "APPROVED": T.APPROVED,
    "REINSTATED": T.APPROVED,
    "UNPAUSE": T.APPROVED,
    "UNARCHIVED": T.APPROVED,
    "REJECTED": T.REJECTED,
    "PAUSED": T.PAUSED,
    "DISABLED": T.DISABLED,
    "IN_APPEAL": T.IN_APPEAL,
    "PENDING": T.PENDING,
    "FLAGGED": T.FLAGGED,
    "LOCKED": T.LOCKED,
    "ARCHIVED": T.ARCHIVED,
    "LIMIT_EXCEEDED": T.FAILED,
    "DELETED": T.DELETED,
    "PENDING_DELETION": T.DELETED,
}
QUALITIES: Final = {  # the operator's value, and the partner API's. Source: facts 3.4
    "GREEN": "HIGH",
    "YELLOW": "MEDIUM",
    "RED": "LOW",
    "UNKNOWN": "UNKNOWN",
}


def message_transitions(state: M, new_state: M, *, unconfirmed: bool) -> tuple[M, ...]:
    """Return the states that a message passes through to a new state; empty when that one is out of date.

    A status from the operator for a message whose outcome is not recorded yet means that the operator
    has accepted it: `enqueued` comes first, then the new state.

    Args:
        new_state: the state reported by the operator or by dispatch.
        unconfirmed: true if the state `failed` is our own conclusion (code 4002), not the operator's.
    """
    if state is M.FAILED and unconfirmed:
        return (new_state,) if new_state in UNCONFIRMED_FAILURE_TRANSITIONS else ()
    if state in (M.ACCEPTED, M.UNCERTAIN) and new_state in MESSAGE_TRANSITIONS[M.ENQUEUED]:
        return (M.ENQUEUED, new_state)
    return (new_state,) if new_state in MESSAGE_TRANSITIONS[state] else ()


def is_template_transition(status: T, new_status: T) -> bool:
    """True if a template may change from one status to another."""
    return new_status in TEMPLATE_TRANSITIONS[status]
