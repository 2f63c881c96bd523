"""The WhatsApp Business app of a number that is used by it and by the API (coexistence): what the app is at a time.

`business_app.connection` begins and ends the connection; what the app does and shows is in `business_app`.
"""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from waypost.base.clock import DAY_MS
from waypost.simulator.apis.field_types import accepts
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MIN_APP_VERSION: Final = (2, 24, 17)  # Source: the operator's page "Onboard WhatsApp Business app users"
DEFAULT_APP_VERSION: Final = "2.26.20"
MAX_COMPANIONS: Final = 4  # Source: the operator's page "Onboard WhatsApp Business app users", Linked devices
PRIMARY_INACTIVITY_MS: Final = 14 * DAY_MS  # Source: the operator's page "account_update", reasons of disconnections
COMPANION_INACTIVITY_MS: Final = 30 * DAY_MS
SYNC_WITHIN_MS: Final = DAY_MS  # Source: the operator's page "Onboard WhatsApp Business app users"

AppVersion = Annotated[str, accepts("three numbers with dots, as in 2.26.20", r"^[0-9]{1,4}(\.[0-9]{1,4}){2}$")]
CompanionKind = Literal["web", "mac", "android", "iphone", "ipad"]
"""The linked devices that the operator supports; those for Windows and WearOS it does not."""
DisconnectReason = Literal[
    "ACCOUNT_DISCONNECTED",
    "BUSINESS_DOWNGRADE",
    "CHANGE_NUMBER",
    "COMPANION_INACTIVITY",
    "PRIMARY_INACTIVITY",
    "USER_RE_REGISTERED",
]
Initiator = Literal["USER", "SYSTEM"]
SyncStepName = Literal["contacts", "phase 0", "phase 1", "phase 2", "files", "declined"]


class SyncOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ways in which the app sends contacts and history: what the operator's page allows, and what has been seen of it."""

    chunk_messages: Annotated[int, Meta(ge=1, le=5000)] = 500
    contacts_per_webhook: Annotated[int, Meta(ge=1, le=1000)] = 100
    order: Literal["in_order", "shuffled"] = "in_order"  # of the webhooks, and of the messages of a thread
    duplicates: Annotated[float, Meta(ge=0, le=1)] = 0  # the share of the messages that come twice
    lowercase_statuses: bool = False  # as in the samples of 2026
    marks_own: bool = False  # own messages have `from_me` in place of `to`, as in the same samples
    declines_without_envelope: bool = False  # the error comes as the documented sample has it: without an entry
    seed: str = "1"  # of the order and the duplicates


class Companion(Struct, frozen=True):
    """A device that is linked to the app."""

    companion_id: str
    kind: CompanionKind
    linked_ms: int
    offline_since_ms: int | None = None


class Disconnection(Struct, frozen=True):
    """The end of a connection; without a reason the business tapped Disconnect."""

    at_ms: int
    reason: DisconnectReason | None
    initiated_by: Initiator


class SyncStep(Struct, frozen=True):
    """A part of what the app has sent on a partner's request: the contacts, a phase of the history, or its files."""

    name: SyncStepName
    webhooks: int
    count: int  # contacts, messages or files; of a history that is declined none


class BusinessApp(Struct, frozen=True, kw_only=True):
    """The app of one number.

    A number that was created as shared has no time of onboarding; its day begins with the first sync.
    """

    app_version: str = DEFAULT_APP_VERSION
    onboarded_ms: int | None = None
    shares_history: bool = True
    offline_since_ms: int | None = None
    companions: tuple[Companion, ...] = ()
    disconnection: Disconnection | None = None
    waiting_syncs: tuple[str, ...] = ()  # requested while the app was offline
    sync: SyncOptions = SyncOptions()
    sync_steps: tuple[SyncStep, ...] = ()  # in the order in which they were sent

    @property
    def is_connected(self) -> bool:
        """True if the API may use the number, too."""
        return self.disconnection is None

    def inactivities(self) -> Iterator[tuple[int, DisconnectReason]]:
        """Return when the system will disconnect it, and why, for each device that is offline."""
        if self.offline_since_ms is not None:
            yield self.offline_since_ms + PRIMARY_INACTIVITY_MS, "PRIMARY_INACTIVITY"
        for companion in self.companions:
            if companion.offline_since_ms is not None:
                yield companion.offline_since_ms + COMPANION_INACTIVITY_MS, "COMPANION_INACTIVITY"


class BusinessContact(Struct, frozen=True):
    """A contact in the address book of the phone with the app."""

    phone: str
    full_name: str
    first_name: str
    changed_ms: int


BUSINESS_APPS: Final = StoredKind("business_app", BusinessApp)
"""By number; a number of `Number.is_on_business_app` may have none yet: see `find_business_app`."""
BUSINESS_CONTACTS: Final = StoredKind("business_contact", BusinessContact)
"""Of a number, by phone."""


def find_business_app(reader: SimulatorState | Transaction, number: Number) -> BusinessApp | None:
    """Return the app of a number, also after it was disconnected; None if the number never was on it."""
    known = reader.values(BUSINESS_APPS).get(number.phone_number_id)
    return known or (BusinessApp() if number.is_on_business_app else None)


def is_disconnected(reader: SimulatorState | Transaction, number: Number) -> bool:
    """True if the number's business has disconnected it from the API: nothing about it causes a webhook."""
    app = find_business_app(reader, number)
    return app is not None and not app.is_connected


def read_version(text: str) -> tuple[int, ...]:
    """Return the numbers of an app's version."""
    return tuple(int(part) for part in text.split("."))
