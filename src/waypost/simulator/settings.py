"""What the simulator is told at its start: settings, and the accounts and numbers that assembly seeds."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class StatusesVersion(StrEnum):
    """Which shape status webhooks have.

    Source: facts 7.3: `conversation` is in v23 and older, and gone from v24 on.
    """

    V23 = "v23"
    V24 = "v24"


@dataclass(frozen=True)
class SimulatorSettings:
    """Where the simulator keeps its file, and how it behaves until the control door says otherwise.

    Args:
        path: its own SQLite file; made when absent.
        review_delay_ms: from a template's submission to its review; None waits for the control door.
        deliver_after_ms: from `sent` to `delivered`, for phones that do not say otherwise.
        read_after_ms: from `delivered` to `read`; None means only when a phone is told to read.
        batch_at_most: updates in one webhook POST, 1 to 1000.
        gather_ms: the shortest real time between two webhook POSTs to one account, so that
            updates gather under load; the first one after a pause goes at once.
        limits: whether pair rate, throughput and edit limits apply.
        control_token: the credential of the control door; None leaves it open on loopback.
        allowed_hosts: Host names the control door takes besides the loopback ones.
        statuses_version: the shape of status webhooks.
        check_references: whether upload handles, media ids and flows that a template or a message
            refers to must be known here.
        check_languages: whether a template's language must be on the operator's list.
        strict: whether the operator also does what gets in the way of development: 100 creations
            an hour, no two templates of the same wording, no names of its sample templates
            (decision 0035), no offers, carousels, catalogs or products in UTILITY (decision 0068).
        marketing_words: what makes a template marketing that was submitted as UTILITY: with
            allow_category_change it is taken as MARKETING, without it is rejected in its review.
        templates_at_most: templates of one account, each language counted.
        calls_per_hour: management calls of one account; None: as the operator counts.
        window_at_once: whether a closed window is refused at once instead of in a status.
        messaging_limit_code: what a send beyond the messaging limit is refused with.
        throttle_status: the HTTP status of too many messages: 429, or 400 as others have seen.
        tells_retry_after: whether a 429 carries `Retry-After`.
        statuses_contacts: whether statuses come with `contacts`.
        user_ids: whether every phone's owner has a business-scoped user id beside the number.
        skips_delivered: whether a message that is read is never told as delivered.
        least_free_mb: room on the disk that uploads and files of phones leave.
    """

    path: Path
    review_delay_ms: int | None = 2000
    deliver_after_ms: int = 50
    read_after_ms: int | None = None
    batch_at_most: int = 250
    gather_ms: int = 20
    limits: bool = True
    control_token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    statuses_version: StatusesVersion = StatusesVersion.V24
    check_references: bool = True
    check_languages: bool = True
    strict: bool = False
    marketing_words: tuple[str, ...] = ()
    templates_at_most: int = 6000  # Source: facts 2.3; 250 for a portfolio that is not verified
    calls_per_hour: int | None = None
    window_at_once: bool = False
    messaging_limit_code: int = 131048  # Source: facts 8: a guess, not documented
    throttle_status: int = 429  # Source: facts 13
    tells_retry_after: bool = False
    statuses_contacts: bool = True  # Source: facts 7.3, 7.5: since 2026
    user_ids: bool = True  # Source: facts 7.5: since April 2026
    skips_delivered: bool = False
    least_free_mb: int = 256


CHANGEABLE = (
    "review_delay_ms",
    "deliver_after_ms",
    "read_after_ms",
    "batch_at_most",
    "gather_ms",
    "limits",
    "statuses_version",
    "check_references",
    "check_languages",
    "strict",
    "marketing_words",
    "templates_at_most",
    "calls_per_hour",
    "window_at_once",
    "messaging_limit_code",
    "throttle_status",
    "tells_retry_after",
    "statuses_contacts",
    "user_ids",
    "skips_delivered",
)
"""The settings that the control door may change; what it sets is kept in the file and wins."""


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
