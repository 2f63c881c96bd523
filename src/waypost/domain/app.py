"""An app with its business account and operator account, its additional keys, and its users."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final


class Hosting(StrEnum):
    """Which variant of the channel API carries an app. Source: spec, "Create template", rule 2."""

    CLOUD = "cloud"
    ON_PREMISES = "on_premises"


@dataclass(frozen=True, slots=True)
class AppPreferences:
    """What a partner has set for an app. Source: facts 2.

    Attributes:
        callback_url: shown in the details; callbacks go where subscriptions say.
        callback_modes: likewise.
        analytics: whether template analytics are on; there is no way back.
        unclicked_templates: ids of those whose taps analytics leave out.
        optin_message: kept; no opt-in message is sent.
        cap: of fees; 0: none was set.
        contact_email: of the business, with its name and number; empty: none was set.
        live_since_ms: when the administrator made it live; 0: it was from the beginning, or is not.
    """

    template_messaging: bool = True
    disable_optin_pref_url: bool = False
    callback_url: str = ""
    callback_modes: tuple[str, ...] = ()
    analytics: bool = False
    analytics_on_ui: bool = False
    unclicked_templates: tuple[str, ...] = ()
    live_since_ms: int = 0
    optin_message: bool = False
    cap: int = 0
    contact_email: str = ""
    contact_name: str = ""
    contact_number: str = ""


@dataclass(frozen=True, slots=True)
class App:
    """A partner's messaging application.

    Attributes:
        phone_number: the source number, digits; names exactly one app. Empty: it has none yet.
        phone_number_id: the operator's id of that number; may be empty.
        business_account_id: may be empty, as long as it has no number.
        live: false is a sandbox app.
        token_serial: raised to revoke the app token.
        per_second: the operator's throughput for the number; None means the service's default.
    """

    id: str
    partner_id: int
    name: str
    phone_number: str
    phone_number_id: str
    business_account_id: str
    created_on_ms: int
    modified_on_ms: int
    live: bool = True
    hosting: Hosting = Hosting.CLOUD
    token_serial: int = 1
    per_second: int | None = None
    preferences: AppPreferences = field(default_factory=AppPreferences)


@dataclass(frozen=True, slots=True)
class BusinessAccount:
    """What owns the namespace, the templates and the operator account."""

    id: str
    partner_id: int
    namespace: str
    operator_account_id: str


@dataclass(frozen=True, slots=True)
class OperatorAccount:
    """Our credentials and addresses at an operator. Its secrets are open here and sealed in the store.

    Attributes:
        id: also the last part of the webhook's path; never changes.
        kind: names the adapter that speaks with the operator; never changes.
        base_url: without a path, such as `http://127.0.0.1:8081`.
        fields: what else the adapter needs, by the names that it gives them.
    """

    id: str
    kind: str
    base_url: str
    fields: Mapping[str, str] = field(hash=False)

    def __getitem__(self, name: str) -> str:
        """One of the fields."""
        return self.fields[name]

    def with_fields(self, **changes: str) -> "OperatorAccount":
        """Return the account with some fields changed."""
        return replace(self, fields={**self.fields, **changes})


@dataclass(frozen=True, slots=True)
class Line:
    """An app with the operator account that carries it, both as they were at one moment."""

    app: App
    account: OperatorAccount


MOST_SECOND_KEYS: Final = 2  # Source: facts 1.4, beside the app token itself; decision 0024
MOST_MINTED: Final = 3  # active at once; source: facts 1.5
SHORTEST_LIFE_MS: Final = 60 * 60 * 1000
LONGEST_LIFE_MS: Final = 24 * 60 * 60 * 1000


class KeyStatus(StrEnum):
    """Whether a credential opens anything. Source: facts 1.5."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"


@dataclass(frozen=True, slots=True)
class AppKey:
    """One credential beside the app token.

    Attributes:
        expires_on_ms: of a minted token; None is a second key, which does not expire.
    """

    id: str
    partner_id: int
    app_id: str
    name: str
    created_on_ms: int
    expires_on_ms: int | None = None
    revoked_on_ms: int | None = None

    def status(self, now_ms: int) -> KeyStatus:
        """What it is worth now."""
        if self.revoked_on_ms is not None:
            return KeyStatus.REVOKED
        if self.expires_on_ms is not None and self.expires_on_ms <= now_ms:
            return KeyStatus.EXPIRED
        return KeyStatus.ACTIVE


WINDOW_MS: Final = 24 * 60 * 60 * 1000
"""How long session messages may be sent to a user who has written. Source: operator's facts 4.1."""


@dataclass(frozen=True, slots=True)
class AppUser:
    """What is known of one.

    Attributes:
        opted_in: None: nobody has said so either way.
        source: where the last change came from; empty without one.
        opted_on_ms: when it came; 0 without one.
        last_written_ms: when the user last wrote to the app's number; 0: never.
    """

    phone_number: str
    opted_in: bool | None = None
    source: str = ""
    opted_on_ms: int = 0
    blocked: bool = False
    last_written_ms: int = 0
