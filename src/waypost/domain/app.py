"""An app with its business account and operator account, its additional keys, and its users."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS


class Hosting(StrEnum):
    """The variant of the channel API that an app uses. Source: spec, "Create template", rule 2."""

    CLOUD = "cloud"
    ON_PREMISES = "on_premises"


class OnboardingStep(StrEnum):
    """The steps at the operator before a new app becomes live, in order. Source: decision 0125."""

    CHECK_NUMBER = "check the number"
    SUBSCRIBE = "subscribe to the business account"
    REGISTER = "register the number"


SHARED_PER_SECOND: Final = 20  # of a number that is used in the app, too. Source: operator's facts 8
MAX_ONBOARDING_ATTEMPTS: Final = 3  # Source: ledger 1.11: then the stages stay at ERROR


@dataclass(frozen=True, slots=True)
class AppOnboardingProgress:
    """The progress of the onboarding of an app that is not live yet."""

    step: OnboardingStep  # the current one
    due_ms: int  # it is not run before then
    failures: int = 0  # of this step
    problem: str = ""  # of the last failure, in the operator's words

    @property
    def has_failed(self) -> bool:
        """True if the step is not tried any more."""
        return self.failures >= MAX_ONBOARDING_ATTEMPTS

    def advance(self, due_ms: int) -> "AppOnboardingProgress | None":
        """Return the progress at the beginning of the next step, which is due then; None after the last."""
        steps = list(OnboardingStep)[list(OnboardingStep).index(self.step) + 1 :]
        return AppOnboardingProgress(steps[0], due_ms) if steps else None

    def record_failure(self, problem: str, due_ms: int) -> "AppOnboardingProgress":
        """Return the progress after a failed attempt, where the next one is due then."""
        return replace(self, due_ms=due_ms, failures=self.failures + 1, problem=problem)


@dataclass(frozen=True, slots=True)
class AppPreferences:
    """A partner's settings of an app. Source: facts 2."""

    template_messaging: bool = True
    disable_optin_pref_url: bool = False
    callback_url: str = ""  # shown in the details only; callbacks go to the subscriptions
    callback_modes: tuple[str, ...] = ()  # shown only, as `callback_url`
    analytics: bool = False  # true if template analytics are on; they cannot be switched off again
    analytics_on_ui: bool = False
    unclicked_templates: tuple[str, ...] = ()  # ids of templates whose button taps analytics leave out
    live_since_ms: int = 0  # when the administrator made it live; 0: it was live from the start, or is not live
    optin_message: bool = False  # stored only; no opt-in message is sent
    # true if marketing templates are sent through the operator's API for marketing messages
    marketing_messages: bool = False
    is_shared: bool = False  # true if a person uses its number in the WhatsApp Business app, too
    cap: int = 0  # on fees; 0: not set
    user_ids: bool = False  # callbacks of version 2 have business-scoped user ids in addition to numbers
    user_ids_v3: bool = False  # likewise of version 3
    contact_email: str = ""  # of the business, as are the name and the number; empty: not set
    contact_name: str = ""
    contact_number: str = ""
    contact_verified: bool = False  # the holder of the e-mail address has confirmed it
    verification_sent_ms: int = 0  # when the current mail with a link to confirm it was made; 0: there is none
    storage_region: str = ""  # code of a country, stored and shown only; empty: not set
    language_code: str = "en"  # stored and shown only
    enable_redis: bool = False  # stored only
    # data of the business for sign-up, under the names of the wire
    prefilled: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    username_preferences: tuple[str, ...] = ()  # usernames that the business prefers, in order; empty ones are not set
    onboarding_link_ms: int = 0  # when the current link to its onboarding page was created; 0: there is none
    replaced_onboarding_links: int = 0  # how often the link has been replaced
    migration_status: str = ""  # how the number comes from elsewhere, as its partner has said; empty: it does not
    migration_ms: int = 0  # when its partner has said so; 0: never
    onboarding: AppOnboardingProgress | None = None  # None: it is live, or its onboarding has not begun


@dataclass(frozen=True, slots=True)
class App:
    """A partner's messaging application."""

    id: str
    partner_id: int
    name: str
    phone_number: str  # the source number, digits; identifies one app. Empty: not assigned yet.
    phone_number_id: str  # the operator's id of that number; may be empty
    business_account_id: str  # may be empty while the app has no number
    created_on_ms: int
    modified_on_ms: int
    live: bool = True  # false is a sandbox app
    hosting: Hosting = Hosting.CLOUD
    token_serial: int = 1  # incremented to revoke the app token
    per_second: int | None = None  # the operator's throughput for the number; None means the service's default
    preferences: AppPreferences = field(default_factory=AppPreferences)
    # its own rates by row of the table, such as `{"templates": "20/60s"}`; those of others are the service's
    rates: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    @property
    def throughput(self) -> int | None:
        """Messages a second that the operator accepts from its number now; None means the service's default."""
        if not self.preferences.is_shared:
            return self.per_second
        return min(SHARED_PER_SECOND, self.per_second or SHARED_PER_SECOND)


def sandbox_app(app_id: str, partner_id: int, name: str, now_ms: int) -> App:
    """Return a new app of a partner: a sandbox app without a number."""
    return App(
        id=app_id,
        partner_id=partner_id,
        name=name,
        phone_number="",
        phone_number_id="",
        business_account_id="",
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        live=False,
    )


@dataclass(frozen=True, slots=True)
class BusinessAccount:
    """The account that owns the namespace and the templates, and names the operator account."""

    id: str
    partner_id: int
    namespace: str
    operator_account_id: str


@dataclass(frozen=True, slots=True)
class OperatorAccount:
    """Our credentials and URLs at an operator. Secrets are plain text here and encrypted in the store."""

    id: str  # also the last segment of the webhook's path; never changes
    kind: str  # name of the adapter that calls the operator; never changes
    base_url: str  # without a path, such as `http://127.0.0.1:8081`
    fields: Mapping[str, str] = field(hash=False)  # the adapter's other settings, under its own names

    def __getitem__(self, name: str) -> str:
        """Return one of the fields."""
        return self.fields[name]

    def replace_fields(self, **changes: str) -> "OperatorAccount":
        """Return a copy with some fields replaced."""
        return replace(self, fields={**self.fields, **changes})


@dataclass(frozen=True, slots=True)
class AppRoute:
    """An app with its operator account, both read at the same moment."""

    app: App
    account: OperatorAccount


_REGIONS: Final = "BR DE CH GB BH ZA AE US CA AU ID IN JP SG KR"  # Source: ledger 1.2
STORAGE_REGIONS: Final = tuple(_REGIONS.split())
MAX_ADDITIONAL_KEYS: Final = 2  # Source: facts 1.4, in addition to the app token itself; decision 0024
MAX_MINTED_TOKENS: Final = 3  # active at once; source: facts 1.5
MAX_ENDED_TOKENS: Final = 100
"""Tokens of one partner or app that stay listed after their end: many can be made, and the list has no pages."""
ONBOARDING_LINK_LIFE_MS: Final = 5 * DAY_MS  # Source: ledger 1.3, `onboarding/embed/link`
ONBOARDING_PATH: Final = "/onboarding"
CONTACT_PATH: Final = f"{ONBOARDING_PATH}/contact"
MAX_REPLACED_ONBOARDING_LINKS: Final = 40  # Source: decision 0125
MIGRATION_STATUSES: Final = (
    "META_EMBED_MIGRATION",
    "MIGRATED_IN",
)  # not live yet, live. Source: ledger 1.3, `onboarding/phoneMigration`
MIN_MINTED_TOKEN_LIFE_MS: Final = HOUR_MS
MAX_MINTED_TOKEN_LIFE_MS: Final = DAY_MS


class KeyStatus(StrEnum):
    """The status of a credential; only an active one is accepted. Source: facts 1.5."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"


def credential_status(expires_on_ms: int | None, revoked_on_ms: int | None, now_ms: int) -> KeyStatus:
    """Return the status at a time of a credential that may expire, and may be revoked."""
    if revoked_on_ms is not None:
        return KeyStatus.REVOKED
    if expires_on_ms is not None and expires_on_ms <= now_ms:
        return KeyStatus.EXPIRED
    return KeyStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class AppKey:
    """A credential of an app, in addition to the app token."""

    id: str
    partner_id: int
    app_id: str
    name: str
    created_on_ms: int
    expires_on_ms: int | None = None  # of a minted token; None: an additional key, which does not expire
    revoked_on_ms: int | None = None
    ending: str = ""  # the last characters of the key, by which lists show it; empty: a key of before they were stored

    def status(self, now_ms: int) -> KeyStatus:
        """Return the status at a time."""
        return credential_status(self.expires_on_ms, self.revoked_on_ms, now_ms)


CUSTOMER_SERVICE_WINDOW_MS: Final = DAY_MS
"""Session messages may be sent for this long after a user's last message. Source: operator's facts 4.1."""


@dataclass(frozen=True, slots=True)
class AppUser:
    """A user of an app."""

    phone_number: str
    opted_in: bool | None = None  # None: not known
    source: str = ""  # of the last opt-in or opt-out; empty: none
    opted_on_ms: int = 0  # time of that change; 0: none
    blocked: bool = False
    last_written_ms: int = 0  # time of the user's last message to the app's number; 0: none
