"""Tables: the states of messages and templates, and which news moves which."""

from typing import Final

from waypost.domain.message import MessageState as M
from waypost.domain.template import TemplateStatus as T

# fmt: off
MESSAGE_MOVES: Final = {  # Source: design 12.8; spec leaves it open; order from facts 5
    # from          the states it may go to
    M.ACCEPTED:  {M.UNCERTAIN, M.ENQUEUED, M.FAILED},
    M.UNCERTAIN: {M.ENQUEUED, M.FAILED},
    M.ENQUEUED:  {M.SENT, M.DELIVERED, M.READ, M.FAILED},
    M.SENT:      {M.DELIVERED, M.READ, M.FAILED},
    M.DELIVERED: {M.READ},
    M.READ:      set[M](),
    M.FAILED:    set[M](),
}
DOUBTED_FAILURE_MOVES: Final = {M.SENT, M.DELIVERED, M.READ}  # the one edge out of `failed`: design, promise 2

TEMPLATE_MOVES: Final = {  # Source: facts 3.4
    # from           the statuses it may go to
    T.PENDING:   {T.APPROVED, T.REJECTED, T.FAILED, T.PAUSED, T.DISABLED, T.DELETED},
    T.APPROVED:  {T.PAUSED, T.DISABLED, T.IN_APPEAL, T.REJECTED, T.PENDING, T.DELETED},
    T.PAUSED:    {T.APPROVED, T.DISABLED, T.PENDING, T.DELETED},
    T.REJECTED:  {T.APPROVED, T.IN_APPEAL, T.PENDING, T.DELETED},
    T.IN_APPEAL: {T.APPROVED, T.REJECTED, T.DELETED},
    T.DISABLED:  {T.APPROVED, T.DELETED},
    T.FAILED:    {T.PENDING, T.APPROVED, T.REJECTED, T.DELETED},
    T.DELETED:   set[T](),
}
OPERATOR_STATUSES: Final = {  # what the operator calls a template's status, and what we do. Source: operator 3.1
    "APPROVED":         T.APPROVED,
    "REINSTATED":       T.APPROVED,
    "UNPAUSE":          T.APPROVED,
    "REJECTED":         T.REJECTED,
    "PAUSED":           T.PAUSED,
    "DISABLED":         T.DISABLED,
    "IN_APPEAL":        T.IN_APPEAL,
    "PENDING":          T.PENDING,
    "DELETED":          T.DELETED,
    "PENDING_DELETION": T.DELETED,
}
# fmt: on


def message_steps(state: M, news: M, *, doubted: bool) -> tuple[M, ...]:
    """The states a message passes through on this news; empty when the news is behind the state.

    News from the operator about a message whose outcome nobody has recorded yet means that the
    operator has it: `enqueued` comes first, then the news itself.

    Args:
        state: where the message stands.
        news: what the operator or dispatch says now.
        doubted: whether a `failed` state was only our doubt (code 4002), not the operator's word.
    """
    if state is M.FAILED and doubted:
        return (news,) if news in DOUBTED_FAILURE_MOVES else ()
    if state in (M.ACCEPTED, M.UNCERTAIN) and news in MESSAGE_MOVES[M.ENQUEUED]:
        return (M.ENQUEUED, news)
    return (news,) if news in MESSAGE_MOVES[state] else ()


def template_step(status: T, news: T) -> bool:
    """Whether a template goes from one status to the other on this news."""
    return news in TEMPLATE_MOVES[status]
