"""The schema. Times are milliseconds since the epoch, phone numbers digits, ids text.

Every row that belongs to a partner carries `partner_id`, and every query that serves a partner
takes it. Secrets that are only compared are hashed; those we must use are sealed.
"""

from typing import Final

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
    text,
)

REVISION: Final = 3

metadata = MetaData()

_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only in INTEGER PRIMARY KEY

store_facts = Table(  # what the store knows of itself: `revision`, `kind` (dev or serve)
    "store_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

partners = Table(
    "partners",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("email", Text, nullable=False, unique=True),  # lower case
    Column("password_hash", Text, nullable=False),  # argon2id
    Column(
        "password_changed", Boolean, nullable=False, server_default=text("0")
    ),  # then it opens the API no more
    Column("profile", Text, nullable=False),  # JSON: what the login answer shows
    Column("created_on_ms", BigInteger, nullable=False),
)

client_secrets = Table(
    "client_secrets",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger),  # NULL: never
)

partner_tokens = Table(
    "partner_tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
)

app_keys = Table(  # further credentials of one app: second keys, and app tokens that expire
    "app_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger),  # NULL: never
    Column("revoked_on_ms", BigInteger),  # NULL: not revoked
)

operator_accounts = Table(
    "operator_accounts",
    metadata,
    Column("id", Text, primary_key=True),  # also the end of its webhook path
    Column("base_url", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("sealed_token", LargeBinary, nullable=False),
    Column("sealed_app_secret", LargeBinary, nullable=False),
    Column("sealed_verify_token", LargeBinary, nullable=False),
)

business_accounts = Table(
    "business_accounts",
    metadata,
    Column("id", Text, primary_key=True),  # the operator's id; `wabaId` on the wire
    Column("partner_id", BigInteger, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("operator_account_id", Text, nullable=False),
)

apps = Table(
    "apps",
    metadata,
    Column("id", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column(
        "phone_number", Text, unique=True
    ),  # a source names exactly one app; NULL: it has none yet
    Column("phone_number_id", Text, nullable=False),  # empty: none yet
    Column("business_account_id", Text, nullable=False),  # empty: none yet
    Column("live", Boolean, nullable=False),
    Column("hosting", Text, nullable=False),
    Column("token_serial", Integer, nullable=False),
    Column("token_hash", Text, nullable=False, index=True),
    Column("per_second", Integer),  # NULL: the service's default throughput
    Column(
        "preferences", Text, nullable=False, server_default=text("'{}'")
    ),  # JSON: AppPreferences
    Column("created_on_ms", BigInteger, nullable=False),
    Column("modified_on_ms", BigInteger, nullable=False),
    UniqueConstraint("partner_id", "name"),
    Index("apps_by_phone_number_id", "phone_number_id"),
)

app_stays = Table(  # what an operator account that an app has left calls it (decision 0033)
    "app_stays",
    metadata,
    Column("app_id", Text, primary_key=True),
    Column("operator_account_id", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("business_account_id", Text, nullable=False),
    Column("phone_number_id", Text, nullable=False),
    Column("phone_number", Text, nullable=False),
    Column(
        "left_ms", BigInteger, nullable=False
    ),  # what was accepted until then may have gone there
    Index("app_stays_by_number", "operator_account_id", "phone_number_id"),
)

template_stays = Table(  # the ids of templates at operator accounts that their account has left
    "template_stays",
    metadata,
    Column("template_id", Text, primary_key=True),
    Column("operator_account_id", Text, primary_key=True),
    Column("operator_template_id", Text, nullable=False),
    sqlite_with_rowid=False,
)

templates = Table(
    "templates",
    metadata,
    Column("id", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("business_account_id", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("element_name", Text, nullable=False),
    Column("language_code", Text, nullable=False),
    Column("template_type", Text, nullable=False, server_default=text("''")),  # the draft's
    Column("category", Text, nullable=False),
    Column("old_category", Text),
    Column("new_category", Text),  # announced by the operator
    Column("edited", Boolean, nullable=False, server_default=text("0")),
    Column("status", Text, nullable=False),
    Column("quality", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("retry", Integer, nullable=False),
    Column("reason", Text),
    Column("operator_template_id", Text),  # empty: nothing of it is the operator's (store/stays.py)
    Column("decided_on_s", BigInteger, nullable=False, server_default=text("0")),
    Column("draft", LargeBinary, nullable=False),  # JSON of the whole draft
    Column("created_on_ms", BigInteger, nullable=False),
    Column("modified_on_ms", BigInteger, nullable=False),
    Index("templates_by_app", "app_id", "id"),
    Index("templates_by_account", "business_account_id", "id"),
    Index("templates_by_operator_id", "operator_template_id"),
)

_IS_THERE = templates.c.status != "DELETED"
Index(  # a deleted template stays for the trace, and its name is free
    "templates_by_name",
    templates.c.business_account_id,
    templates.c.element_name,
    templates.c.language_code,
    unique=True,
    sqlite_where=_IS_THERE,
    postgresql_where=_IS_THERE,
)

recipients = Table(  # whoever a number talks to; either of the two names may be missing
    "recipients",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("phone_number", Text),
    Column("user_id", Text),  # business-scoped
    Column("name", Text, nullable=False, server_default=""),
    Column("window_until_ms", BigInteger),  # session messages may be sent until then
    Index("recipients_by_phone_number", "app_id", "phone_number", unique=True),
    Index("recipients_by_user_id", "app_id", "user_id", unique=True),
)

messages = Table(
    "messages",
    metadata,
    Column("id", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("destination", Text, nullable=False),
    Column("recipient_id", BigInteger),  # known once the operator has named the recipient
    Column("kind", Text, nullable=False),  # of its content; the table is in store/contents.py
    Column("template_id", Text),
    Column("content", LargeBinary, nullable=False),  # canonical JSON of our own message
    Column("request", Text, nullable=False),  # the form as it came; holds no credential
    Column("sandbox", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("doubted", Boolean, nullable=False),  # `failed` is our doubt, not the operator's word
    Column("operator_message_id", Text),
    Column("code", Integer),  # of the failure
    Column("reason", Text),
    Column("accepted_on_ms", BigInteger, nullable=False),
    Column("changed_on_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
Index(
    "messages_by_operator_id",
    messages.c.operator_message_id,
    sqlite_where=messages.c.operator_message_id.is_not(None),
    postgresql_where=messages.c.operator_message_id.is_not(None),
)

Index(
    "messages_by_app", messages.c.app_id, messages.c.accepted_on_ms
)  # what usage and analytics count

media = Table(  # what partners have uploaded; the bytes are files
    "media",
    metadata,
    Column("id", Text, primary_key=True),  # 16 digits; the media id on the wire
    Column("handle", Text, unique=True),  # NULL: uploaded for sending
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False, index=True),  # hex; the name of its file
    Column("file_name", Text, nullable=False),
    Column("created_on_ms", BigInteger, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
)

media_copies = Table(  # what the operator calls an upload, once it has it
    "media_copies",
    metadata,
    Column("media_id", Text, primary_key=True),
    Column(
        "place", Text, primary_key=True
    ),  # of the account: a number's id, or `app` and the operator's app id
    Column("operator_id", Text, nullable=False),  # its media id, or its handle
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
)

inbound_media = Table(  # what recipients have sent; the bytes are files once they are fetched
    "inbound_media",
    metadata,
    Column("key", Text, primary_key=True),  # the end of its address; nobody can guess it
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("operator_media_id", Text, nullable=False),
    Column("mime_type", Text, nullable=False),
    Column("file_name", Text, nullable=False),
    Column("expires_on_ms", BigInteger, nullable=False, index=True),
    Column("sha256", Text, index=True),  # NULL: not fetched yet
    Column("failed", Text),  # why it never will be
    Index("inbound_media_by_operators_id", "app_id", "operator_media_id"),
)

arrivals = Table(  # a webhook's body as received, once
    "arrivals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("operator_account_id", Text, nullable=False),
    Column("received_on_ms", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

arrival_items = Table(  # one status, message or template change of an arrival
    "arrival_items",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("operator_account_id", Text, nullable=False),
    Column("dedupe_key", Text, nullable=False),
    Column("arrival_id", Text, nullable=False),
    Column("place", Text, nullable=False),  # where in the body: `entry.change.list.index`
    Column(
        "item", LargeBinary, nullable=False
    ),  # JSON of the item with what the body says around it
    Column("received_on_ms", BigInteger, nullable=False),
    UniqueConstraint("operator_account_id", "dedupe_key"),
)

message_events = Table(  # what happened to a message, late news included: the trace
    "message_events",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("message_id", Text, nullable=False, index=True),
    Column("news", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("moved", Boolean, nullable=False),  # false: behind the state, called back to nobody
    Column("detail", Text, nullable=False),
)

inbound_messages = Table(
    "inbound_messages",
    metadata,
    Column("operator_message_id", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("recipient_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("item_id", BigInteger, nullable=False),
    Column("received_on_ms", BigInteger, nullable=False),
    Index("inbound_messages_by_kind", "app_id", "kind", "received_on_ms"),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("tag", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("version", SmallInteger, nullable=False),
    Column("modes", Text, nullable=False),  # comma-separated
    Column("active", Boolean, nullable=False),
    Column("show_on_ui", Boolean, nullable=False),
    Column("sealed_meta", LargeBinary),  # its headers may hold secrets
    Column("created_on_ms", BigInteger, nullable=False),
    Column("modified_on_ms", BigInteger, nullable=False),
    UniqueConstraint("app_id", "tag"),
    sqlite_autoincrement=True,  # a deleted subscription's id is never another's
)

sequences = Table(  # the last sequence number per subscription and recipient
    "sequences",
    metadata,
    Column("subscription_id", BigInteger, primary_key=True),
    Column(
        "about", Text, primary_key=True
    ),  # the recipient's id, `t:` and a template's id, or `account`
    Column("last", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

callbacks = Table(
    "callbacks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("partner_id", BigInteger, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("subscription_id", BigInteger, nullable=False),
    Column("about", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("message_id", Text),
    Column("news", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),  # rendered once; every try sends these bytes
    Column("created_on_ms", BigInteger, nullable=False),
    Column("ended_on_ms", BigInteger),  # NULL: still to be delivered
    Column("delivered", Boolean),  # NULL: still to be delivered; false: given up
    sqlite_with_rowid=False,
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("callback_id", Text, nullable=False, index=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("duration_ms", Integer, nullable=False),
    Column("status", Integer),  # of the answer; NULL: there was none
    Column("answer", LargeBinary, nullable=False),  # its first 4 KiB
    Column("error", Text),
)

journal = Table(  # open entries only: settling deletes
    "journal",
    metadata,
    Column("position", _Id, primary_key=True),  # order inside one key only
    Column("lane", SmallInteger, nullable=False),
    Column("grp", Text, nullable=False),
    Column("order_key", Text, nullable=False),
    Column("ref", Text, nullable=False),  # what it is about
    Column("due_ms", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("defects", SmallInteger, nullable=False, server_default=text("0")),
    Column(
        "state", SmallInteger, nullable=False, server_default=text("0")
    ),  # 0 open, 1 in hand, 2 set aside, 3 both
    Column("note", Text),  # why it was released or set aside
    Index("journal_by_group", "lane", "grp", "position"),
    sqlite_autoincrement=True,  # a position is never used twice
)

leases = Table(  # which process works which shard of a lane, where several share a store
    "leases",
    metadata,
    Column("lane", SmallInteger, primary_key=True, autoincrement=False),
    Column("shard", SmallInteger, primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
