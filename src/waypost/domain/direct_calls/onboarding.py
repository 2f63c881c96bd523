"""Direct calls that register a number, and that request the data of a number which a person also uses in an app."""

from dataclasses import dataclass
from enum import StrEnum

from waypost.domain.direct_calls.call import CallResult, OperatorCall, RawObject


class SyncType(StrEnum):
    """The data of the WhatsApp Business app that the operator sends once. Source: ledger 1.3."""

    CONTACTS = "smb_app_state_sync"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class RegisterNumber(OperatorCall[CallResult]):
    """Register a number for sending.

    Attributes:
        pin: 6 digits; the number's own after its first registration.
        region: the country where the operator stores messages; empty: not set.
    """

    number_id: str
    pin: str
    region: str = ""


@dataclass(frozen=True, slots=True)
class DeregisterNumber(OperatorCall[CallResult]):
    """Deregister a number: it can send nothing until it is registered again."""

    number_id: str


@dataclass(frozen=True, slots=True)
class RequestSync(OperatorCall[RawObject]):
    """Request the contacts or the messages of a number that is also used in the WhatsApp Business app."""

    number_id: str
    sync_type: SyncType
