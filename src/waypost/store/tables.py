"""The tables. Times are milliseconds since the epoch, phone numbers are digits, ids are text.

Every row that belongs to a partner has `partner_id`, and every query that serves a partner filters by it.
Secrets that are only compared are hashed; those that we must use are encrypted.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

REVISION: Final = 11

metadata = MetaData()

TextColumn = Text().with_variant(Text(collation="C"), "postgresql")  # compared by code point, as in SQLite
_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite generates ids only for INTEGER PRIMARY KEY


def _partial_index(name: str, *columns: Any, where: Any, unique: bool = False) -> Index:
    condition = text(where) if isinstance(where, str) else where
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


store_properties = Table(  # properties of the store: `revision`, `kind` (dev or serve)
    "store_properties",
    metadata,
    Column("name", TextColumn, primary_key=True),
    Column("value", TextColumn, nullable=False),
)

partners = Table(
    "partners",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("email", TextColumn, nullable=False, unique=True),  # lower case
    Column("password_hash", TextColumn, nullable=False),  # argon2id
    Column("password_changed", Boolean, nullable=False, server_default=false()),  # the API then no longer accepts it
    Column("profile", TextColumn, nullable=False),  # JSON: shown in the login response
    Column("created_on_ms", BigInteger, nullable=False),
    Column("message_quota", BigInteger),  # of messages that wait; 0: no limit; NULL: the setting's
    Column("callback_quota", BigInteger),  # of callbacks that wait; likewise
    Column("keep_bodies_days", Integer),  # retention of its content; NULL: the setting's
    Column("keep_messages_days", Integer),  # retention of its messages; likewise
    Column("block_enabled", Boolean),  # its preference for blocking users, stored only; NULL: none
)

client_secrets = Table(
    "client_secrets",
    metadata,
    Column("hash", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger),  # NULL: never
)

universal_tokens = Table(  # open every app of a partner, on both hosts
    "universal_tokens",
    metadata,
    Column("hash", TextColumn, primary_key=True),  # of a revoked one only the id, its beginning: nothing can match it
    Column("partner_id", BigInteger, nullable=False, index=True),
    Column("name", TextColumn, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False),
    Column("revoked_on_ms", BigInteger),  # NULL: not revoked
)

partner_tokens = Table(
    "partner_tokens",
    metadata,
    Column("hash", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False),
    Column("secret_hash", TextColumn),  # of the client secret that issued it; NULL: a password, or us
)

console_sessions = Table(  # sessions of the console; times are the machine's, not the service's
    "console_sessions",
    metadata,
    Column("hash", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False, index=True),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
    # Its user has the administrator's rights until then; NULL: never
    Column("admin_until_ms", BigInteger),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("hash", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("name", TextColumn, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
)

app_keys = Table(  # further credentials of one app: additional keys, and app tokens that expire
    "app_keys",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("hash", TextColumn, nullable=False, unique=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False, index=True),
    Column("name", TextColumn, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger),  # NULL: never
    Column("revoked_on_ms", BigInteger),  # NULL: not revoked
    Column("ending", TextColumn, nullable=False, server_default=text("''")),  # the key's last characters
)

old_app_tokens = Table(  # app tokens of before the instance key was replaced, while they are accepted
    "old_app_tokens",
    metadata,
    Column("hash", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False, index=True),
    Column("expires_on_ms", BigInteger, nullable=False),
)

operator_accounts = Table(
    "operator_accounts",
    metadata,
    Column("id", TextColumn, primary_key=True),  # also the last part of its webhook path
    Column("base_url", TextColumn, nullable=False),
    Column("kind", TextColumn, nullable=False),  # of the adapter
    Column("encrypted_fields", LargeBinary, nullable=False),  # JSON, with the adapter's field names
)

business_accounts = Table(
    "business_accounts",
    metadata,
    Column("id", TextColumn, primary_key=True),  # the operator's id; `wabaId` on the wire
    Column("partner_id", BigInteger, nullable=False),
    Column("namespace", TextColumn, nullable=False),
    Column("operator_account_id", TextColumn, nullable=False),
)

apps = Table(
    "apps",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("name", TextColumn, nullable=False),
    Column("phone_number", TextColumn, unique=True),  # a source belongs to exactly one app; NULL: none yet
    Column("phone_number_id", TextColumn, nullable=False),  # empty: none yet
    Column("business_account_id", TextColumn, nullable=False),  # empty: none yet
    Column("live", Boolean, nullable=False),
    Column("hosting", TextColumn, nullable=False),
    Column("token_serial", Integer, nullable=False),
    Column("token_hash", TextColumn, nullable=False, index=True),
    Column("per_second", Integer),  # NULL: the service's default throughput
    Column("preferences", TextColumn, nullable=False, server_default=text("'{}'")),  # JSON: AppPreferences
    Column("rates", TextColumn, nullable=False, server_default=text("'{}'")),  # JSON: its own rates, by row
    Column("limit_event", TextColumn),  # JSON: LimitEvent, the last one of its number; NULL: none
    Column("created_on_ms", BigInteger, nullable=False),
    Column("modified_on_ms", BigInteger, nullable=False),
    UniqueConstraint("partner_id", "name"),
    Index("apps_by_phone_number_id", "phone_number_id"),
)

linking_tokens = Table(  # the current linking token of a partner; the token is derived from its row
    "linking_tokens",
    metadata,
    Column("partner_id", BigInteger, primary_key=True, autoincrement=False),
    Column("token_id", TextColumn, nullable=False),
    Column("issued_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False),
)

app_links = Table(  # apps of customers until a partner has them, and requests to a partner (decision 0126)
    "app_links",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("app_id", TextColumn, nullable=False, unique=True),
    Column("app_name", TextColumn, nullable=False),
    Column("customer", TextColumn, nullable=False),
    Column("partner_id", BigInteger, index=True),  # NULL: that of who uses the app linking token
    Column("requested_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False),
    Column("status", TextColumn, nullable=False),
    Column("decided_on_ms", BigInteger),  # NULL: not decided
    Column("decided_by", TextColumn, nullable=False),
)

app_operator_history = Table(  # operator history of apps: their ids at former operator accounts (decision 0033)
    "app_operator_history",
    metadata,
    Column("app_id", TextColumn, primary_key=True),
    Column("operator_account_id", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("business_account_id", TextColumn, nullable=False),
    Column("phone_number_id", TextColumn, nullable=False),
    Column("phone_number", TextColumn, nullable=False),
    Column("left_ms", BigInteger, nullable=False),  # what was accepted until then may have been sent through it
    Index("app_operator_history_by_number", "operator_account_id", "phone_number_id"),
)

template_operator_history = Table(  # operator history of templates: their ids at former operator accounts
    "template_operator_history",
    metadata,
    Column("template_id", TextColumn, primary_key=True),
    Column("operator_account_id", TextColumn, primary_key=True),
    Column("operator_template_id", TextColumn, nullable=False),
    sqlite_with_rowid=False,
)

templates = Table(
    "templates",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("business_account_id", TextColumn, nullable=False),
    Column("namespace", TextColumn, nullable=False),
    Column("element_name", TextColumn, nullable=False),
    Column("language_code", TextColumn, nullable=False),
    Column("template_type", TextColumn, nullable=False, server_default=text("''")),  # of the draft
    Column("category", TextColumn, nullable=False),
    Column("old_category", TextColumn),
    Column("new_category", TextColumn),  # announced by the operator
    Column("edited", Boolean, nullable=False, server_default=false()),
    Column("status", TextColumn, nullable=False),
    Column("quality", TextColumn, nullable=False),
    Column("stage", TextColumn, nullable=False),
    Column("retry", Integer, nullable=False),
    Column("reason", TextColumn),
    Column("operator_template_id", TextColumn),  # empty: the operator never had it (operator_history.py)
    Column("decided_on_s", BigInteger, nullable=False, server_default=text("0")),
    Column("draft", LargeBinary, nullable=False),  # JSON of the whole draft
    Column("edit", LargeBinary),  # JSON of an edit that the operator has not accepted
    Column("created_on_ms", BigInteger, nullable=False),
    Column("modified_on_ms", BigInteger, nullable=False),
    Index("templates_by_app", "app_id", "id"),
    Index("templates_by_account", "business_account_id", "id"),
    Index("templates_by_operator_id", "operator_template_id"),
)

template_events = Table(  # the history of templates
    "template_events",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("template_id", TextColumn, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("kind", TextColumn, nullable=False),  # the values are in store/templates/events.py
    Column("detail", TextColumn, nullable=False),  # JSON object
    Index("template_events_by_template", "template_id", "id"),
)

_partial_index(  # a deleted template is retained for traces, and its name may be used again
    "templates_by_name",
    *(templates.c.business_account_id, templates.c.element_name, templates.c.language_code),
    where=templates.c.status != "DELETED",
    unique=True,
)

recipients = Table(  # whom a number exchanges messages with; either of the two ids may be missing
    "recipients",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("phone_number", TextColumn),
    Column("user_id", TextColumn),  # business-scoped
    Column("name", TextColumn, nullable=False, server_default=""),
    Column("window_until_ms", BigInteger),  # session messages may be sent until then
    Column("same_as", BigInteger),  # the row of the same person that counts; this one is a further id, or was merged
    Column("read_until_ms", BigInteger),  # what was received until then was marked as read; NULL: nothing was
    Index("recipients_by_phone_number", "app_id", "phone_number", unique=True),
    Index("recipients_by_user_id", "app_id", "user_id", unique=True),
    _partial_index("recipients_by_same_as", "same_as", where="same_as IS NOT NULL"),
    # who wrote last, for the list of conversations; written when a recipient writes (decision 0106)
    _partial_index("recipients_by_window", "app_id", "window_until_ms", where="window_until_ms IS NOT NULL"),
)

app_users = Table(  # users who have opted in or out, or whom the app's number has blocked
    "app_users",
    metadata,
    Column("app_id", TextColumn, primary_key=True),
    Column("phone_number", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("opted_in", Boolean),  # NULL: neither
    Column("source", TextColumn, nullable=False, server_default=""),  # of the last change
    Column("opted_on_ms", BigInteger),
    Column("blocked", Boolean, nullable=False, server_default=false()),
    Index("app_users_by_time", "app_id", "opted_on_ms"),
)

messages = Table(
    "messages",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("source", TextColumn, nullable=False),
    Column("destination", TextColumn, nullable=False),
    Column("recipient_id", BigInteger),  # known once the operator has identified the recipient
    Column("kind", TextColumn, nullable=False),  # of its content; the table is in store/encoding.py
    Column("template_id", TextColumn),
    Column("content", LargeBinary, nullable=False),  # canonical JSON of our own message
    Column("request", TextColumn, nullable=False),  # always empty: the form is compressed, in the column below
    Column("sandbox", Boolean, nullable=False),
    Column("state", TextColumn, nullable=False),
    Column("unconfirmed", Boolean, nullable=False),  # `failed` is our assumption, not reported by the operator
    Column("operator_message_id", TextColumn),
    Column("code", BigInteger),  # of the failure; defined by the operator
    Column("reason", TextColumn),
    Column("accepted_on_ms", BigInteger, nullable=False),
    Column("changed_on_ms", BigInteger, nullable=False),
    Column("enqueued_on_ms", BigInteger),  # when it reached these states; NULL: it did not
    Column("sent_on_ms", BigInteger),
    Column("delivered_on_ms", BigInteger),
    Column("read_on_ms", BigInteger),
    Column("compressed_request", LargeBinary),  # the form as received; holds no credential
    Column("request_id", TextColumn),  # of the request; NULL: the client sent none
    sqlite_with_rowid=False,
)
_partial_index(
    "messages_by_operator_id", messages.c.operator_message_id, where=messages.c.operator_message_id.is_not(None)
)
Index("messages_by_app", messages.c.app_id, messages.c.accepted_on_ms)  # for counts of usage and analytics
_partial_index(  # messages to one recipient, newest first; not written when a message is accepted
    "messages_by_recipient",
    *(messages.c.recipient_id, messages.c.accepted_on_ms),
    where=messages.c.recipient_id.is_not(None),
)

media = Table(  # uploads of partners; the bytes are files
    "media",
    metadata,
    Column("id", TextColumn, primary_key=True),  # 16 digits; the media id on the wire
    Column("handle", TextColumn, unique=True),  # NULL: uploaded for sending
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("mime_type", TextColumn, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", TextColumn, nullable=False, index=True),  # hex; the name of its file
    Column("file_name", TextColumn, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
    Index("media_by_partner", "partner_id", "sha256", "expires_on_ms", "size_bytes"),
)

media_copies = Table(  # the operator's copies of uploads
    "media_copies",
    metadata,
    Column("media_id", TextColumn, primary_key=True),
    # The operator account's id with a number's id, or with `app` and the operator's app id
    Column("location", TextColumn, primary_key=True),
    Column("operator_id", TextColumn, nullable=False),  # its media id, or its handle
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
)

inbound_media = Table(  # media from recipients; the bytes are files once they are fetched
    "inbound_media",
    metadata,
    Column("key", TextColumn, primary_key=True),  # the last part of its URL; cannot be guessed
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("operator_media_id", TextColumn, nullable=False),
    Column("mime_type", TextColumn, nullable=False),
    Column("file_name", TextColumn, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
    Column("sha256", TextColumn, index=True),  # NULL: not fetched yet
    Column("failure", TextColumn),  # why it cannot be fetched
    Index("inbound_media_by_operators_id", "app_id", "operator_media_id"),
)

inbound_webhooks = Table(  # a webhook's body as received, once
    "inbound_webhooks",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("operator_account_id", TextColumn, nullable=False),
    Column("received_on_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("compressed", Boolean, nullable=False, server_default=false()),  # the body, by zlib
)

webhook_items = Table(  # one status, message or template change of a webhook
    "webhook_items",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("operator_account_id", TextColumn, nullable=False),
    Column("dedupe_key", TextColumn, nullable=False),
    Column("webhook_id", TextColumn, nullable=False),
    Column("path", TextColumn, nullable=False),  # position in the body: `job.change.list.index`
    Column("item", LargeBinary, nullable=False),  # JSON of the item with its context in the body
    Column("received_on_ms", BigInteger, nullable=False),
    UniqueConstraint("operator_account_id", "dedupe_key"),
)

message_events = Table(  # what traces have beyond the times in messages' rows: failures, late statuses, retries
    "message_events",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("message_id", TextColumn, nullable=False, index=True),
    Column("event", TextColumn, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("applied", Boolean, nullable=False),  # false: behind the state, so it caused no callback
    Column("detail", TextColumn, nullable=False),
)

inbound_messages = Table(
    "inbound_messages",
    metadata,
    Column("operator_message_id", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("recipient_id", BigInteger, nullable=False),
    Column("kind", TextColumn, nullable=False),
    Column("item_id", BigInteger, nullable=False),
    Column("received_on_ms", BigInteger, nullable=False),
    Index("inbound_messages_by_kind", "app_id", "kind", "received_on_ms"),
    Index("inbound_messages_by_time", "received_on_ms"),  # used by retention
    Index("inbound_messages_by_recipient", "recipient_id", "received_on_ms"),  # for conversations (decision 0106)
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("tag", TextColumn, nullable=False),
    Column("url", TextColumn, nullable=False),
    Column("version", SmallInteger, nullable=False),
    Column("modes", TextColumn, nullable=False),  # comma-separated
    Column("active", Boolean, nullable=False),
    Column("show_on_ui", Boolean, nullable=False),
    Column("encrypted_meta", LargeBinary),  # its headers may hold secrets
    Column("created_on_ms", BigInteger, nullable=False),
    Column("modified_on_ms", BigInteger, nullable=False),
    Column("key_serial", Integer, nullable=False, server_default=text("1")),  # of its signing key
    Column("old_key_until_ms", BigInteger),  # the previous key signs too until then
    Column("failing_since_ms", BigInteger),  # no callback was delivered since then; NULL: it is healthy
    Column("retry_after_until_ms", BigInteger),  # its receiver requested no calls before then
    Column("paused_on_ms", BigInteger),  # by the service, until someone resumes it; NULL: not paused
    Column("pause_reason", TextColumn),
    Column("next_attempt_ms", BigInteger),  # its circuit is open until then; NULL: not open
    Column("retry_requests", Integer, nullable=False, server_default=text("0")),  # to call its receiver at once
    UniqueConstraint("app_id", "tag"),
    sqlite_autoincrement=True,  # the id of a deleted subscription is never reused
)

sequences = Table(  # the last sequence number per subscription and recipient
    "sequences",
    metadata,
    Column("subscription_id", BigInteger, primary_key=True),
    Column("subject", TextColumn, primary_key=True),  # the recipient's id, `t:` and a template's id, or `account`
    Column("last", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

callbacks = Table(  # each is its own job in the callbacks queue until it has ended (decision 0089)
    "callbacks",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", TextColumn, nullable=False),
    Column("subscription_id", BigInteger, nullable=False),
    Column("subject", TextColumn, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("message_id", TextColumn),
    Column("event", TextColumn, nullable=False),
    Column("body", LargeBinary, nullable=False),  # rendered once; every attempt sends it; compressed
    Column("created_on_ms", BigInteger, nullable=False),
    Column("ended_on_ms", BigInteger),  # NULL: still to be delivered
    Column("delivered", Boolean),  # NULL: still to be delivered; false: failed for good
    # The job. Its position is of the same sequence as those in `queue_jobs`
    Column("position", BigInteger),
    Column("due_ms", BigInteger, nullable=False, server_default=text("0")),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("defects", SmallInteger, nullable=False, server_default=text("0")),
    Column("state", SmallInteger, nullable=False, server_default=text("0")),  # as in `queue_jobs`
    Column("note", TextColumn),
    Column("detached", Boolean, nullable=False, server_default=false()),
    # The first attempt, if it delivered the callback; any other attempt is a row of `attempts`
    Column("attempted_on_ms", BigInteger),
    Column("duration_ms", Integer),
    Column("status", Integer),
    Column("response_body", LargeBinary),  # its first 4 KiB; NULL: empty
    Column("request_headers", TextColumn),  # JSON: see `_pack_request_headers` in store/callbacks/callbacks.py
    Column("response_headers", TextColumn),  # JSON
    Index("callbacks_by_subscription", "subscription_id", "created_on_ms"),
    Index("callbacks_by_message", "message_id"),  # for a message's trace
    _partial_index(  # for the response times of receivers
        "callbacks_by_attempt", "subscription_id", "attempted_on_ms", where="attempted_on_ms IS NOT NULL"
    ),
    _partial_index("callbacks_open", "subscription_id", "position", where="ended_on_ms IS NULL"),  # the jobs
    # dead letters are found without reading other jobs
    _partial_index("callbacks_dead_letters", "position", where="ended_on_ms IS NULL AND state >= 2"),
    sqlite_with_rowid=False,
)

attempts = Table(  # attempts to deliver callbacks, except a first one that delivered it
    "attempts",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("callback_id", TextColumn, nullable=False, index=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("status", Integer),  # of the response; NULL: there was none
    Column("response_body", LargeBinary, nullable=False),  # its first 4 KiB
    Column("error", TextColumn),
    Column("subscription_id", BigInteger),
    Column("request_headers", TextColumn),  # JSON: as sent; only the names of the partner's own headers
    Column("response_headers", TextColumn),  # JSON: the first headers of the response
    Column("kind", TextColumn, nullable=False, server_default=text("''")),
    Index("attempts_by_subscription", "subscription_id", "at_ms"),
)

queue_jobs = Table(  # unfinished jobs only: completing a job deletes it; a callback that is not a replay is its own job
    "queue_jobs",
    metadata,
    Column("position", _Id, primary_key=True),  # orders jobs of one ordering key only
    Column("queue", SmallInteger, nullable=False),
    Column("concurrency_group", TextColumn, nullable=False),
    Column("ordering_key", TextColumn, nullable=False),
    Column("ref", TextColumn, nullable=False),  # its subject
    Column("due_ms", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("defects", SmallInteger, nullable=False, server_default=text("0")),
    Column("state", SmallInteger, nullable=False, server_default=text("0")),  # 0 open, 1 in flight, 2 parked, 3 both
    Column("note", TextColumn),  # why it was retried later or parked
    Column("detached", Boolean, nullable=False, server_default=false()),  # its ordering key does not wait for it
    Column("replay", Boolean, nullable=False, server_default=false()),  # a callback that is sent once more
    Index("queue_jobs_by_group", "queue", "concurrency_group", "position"),
    # dead letters are found without reading other jobs
    _partial_index("queue_jobs_dead_letters", "queue", "position", where="state >= 2"),
    sqlite_autoincrement=True,  # a position is never reused
)

leases = Table(  # the process that works each shard of a queue, where several share a store
    "leases",
    metadata,
    Column("queue", SmallInteger, primary_key=True, autoincrement=False),
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("holder", TextColumn, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

processes = Table(  # the queues that each process works, where several share a store
    "processes",
    metadata,
    Column("holder", TextColumn, primary_key=True),
    Column("queues", TextColumn, nullable=False),  # comma-separated
    Column("seen_ms", BigInteger, nullable=False),  # by the store's clock
    sqlite_with_rowid=False,
)

process_keys = Table(  # the instance keys of each process, where several share a store
    "process_keys",
    metadata,
    Column("holder", TextColumn, primary_key=True),
    Column("in_use", TextColumn, nullable=False),  # fingerprint
    Column("known", TextColumn, nullable=False),  # fingerprints, comma-separated
    sqlite_with_rowid=False,
)

idempotency_keys = Table(  # the responses to requests that may be repeated (decision 0044)
    "idempotency_keys",
    metadata,
    Column("partner_id", BigInteger, primary_key=True, autoincrement=False),
    Column("route", TextColumn, primary_key=True),  # method and path, and the app's id where the path has one
    Column("key", TextColumn, primary_key=True),
    Column("body_hash", LargeBinary, nullable=False),  # SHA-256
    Column("app_id", TextColumn),  # of the request; NULL: the partner's own
    Column("holder", TextColumn),  # the process that works on it; NULL: done, in the transaction that added it
    Column("response", LargeBinary),  # encrypted, as some hold secrets; NULL: no response yet
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
    sqlite_with_rowid=False,
)

rate_windows = Table(  # requests counted by rate limits that processes share (decision 0045)
    "rate_windows",
    metadata,
    Column("name", TextColumn, primary_key=True),  # of the rate limit
    Column("subject", TextColumn, primary_key=True),
    Column("times_ms", TextColumn, nullable=False),  # JSON: times, oldest first
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
    sqlite_with_rowid=False,
)

request_log = Table(  # failed requests of partners, and a sample of the others: redacted, without credentials
    "request_log",
    metadata,
    Column("id", TextColumn, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("partner_id", BigInteger),  # NULL: not known, because the request had no valid credential
    Column("app_id", TextColumn, nullable=False),  # empty: not known
    Column("route", TextColumn, nullable=False),  # method and path template
    Column("credential", TextColumn, nullable=False),  # its kind and name, never its value
    Column("status", Integer, nullable=False),
    Column("error", TextColumn, nullable=False),  # the error code; empty: accepted
    Column("message", TextColumn, nullable=False),  # of the error response
    Column("explanation", TextColumn, nullable=False),
    Column("field", TextColumn, nullable=False),
    Column("accepted", TextColumn, nullable=False),  # what the field would accept
    Column("request", TextColumn, nullable=False),  # JSON: path, query, type and body, redacted; empty: not stored
    Column("response", TextColumn, nullable=False, server_default=""),  # JSON: headers, body, redacted; empty: none
    Column("recipient", TextColumn, nullable=False),  # the phone number or user id in it; empty: none
    Column("size_bytes", Integer, nullable=False),  # of the body
    Column("took_us", BigInteger, nullable=False),
    Column("request_id", TextColumn, nullable=False, index=True),
    Index("request_log_by_partner", "partner_id", "id"),
)

audit_log = Table(  # every action of an administrator or of a signed-in partner, rejected ones too
    "audit_log",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("at_ms", BigInteger, nullable=False, index=True),
    Column("partner_id", BigInteger),  # NULL: an administrator's action, or an unknown actor
    Column("actor", TextColumn, nullable=False),  # admin, or the partner's e-mail
    Column("remote_address", TextColumn, nullable=False),
    Column("action", TextColumn, nullable=False),
    Column("subject", TextColumn, nullable=False),  # the id of what it concerns; never a secret
    Column("status", Integer, nullable=False),  # of the response
    Column("detail", TextColumn, nullable=False),
    Index("audit_log_by_partner", "partner_id", "id"),
)
