"""Direct calls about voice calls: actions on a call."""

from dataclasses import dataclass

from waypost.domain.direct_calls.call import CallResult, OperatorCall


@dataclass(frozen=True, slots=True)
class CallSession:
    """A session description, passed on unchanged. Source: RFC 8866."""

    sdp_type: str
    sdp: str


@dataclass(frozen=True, slots=True)
class ApplyCallAction(OperatorCall[CallResult]):
    """Accept, reject or end a call to a number.

    Attributes:
        call_id: the operator's.
        action: `pre_accept`, `accept`, `reject` or `terminate`.
        session: of the first two.
    """

    number_id: str
    call_id: str
    action: str
    session: CallSession | None = None
