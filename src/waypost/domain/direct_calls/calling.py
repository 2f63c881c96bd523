"""Direct calls about voice calls: actions on a call, and a number's settings for calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class SipServer:
    """A SIP server that gets a number's calls."""

    hostname: str
    port: int


@dataclass(frozen=True, slots=True)
class CallSettings:
    """A number's settings for calls; None leaves one as it is.

    Attributes:
        icon_visibility: of the button that starts a call.
        hours: the hours in which people can call, as the operator has them.
        sip_servers: the servers that get the calls by SIP; empty: calls come as events.
    """

    is_enabled: bool
    icon_visibility: str | None = None
    hours: dict[str, Any] | None = None
    sip_servers: Sequence[SipServer] | None = None


@dataclass(frozen=True, slots=True)
class SetCalling(OperatorCall[CallResult]):
    """Set a number's settings for calls."""

    number_id: str
    settings: CallSettings
