"""Settings of the simulator: set at the start, and changed by the control API while it runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from waypost.simulator.apis.field_types import DelayMs
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.store import Store
from waypost.simulator.storage.tables.updates import WEBHOOK_FIELDS

StatusesVersion = Literal["v23", "v24"]
"""Format of status webhooks. Source: facts 7.3: v23 and older have `conversation`, v24 and newer do not."""


class ChangeableSettings(Struct, frozen=True, kw_only=True):
    """The settings that the control API may change at run time; its values are stored and take precedence."""

    review_delay_ms: Annotated[
        DelayMs | None,
        Meta(description="Time from a template's submission to its review; null: reviews wait for the control API."),
    ] = 2000
    deliver_after_ms: Annotated[
        DelayMs, Meta(description="Time from `sent` to `delivered`, for phones without a value of their own.")
    ] = 50
    read_after_ms: Annotated[
        DelayMs | None, Meta(description="Time from `delivered` to `read`; null: only by a call that reads.")
    ] = None
    batch_at_most: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of updates in one webhook POST.")] = (
        250
    )
    gather_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description=(
                "Minimum real time between two webhook POSTs to one account, which batches updates under "
                "load; the first one after a pause is sent at once."
            ),
        ),
    ] = 20
    limits: Annotated[
        bool, Meta(description="Apply pair rate, throughput and edit limits, and the 1,000 sends of a comparison.")
    ] = True
    statuses_version: Annotated[StatusesVersion, Meta(description="Format of status webhooks.")] = "v24"
    check_references: Annotated[
        bool,
        Meta(description="Reject templates and messages that refer to unknown upload handles, media ids or flows."),
    ] = True
    check_languages: Annotated[
        bool, Meta(description="Reject template languages that are not on the operator's list.")
    ] = True
    # Source: decisions 0035 and 0068
    strict: Annotated[
        bool,
        Meta(
            description=(
                "Enforce the operator's rules that get in the way of development: 100 creations an hour, no "
                "two templates with the same body and footer, no names of its sample templates, no offers, carousels, "
                "catalogs or products in UTILITY."
            )
        ),
    ] = False
    marketing_words: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...],
        Meta(
            max_length=100,
            description=(
                "Words that make a template submitted as UTILITY a marketing one: with allow_category_change "
                "it becomes MARKETING, without it the review rejects it."
            ),
        ),
    ] = ()
    # Source: facts 2.3; 250 for a portfolio that is not verified
    templates_at_most: Annotated[
        int, Meta(ge=1, le=6000, description="Maximum number of templates of one account; each language counts.")
    ] = 6000
    calls_per_hour: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Management calls of one account per hour; null: the operator's limit."),
    ] = None
    window_at_once: Annotated[
        bool, Meta(description="Report a closed window in the response instead of in a status.")
    ] = False
    # Source: facts 8: a guess, not documented
    messaging_limit_code: Annotated[
        Literal[130429, 131048], Meta(description="Error code of a send beyond the messaging limit.")
    ] = 131048
    # Source: facts 13
    throttle_status: Annotated[
        Literal[400, 429],
        Meta(description="HTTP status of a throttled send: 429, or 400 as some clients have reported."),
    ] = 429
    send_retry_after: Annotated[bool, Meta(description="Send `Retry-After` with a 429.")] = False
    # Source: facts 7.3, 7.5: since 2026
    statuses_contacts: Annotated[bool, Meta(description="Send `contacts` with statuses.")] = True
    # Source: facts 7.5: since April 2026
    user_ids: Annotated[
        bool, Meta(description="Give every phone's owner a business-scoped user id in addition to the number.")
    ] = True
    contact_book: Annotated[
        bool,
        Meta(
            description="A business knows a hidden number for ever after contact by the number, not for 30 days only."
        ),
    ] = False
    skips_delivered: Annotated[bool, Meta(description="Send no `delivered` status for a message that is read.")] = False
    # Source: the operator's page "Implementing endpoint for Flows"
    endpoint_timeout_ms: Annotated[
        int, Meta(ge=50, le=60_000, description="Real time within which an endpoint of a Flow must respond.")
    ] = 10_000
    # Source: decision 0130
    endpoint_ping_ms: Annotated[
        Annotated[int, Meta(ge=1000, le=7 * 24 * 3600 * 1000)] | None,
        Meta(description="Time between two health checks of a published Flow's endpoint, by the clock; null: none."),
    ] = 120_000
    flow_token_signature: Annotated[
        bool, Meta(description="Sign flow tokens for endpoints, from Flow JSON 7.3 and Data API 4.0 on.")
    ] = True


SettingsChange: Final = msgspec.defstruct(
    "SettingsChange",
    [(field.name, field.type | UnsetType, UNSET) for field in msgspec.structs.fields(ChangeableSettings)],
    frozen=True,
    forbid_unknown_fields=True,
)
"""New values for some of the changeable settings."""


class SimulatorSettings(ChangeableSettings, frozen=True):
    """The simulator's file and access to its control API, and the initial values of the changeable settings."""

    path: Path  # its own SQLite file; created when absent
    control_token: str | None = None  # the credential of the control API; None leaves it open on loopback
    allowed_hosts: tuple[str, ...] = ()  # Host names that the control API accepts besides the loopback ones
    least_free_mb: int = 256  # disk space that uploads and files of phones leave free
    # the networks from which it fetches the media that messages link to; empty: it fetches none
    media_networks: tuple[str, ...] = ()


@dataclass(frozen=True)
class AccountSeed:
    """A business account with its app, credential and callback URI."""

    waba_id: str  # 16 digits
    name: str
    namespace: str  # an underscored UUID; an empty text creates one
    token: str
    app_id: str
    app_secret: str
    verify_token: str
    callback_uri: str  # stored without a handshake; an empty text: no webhooks
    webhook_fields: tuple[str, ...] = WEBHOOK_FIELDS  # of a new app's subscription; a known app keeps its own


@dataclass(frozen=True)
class NumberSeed:
    """A business phone number."""

    phone_number_id: str
    waba_id: str
    phone_number: str  # digits only
    name: str
    throughput: int = 80  # maximum messages a second
    is_on_business_app: bool = False  # whether it is in use in the app on a phone, too


_CHANGED: Final = StoredKind[Any]("setting", object, survives_reset=True)


class SimulatorSettingsStore:
    """The current settings; changed values are in the file."""

    def __init__(self, settings: SimulatorSettings, store: Store) -> None:
        self._store = store
        self._changed = _CHANGED.cached_in(store)
        self.value = settings

    def open(self) -> None:
        """Apply the changes of earlier runs."""
        names = ChangeableSettings.__struct_fields__
        known = {name: value for name, value in self._changed.all.items() if name in names}
        read = msgspec.convert(known, SettingsChange)
        self.value = replace(self.value, **{name: getattr(read, name) for name in known})

    async def change(self, changes: dict[str, Any]) -> None:
        """Store new values of changeable settings; the caller has checked them."""
        await self._store.run([_CHANGED.save_statement(value, name) for name, value in changes.items()])
        self.value = replace(self.value, **changes)

    def changeable(self) -> ChangeableSettings:
        """Return the values of the changeable settings."""
        return ChangeableSettings(**{name: getattr(self.value, name) for name in ChangeableSettings.__struct_fields__})
