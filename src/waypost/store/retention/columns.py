"""The columns that can hold personal data of a recipient: what each holds, and how long that is kept.

Export, erasure and retention are derived from the table. Every other text or binary column is listed as holding none;
a test compares both lists with the tables, so that a new column cannot be left out.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Table, or_

from waypost.store.tables import (
    app_users,
    attempts,
    audit_log,
    callbacks,
    idempotency_keys,
    inbound_media,
    inbound_messages,
    inbound_webhooks,
    media,
    message_events,
    messages,
    queue_jobs,
    rate_windows,
    recipients,
    request_log,
    webhook_items,
)


@dataclass(frozen=True, slots=True)
class RetentionPeriods:
    """Retention periods in days."""

    bodies_days: int
    messages_days: int
    dedupe_days: int
    attempts_days: int
    audit_days: int = 400
    request_log_days: int = 7


class Period(StrEnum):
    """Lengths of time for which something is kept."""

    BODIES = "bodies"
    MESSAGES = "messages"
    ATTEMPTS = "attempts"
    FIRST_ATTEMPTS = "first attempts"
    ITEMS = "items"
    REQUESTS = "requests"
    AUDIT = "audit"
    EXPIRY = "until it expires"
    JOB = "until the job ends"
    APP = "as long as the app"

    def days(self, keep: RetentionPeriods) -> int:
        """Return its days with the periods of a service or a partner; 0 where they do not matter."""
        match self:
            case Period.BODIES:
                return keep.bodies_days
            case Period.MESSAGES:
                return keep.messages_days
            case Period.ATTEMPTS:
                return min(keep.attempts_days, keep.bodies_days)
            case Period.FIRST_ATTEMPTS:
                return keep.attempts_days
            case Period.ITEMS:
                return max(keep.bodies_days, keep.dedupe_days)
            case Period.REQUESTS:
                return min(keep.request_log_days, keep.bodies_days)
            case Period.AUDIT:
                return keep.audit_days
            case Period.EXPIRY | Period.JOB | Period.APP:
                return 0


class Holds(StrEnum):
    """Kinds of personal data."""

    NUMBER = "the number or user id, alone"
    USER_ID = "the business-scoped user id, alone"
    NAME = "the profile name"
    ID = "an id of the operator or of a file, which may encode the number"
    TEXT = "anything that the person or the partner wrote"


class PersonalColumn(NamedTuple):
    """A column that can hold personal data."""

    column: Column[Any]
    holds: Holds
    kept: Period
    about: str  # what it holds, in words
    exported: str = ""  # the kind of record of an export that has it; empty if it only repeats what another column has

    @property
    def name(self) -> str:
        """Table and column."""
        return f"{self.column.table.name}.{self.column.name}"


def _list_columns(table: Table, *rows: tuple[str, Holds, Period, str, str]) -> Iterator[PersonalColumn]:
    for name, holds, kept, about, exported in rows:
        yield PersonalColumn(table.c[name], holds, kept, about, exported)


PERSONAL_COLUMNS: Final = (
    # column, what it holds, how long it is kept, in words, record of an export
    *_list_columns(
        recipients,
        ("phone_number", Holds.NUMBER, Period.APP, "the number", "recipient"),
        ("user_id", Holds.USER_ID, Period.APP, "the business-scoped user id", "recipient"),
        ("name", Holds.NAME, Period.APP, "the profile name", "recipient"),
    ),
    *_list_columns(
        app_users,
        ("phone_number", Holds.NUMBER, Period.APP, "the number, with its opt-in and block", "user"),
        ("source", Holds.TEXT, Period.APP, "where the opt-in came from", "user"),
    ),
    *_list_columns(
        messages,
        ("destination", Holds.NUMBER, Period.MESSAGES, "the number or user id", "message"),
        ("content", Holds.TEXT, Period.BODIES, "the text, compiled from the request", ""),
        ("request", Holds.TEXT, Period.BODIES, "the partner's request with the text", "message"),
        ("compressed_request", Holds.TEXT, Period.BODIES, "the same, compressed", "message"),
        ("operator_message_id", Holds.ID, Period.MESSAGES, "the operator's id; it may encode the number", "message"),
        ("request_id", Holds.TEXT, Period.MESSAGES, "a partner's id of the request; it may use the number", "message"),
        ("reason", Holds.TEXT, Period.MESSAGES, "the operator's words about a failure", "message"),
    ),
    *_list_columns(
        message_events, ("detail", Holds.TEXT, Period.MESSAGES, "the operator's words about a step", "message")
    ),
    *_list_columns(
        callbacks,
        ("body", Holds.TEXT, Period.BODIES, "number, name, and text of received messages", "callback"),
        ("response_body", Holds.TEXT, Period.FIRST_ATTEMPTS, "the response of the receiver", "callback"),
        ("response_headers", Holds.TEXT, Period.FIRST_ATTEMPTS, "headers of that response", "callback"),
        ("request_headers", Holds.TEXT, Period.FIRST_ATTEMPTS, "headers as sent", "callback"),
        ("note", Holds.TEXT, Period.BODIES, "why the delivery failed", ""),
    ),
    *_list_columns(
        attempts,
        ("response_body", Holds.TEXT, Period.ATTEMPTS, "the response of the receiver", "callback"),
        ("response_headers", Holds.TEXT, Period.ATTEMPTS, "headers of that response", "callback"),
        ("request_headers", Holds.TEXT, Period.ATTEMPTS, "headers as sent", "callback"),
        ("error", Holds.TEXT, Period.ATTEMPTS, "why there was no response", "callback"),
    ),
    *_list_columns(
        inbound_messages,
        (
            "operator_message_id",
            Holds.ID,
            Period.MESSAGES,
            "the operator's id; it may encode the number",
            "inbound_message",
        ),
    ),
    *_list_columns(
        webhook_items,
        ("item", Holds.TEXT, Period.ITEMS, "a received message, or a status with the number", "inbound_message"),
        ("dedupe_key", Holds.ID, Period.ITEMS, "the operator's id of a message", ""),
    ),
    *_list_columns(
        inbound_webhooks, ("body", Holds.TEXT, Period.BODIES, "the items, as the operator sent them together", "")
    ),
    *_list_columns(
        inbound_media,
        ("operator_media_id", Holds.ID, Period.EXPIRY, "the operator's id of a received file", ""),
        ("file_name", Holds.TEXT, Period.EXPIRY, "the name of a received file", ""),
        ("sha256", Holds.ID, Period.EXPIRY, "the name under which the received bytes are stored", ""),
        ("failure", Holds.TEXT, Period.EXPIRY, "why a received file was not fetched", ""),
    ),
    *_list_columns(
        media,
        ("file_name", Holds.TEXT, Period.EXPIRY, "the name of a file that a partner uploaded", ""),
        ("sha256", Holds.ID, Period.EXPIRY, "the name under which the uploaded bytes are stored", ""),
    ),
    *_list_columns(
        queue_jobs,
        ("concurrency_group", Holds.NUMBER, Period.JOB, "the recipient of a webhook item, while its job waits", ""),
        ("ordering_key", Holds.NUMBER, Period.JOB, "the number, while the job waits", ""),
        ("note", Holds.TEXT, Period.JOB, "why a job was retried later", ""),
    ),
    *_list_columns(
        idempotency_keys,
        ("key", Holds.TEXT, Period.EXPIRY, "a partner's key for a request; it may use the number", ""),
        ("route", Holds.TEXT, Period.EXPIRY, "a path that may have the number", ""),
        ("response", Holds.TEXT, Period.EXPIRY, "the response to that request, encrypted", ""),
    ),
    *_list_columns(
        rate_windows, ("subject", Holds.NUMBER, Period.EXPIRY, "the number, where a limit counts by recipient", "")
    ),
    *_list_columns(
        request_log,
        ("request", Holds.TEXT, Period.REQUESTS, "a redacted request with the number", "request"),
        ("response", Holds.TEXT, Period.REQUESTS, "the redacted response, with the number", "request"),
        ("recipient", Holds.NUMBER, Period.REQUESTS, "the number or user id", "request"),
        ("explanation", Holds.TEXT, Period.REQUESTS, "why a request failed; it may repeat the number", "request"),
        ("message", Holds.TEXT, Period.REQUESTS, "the text of the error response", "request"),
        ("request_id", Holds.TEXT, Period.REQUESTS, "a partner's id of the request; it may use the number", "request"),
    ),
    *_list_columns(
        audit_log,
        ("subject", Holds.TEXT, Period.AUDIT, "ids of what an action concerned", ""),
        ("detail", Holds.TEXT, Period.AUDIT, "details of an action", ""),
    ),
)


def columns_of(table: Table, *holds: Holds) -> list[Column[Any]]:
    """Return the columns of a table that can hold one of these."""
    return [row.column for row in PERSONAL_COLUMNS if row.column.table is table and row.holds in holds]


def is_named(table: Table, names: Collection[str]) -> ColumnElement[bool]:
    """Return the condition of rows that are about a person with one of these names."""
    return or_(*(column.in_(names) for column in columns_of(table, Holds.NUMBER, Holds.USER_ID)))


def is_mentioned(table: Table, names: Collection[str]) -> ColumnElement[bool]:
    """Return the condition of rows that are about a person, or contain a name in a text; no index serves it."""
    texts = columns_of(table, Holds.TEXT)
    return or_(is_named(table, names), *(text.contains(name, autoescape=True) for text in texts for name in names))


def emptied(table: Table, period: Period) -> dict[Column[Any], Any]:
    """Return the empty values of the columns of a table that are kept for a period, where the rows are kept longer."""
    columns = [row.column for row in PERSONAL_COLUMNS if row.column.table is table and row.kept is period]
    return {column: None if column.nullable else column.type.python_type() for column in columns}


COLUMNS_WITHOUT_PERSONAL_DATA: Final = {  # of recipients: ids, names of states, and data of partners and operators
    "api_keys": "hash name",
    "app_keys": "id hash app_id name ending",
    "universal_tokens": "hash name",
    "app_links": "id app_id app_name customer status decided_by",
    "linking_tokens": "token_id",
    "app_operator_history": "app_id operator_account_id business_account_id phone_number_id phone_number",
    "app_users": "app_id",
    "apps": "id name phone_number phone_number_id business_account_id hosting token_hash preferences rates limit_event",
    "attempts": "callback_id kind",
    "audit_log": "actor remote_address action",
    "business_accounts": "id namespace operator_account_id",
    "callbacks": "id app_id subject message_id event",
    "client_secrets": "hash",
    "console_sessions": "hash",
    "idempotency_keys": "body_hash app_id holder",
    "inbound_media": "key app_id mime_type",
    "inbound_messages": "app_id kind",
    "inbound_webhooks": "id operator_account_id",
    "leases": "holder",
    "media": "id handle app_id mime_type",
    "media_copies": "media_id location operator_id",
    "message_events": "message_id event",
    "messages": "id app_id source kind template_id state",
    "old_app_tokens": "hash app_id",
    "operator_accounts": "id base_url kind encrypted_fields",
    "partner_tokens": "hash secret_hash",
    "partners": "email password_hash profile",
    "process_keys": "holder in_use known",
    "processes": "holder queues",
    "queue_jobs": "ref",
    "rate_windows": "name times_ms",
    "recipients": "app_id",
    "request_log": "id app_id route credential error field accepted",
    "sequences": "subject",
    "store_properties": "name value",
    "subscriptions": "app_id tag url modes encrypted_meta pause_reason",
    "template_events": "template_id kind detail",
    "template_operator_history": "template_id operator_account_id operator_template_id",
    "templates": (
        "id app_id business_account_id namespace element_name language_code template_type category "
        "old_category new_category status quality stage reason operator_template_id draft edit"
    ),
    "webhook_items": "operator_account_id webhook_id path",
}
