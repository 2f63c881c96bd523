"""The columns that can hold personal data of a recipient; every other text or binary column is listed as holding none.

A test compares both lists with the tables, so that a new column cannot be left out.
"""

from typing import Final, NamedTuple


class PersonalColumn(NamedTuple):
    """A column that can hold personal data.

    Attributes:
        name: table and column.
        holds: what it can hold.
        exported: the kind of record of an export that has it; empty if it only repeats what another column has.
    """

    name: str
    holds: str
    exported: str = ""


PERSONAL_COLUMNS: Final = (
    # column, holds, record of an export
    PersonalColumn("recipients.phone_number", "the number", "recipient"),
    PersonalColumn("recipients.user_id", "the business-scoped user id", "recipient"),
    PersonalColumn("recipients.name", "the profile name", "recipient"),
    PersonalColumn("app_users.phone_number", "the number, with its opt-in and block", "user"),
    PersonalColumn("app_users.source", "where the opt-in came from", "user"),
    PersonalColumn("messages.destination", "the number or user id", "message"),
    PersonalColumn("messages.content", "the text, compiled from the request"),
    PersonalColumn("messages.request", "the partner's request with the text", "message"),
    PersonalColumn("messages.compressed_request", "the same, compressed", "message"),
    PersonalColumn("messages.operator_message_id", "the operator's id; it may encode the number", "message"),
    PersonalColumn("messages.request_id", "a partner's id of the request; it may use the number", "message"),
    PersonalColumn("messages.reason", "the operator's words about a failure", "message"),
    PersonalColumn("message_events.detail", "the operator's words about a step", "message"),
    PersonalColumn("callbacks.body", "number, name, and text of received messages", "callback"),
    PersonalColumn("callbacks.response_body", "the response of the receiver", "callback"),
    PersonalColumn("callbacks.response_headers", "headers of that response", "callback"),
    PersonalColumn("callbacks.request_headers", "headers as sent", "callback"),
    PersonalColumn("callbacks.note", "why the delivery failed"),
    PersonalColumn("attempts.response_body", "the response of the receiver", "callback"),
    PersonalColumn("attempts.response_headers", "headers of that response", "callback"),
    PersonalColumn("attempts.request_headers", "headers as sent", "callback"),
    PersonalColumn("attempts.error", "why there was no response", "callback"),
    PersonalColumn(
        "inbound_messages.operator_message_id",
        holds="the operator's id; it may encode the number",
        exported="inbound_message",
    ),
    PersonalColumn("webhook_items.item", "a received message, or a status with the number", "inbound_message"),
    PersonalColumn("webhook_items.dedupe_key", "the operator's id of a message"),
    PersonalColumn("inbound_webhooks.body", "the items, as the operator sent them together"),
    PersonalColumn("inbound_media.operator_media_id", "the operator's id of a received file"),
    PersonalColumn("inbound_media.file_name", "the name of a received file"),
    PersonalColumn("inbound_media.sha256", "the name under which the received bytes are stored"),
    PersonalColumn("inbound_media.failure", "why a received file was not fetched"),
    PersonalColumn("media.file_name", "the name of a file that a partner uploaded"),
    PersonalColumn("media.sha256", "the name under which the uploaded bytes are stored"),
    PersonalColumn("queue_jobs.concurrency_group", "the recipient of a webhook item, while its job waits"),
    PersonalColumn("queue_jobs.ordering_key", "the number, while the job waits"),
    PersonalColumn("queue_jobs.note", "why a job was retried later"),
    PersonalColumn("idempotency_keys.key", "a partner's key for a request; it may use the number"),
    PersonalColumn("idempotency_keys.route", "a path that may have the number"),
    PersonalColumn("idempotency_keys.response", "the response to that request, encrypted"),
    PersonalColumn("rate_windows.subject", "the number, where a limit counts by recipient"),
    PersonalColumn("request_log.request", "a redacted request with the number", "request"),
    PersonalColumn("request_log.response", "the redacted response, with the number", "request"),
    PersonalColumn("request_log.recipient", "the number or user id", "request"),
    PersonalColumn("request_log.explanation", "why a request failed; it may repeat the number", "request"),
    PersonalColumn("request_log.message", "the text of the error response", "request"),
    PersonalColumn("request_log.request_id", "a partner's id of the request; it may use the number", "request"),
    PersonalColumn("audit_log.subject", "ids of what an action concerned"),
    PersonalColumn("audit_log.detail", "details of an action"),
)

COLUMNS_WITHOUT_PERSONAL_DATA: Final = {  # of recipients: ids, names of states, and data of partners and operators
    "api_keys": "hash name",
    "app_keys": "id hash app_id name ending",
    "universal_tokens": "hash name",
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
