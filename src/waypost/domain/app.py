"""An app, its business account, and our account at the operator behind both."""

from dataclasses import dataclass
from enum import StrEnum


class Hosting(StrEnum):
    """Which variant of the channel API carries an app. Source: spec, "Create template", rule 2."""

    CLOUD = "cloud"
    ON_PREMISES = "on_premises"


@dataclass(frozen=True, slots=True)
class App:
    """A partner's messaging application.

    Attributes:
        phone_number: the source number, digits; names exactly one app.
        phone_number_id: the operator's id of that number.
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


@dataclass(frozen=True, slots=True)
class BusinessAccount:
    """What owns the namespace, the templates and the operator account."""

    id: str
    partner_id: int
    namespace: str
    operator_account_id: str


@dataclass(frozen=True, slots=True)
class OperatorAccount:
    """Our credentials and addresses at the operator. Its secrets are open here and sealed in the store.

    Attributes:
        id: also the last part of the webhook's path; never changes.
        base_url: without a path, such as `http://127.0.0.1:8081`.
        version: of the operator's interface, such as `v25.0`.
    """

    id: str
    base_url: str
    version: str
    token: str
    app_id: str
    app_secret: str
    verify_token: str
