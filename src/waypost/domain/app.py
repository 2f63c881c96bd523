"""An app, its business account, and our account at the operator behind both."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


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
