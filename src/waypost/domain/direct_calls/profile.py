"""Direct calls about a received message."""

from dataclasses import dataclass

from waypost.domain.direct_calls.call import CallResult, OperatorCall


@dataclass(frozen=True, slots=True)
class MarkRead(OperatorCall[CallResult]):
    """Mark a received message as read, optionally with a typing indicator."""

    number_id: str
    message_id: str
    typing: bool = False
