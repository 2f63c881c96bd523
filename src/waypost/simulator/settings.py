"""Settings of the simulator: given at the start, and changed by the control API while it runs."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from waypost.simulator.field_types import DelayMs
from waypost.simulator.keyed_store import LoadedKind
from waypost.simulator.store import Store


class StatusesVersion(StrEnum):
    """Which shape status webhooks have.

    Source: facts 7.3: `conversation` is in v23 and older, and gone from v24 on.
    """

    V23 = "v23"
    V24 = "v24"


# fmt: off
class ChangeableSettings(Struct, frozen=True, kw_only=True):
    """The settings that the control API may change while the simulator runs; what it sets is kept and wins."""

    review_delay_ms: Annotated[DelayMs | None, Meta(description="From a template's submission to its review; null: reviews wait for the control API.")] = 2000
    deliver_after_ms: Annotated[DelayMs, Meta(description="From `sent` to `delivered`, for phones that do not say otherwise.")] = 50
    read_after_ms: Annotated[DelayMs | None, Meta(description="From `delivered` to `read`; null: only when a phone is told to read.")] = None
    batch_at_most: Annotated[int, Meta(ge=1, le=1000, description="Updates in one webhook POST.")] = 250
    gather_ms: Annotated[int, Meta(ge=0, le=10_000, description="The shortest real time between two webhook POSTs to one account, so that updates gather under load; the first one after a pause goes at once.")] = 20
    limits: Annotated[bool, Meta(description="Whether pair rate, throughput and edit limits apply.")] = True
    statuses_version: Annotated[StatusesVersion, Meta(description="The shape of status webhooks.")] = StatusesVersion.V24
    check_references: Annotated[bool, Meta(description="Whether upload handles, media ids and flows that a template or a message refers to must be known here.")] = True
    check_languages: Annotated[bool, Meta(description="Whether a template's language must be on the operator's list.")] = True
    # Source: decisions 0035 and 0068
    strict: Annotated[bool, Meta(description="Whether the operator also does what gets in the way of development: 100 creations an hour, no two templates of the same wording, no names of its sample templates, no offers, carousels, catalogs or products in UTILITY.")] = False
    marketing_words: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...], Meta(max_length=100, description="What makes a template marketing that was submitted as UTILITY: with allow_category_change it is taken as MARKETING, without it is rejected in its review.")] = ()
    # Source: facts 2.3; 250 for a portfolio that is not verified
    templates_at_most: Annotated[int, Meta(ge=1, le=6000, description="Templates of one account, each language counted.")] = 6000
    calls_per_hour: Annotated[Annotated[int, Meta(ge=1, le=100_000)] | None, Meta(description="Management calls of one account; null: as the operator counts.")] = None
    window_at_once: Annotated[bool, Meta(description="Whether a closed window is refused at once instead of in a status.")] = False
    # Source: facts 8: a guess, not documented
    messaging_limit_code: Annotated[Literal[130429, 131048], Meta(description="What a send beyond the messaging limit is refused with.")] = 131048
    # Source: facts 13
    throttle_status: Annotated[Literal[400, 429], Meta(description="The HTTP status of too many messages: 429, or 400 as others have seen.")] = 429
    tells_retry_after: Annotated[bool, Meta(description="Whether a 429 carries `Retry-After`.")] = False
    # Source: facts 7.3, 7.5: since 2026
    statuses_contacts: Annotated[bool, Meta(description="Whether statuses come with `contacts`.")] = True
    # Source: facts 7.5: since April 2026
    user_ids: Annotated[bool, Meta(description="Whether every phone's owner has a business-scoped user id beside the number.")] = True
    skips_delivered: Annotated[bool, Meta(description="Whether a message that is read is never told as delivered.")] = False
# fmt: on


SettingsChange: Final = msgspec.defstruct(
    "SettingsChange",
    [(one.name, one.type | UnsetType, UNSET) for one in msgspec.structs.fields(ChangeableSettings)],
    frozen=True,
    forbid_unknown_fields=True,
)
"""New values for some of the changeable settings."""


class SimulatorSettings(ChangeableSettings, frozen=True):
    """Where the simulator keeps its file, and how it behaves until the control API says otherwise.

    Args:
        path: its own SQLite file; made when absent.
        control_token: the credential of the control API; None leaves it open on loopback.
        allowed_hosts: Host names the control API takes besides the loopback ones.
        least_free_mb: room on the disk that uploads and files of phones leave.
    """

    path: Path
    control_token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    least_free_mb: int = 256


@dataclass(frozen=True)
class AccountSeed:
    """A business account with its app, its credential and where its webhooks go.

    Args:
        waba_id: 16 digits.
        namespace: an underscored UUID; an empty text makes one.
        callback_uri: taken without a handshake; an empty text means nowhere.
    """

    waba_id: str
    name: str
    namespace: str
    token: str
    app_id: str
    app_secret: str
    verify_token: str
    callback_uri: str


@dataclass(frozen=True)
class NumberSeed:
    """A business phone number.

    Args:
        phone_number: digits only.
        throughput: messages a second it may send.
    """

    phone_number_id: str
    waba_id: str
    phone_number: str
    name: str
    throughput: int = 80


class LiveSettings:
    """Holds the settings that apply at this moment; what was changed is in the file."""

    def __init__(self, settings: SimulatorSettings, store: Store) -> None:
        self._store = store
        self._changed = LoadedKind[Any](store, "setting", object, stays=True)
        self.value = settings

    def open(self) -> None:
        """Apply what was changed before the last stop."""
        names = ChangeableSettings.__struct_fields__
        known = {name: value for name, value in self._changed.all.items() if name in names}
        read = msgspec.convert(known, SettingsChange)
        self.value = replace(self.value, **{name: getattr(read, name) for name in known})

    async def change(self, changes: dict[str, Any]) -> None:
        """Keep new values of changeable settings; they have been checked."""
        await self._store.run([self._changed.save_statement(value, name) for name, value in changes.items()])
        self.value = replace(self.value, **changes)

    def changeable(self) -> dict[str, Any]:
        """The changeable settings and their values."""
        return {name: getattr(self.value, name) for name in ChangeableSettings.__struct_fields__}
