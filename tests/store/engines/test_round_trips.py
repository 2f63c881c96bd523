"""Values are read back as they were written; missing ones are None or left out."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, select

from tests.support.builders import (
    ACCOUNT,
    ANN,
    APP,
    AT_MS,
    INSTANCE_KEY,
    OPERATOR,
    PARTNER,
    draft,
    id_number,
    message,
    template,
)
from tests.support.manual_clock import ManualClock
from waypost.base.encryption import SecretBox, WrongInstanceKey
from waypost.domain.callbacks import Subscription
from waypost.domain.event import InboundWebhook, WebhookItem
from waypost.domain.message import Content, MessageState, TemplateSend
from waypost.domain.session_messages.plain import SessionText
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.template import TemplateFilter, TemplateStatus
from waypost.store.accounts import partners as stored
from waypost.store.accounts.credentials import (
    CredentialKind,
    add_credential,
    list_credentials,
    revoke_api_key,
    revoke_credential,
)
from waypost.store.callbacks.callbacks import reserve_sequence_numbers
from waypost.store.callbacks.subscriptions import (
    DuplicateTag,
    TooManySubscriptions,
    add_subscription,
    delete_subscriptions,
    list_app_subscriptions,
)
from waypost.store.console.trace import message_trace
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.encoding import decode_content
from waypost.store.messages.messages import (
    MessageChange,
    MessageTraceEvent,
    change_messages,
    decode_message,
    messages_by_ids,
    messages_by_operator_ids,
    record_messages,
)
from waypost.store.messages.recipients import get_or_create_recipient
from waypost.store.queue.inbound_webhooks import items_by_ids, record_webhooks
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.store.tables import operator_accounts, recipients, subscriptions, webhook_items
from waypost.store.templates.templates import (
    change_template,
    find_operator_template,
    find_templates,
    record_template,
    template_by_id,
)

SEALS = SecretBox(INSTANCE_KEY)
SECRET, KEY = CredentialKind.CLIENT_SECRET, CredentialKind.API_KEY


def seal(secret: str, of: str) -> bytes:
    return SEALS.seal(secret, owner=of)


def unseal(sealed: bytes, of: str) -> str:
    return SEALS.open(sealed, owner=of)


@pytest.mark.parametrize(
    "content",
    [
        SessionText("Hello"),
        SessionText('ä€😀 "\\ \n', preview_url=True, reply_to="wamid.x"),
        TemplateSend(id_number(9)),
        TemplateSend(id_number(9), ("Ann", ""), {0: "ok-1", 7: "ö" * 300}),
    ],
    ids=["text", "text_with_everything", "template", "template_with_everything"],
)
async def test_message_is_read_back_as_it_was(database: Database, content: Content) -> None:
    original = message(content=content, sandbox=True)

    await database.join(record_messages, original)

    rows = await database.read(messages_by_ids, {original.id, "another"})
    assert list(rows) == [original.id]
    assert decode_message(rows[original.id]) == original
    assert decode_content(rows[original.id].kind, rows[original.id].content) == content
    assert rows[original.id].state == MessageState.ACCEPTED


async def test_message_is_stored_with_its_job(database: Database) -> None:
    await database.join(record_messages, message())

    assert await database.read(count_jobs_by_state, QueueName.OUTBOUND) == {JobState.OPEN: 1}


async def test_changed_message_is_found_by_the_operators_id(database: Database) -> None:
    original = message()
    await database.join(record_messages, original)
    change = MessageChange(original.id, MessageState.ENQUEUED, AT_MS + 5, 3, "wamid.1")
    event = MessageTraceEvent(original.id, "enqueued", AT_MS + 5, is_applied=True)

    await database.write(change_messages, [change], [event])

    rows = await database.read(messages_by_operator_ids, {"wamid.1", "wamid.2"})
    assert list(rows) == ["wamid.1"]
    assert (rows["wamid.1"].state, rows["wamid.1"].changed_on_ms) == ("enqueued", AT_MS + 5)
    trace = await database.read(message_trace, original.id)
    assert trace is not None
    assert [line["event"] for line in trace["events"]] == ["enqueued"]
    assert "content" not in trace


async def test_template_is_read_back_as_it_was(database: Database) -> None:
    buttons = (
        TemplateButton(ButtonKind.QUICK_REPLY, "Yes"),
        TemplateButton(ButtonKind.URL, "Look", url="https://acme.test/{{1}}", example=("7",)),
        TemplateButton(ButtonKind.PHONE_NUMBER, "Call", phone_number="+1555"),
    )
    original = template(of=draft(header="Hello", footer="Bye", buttons=buttons, language_code="de"))

    assert await database.write(record_template, original)

    assert await database.read(template_by_id, original.id) == original
    assert await database.read(template_by_id, "another") is None


async def test_name_of_a_template_is_unique_in_each_language(database: Database) -> None:
    await database.write(record_template, template(1))

    duplicate = await database.write(record_template, template(2))
    in_german = await database.write(record_template, template(3, draft(language_code="de")))
    elsewhere = await database.write(record_template, template(4, business_account_id="1000000000000002"))

    assert (duplicate, in_german, elsewhere) == (False, True, True)


async def test_templates_of_a_business_account_are_listed_newest_first(database: Database) -> None:
    for number in (1, 3, 2):
        await database.write(record_template, template(number, draft(element_name=f"t{number}")))

    listed = await database.read(find_templates, PARTNER.id, ACCOUNT.id, TemplateFilter())

    assert [row.id for row in listed] == [id_number(3), id_number(2), id_number(1)]
    another = await database.read(find_templates, PARTNER.id + 1, ACCOUNT.id, TemplateFilter())
    assert another == []


async def test_template_is_found_by_the_operators_id_or_by_its_name(database: Database) -> None:
    original = template()
    await database.write(record_template, original)
    by_name = (ACCOUNT.id, "77", "order_ready", "en_US")

    result = await database.read(find_operator_template, *by_name)
    assert result == original

    def set_operator_id(connection: Connection) -> None:
        change_template(connection, original.id, operator_template_id="77", status="APPROVED")

    await database.write(set_operator_id)
    by_id = await database.read(find_operator_template, ACCOUNT.id, "77", "renamed", "xx")
    assert by_id == replace(original, operator_template_id="77", status=TemplateStatus.APPROVED)
    unknown = (ACCOUNT.id, "78", "another", "en_US")
    assert await database.read(find_operator_template, *unknown) is None


def subscription(**changes: Any) -> Subscription:
    defaults: dict[str, Any] = {
        "id": "",
        "partner_id": PARTNER.id,
        "app_id": APP.id,
        "tag": "main",
        "url": "https://acme.test/hook",
        "version": 2,
        "modes": ("SENT", "READ"),
        "created_on_ms": AT_MS,
        "modified_on_ms": AT_MS,
    }
    return Subscription(**(defaults | changes))


async def test_subscription_is_read_back_with_its_headers_which_are_stored_sealed(database: Database) -> None:
    meta = '{"headers":{"X-Secret":"hush-hush"}}'
    original = subscription(meta=meta, headers={"X-Secret": "hush-hush"})

    new_id = await database.write(add_subscription, original, seal, 5)

    listed = await database.read(list_app_subscriptions, APP.id, PARTNER.id, unseal)
    assert listed == [replace(original, id=str(new_id))]

    def sealed(connection: Connection) -> bytes:
        return connection.execute(select(subscriptions.c.encrypted_meta)).scalar_one()

    assert b"hush" not in await database.read(sealed)


async def test_tag_is_unique_and_the_number_of_subscriptions_is_bounded(database: Database) -> None:
    await database.write(add_subscription, subscription(), seal, 2)

    with pytest.raises(DuplicateTag):
        await database.write(add_subscription, subscription(), seal, 2)
    await database.write(add_subscription, subscription(tag="second"), seal, 2)
    with pytest.raises(TooManySubscriptions):
        await database.write(add_subscription, subscription(tag="third"), seal, 2)


async def test_deleting_removes_only_the_partners_own_subscriptions(database: Database) -> None:
    await database.write(add_subscription, subscription(), seal, 5)
    await database.write(add_subscription, subscription(tag="second"), seal, 5)

    by_another = await database.write(delete_subscriptions, APP.id, PARTNER.id + 1)
    by_id = await database.write(delete_subscriptions, APP.id, PARTNER.id, "1")
    rest = await database.write(delete_subscriptions, APP.id, PARTNER.id)

    assert (by_another, by_id, rest) == (0, 1, 1)


async def test_partner_is_read_back_as_it_was(database: Database) -> None:
    await database.write(stored.add_partner, PARTNER, "hash", AT_MS)
    for name, expires_on_ms in (("fresh", AT_MS + 10), ("stale", AT_MS)):
        await database.write(add_credential, SECRET, PARTNER.id, name, AT_MS, "", expires_on_ms)

    record = await database.read(stored.find_login_record, PARTNER.email.upper(), AT_MS + 5)

    assert record == stored.LoginRecord(PARTNER, "hash", password_changed=False, secret_hashes=frozenset({"fresh"}))
    assert await database.write(stored.add_partner, replace(PARTNER, id=8), "h", 0) is None


async def test_api_key_is_revoked_by_its_id_for_its_partner_only(database: Database) -> None:
    await database.write(add_credential, KEY, PARTNER.id, "ab" * 32, AT_MS, "shop")
    await database.write(add_credential, KEY, PARTNER.id, "cd" * 32, AT_MS + 1, "till")

    listed = await database.read(list_credentials, KEY, PARTNER.id)
    by_another = await database.write(revoke_credential, KEY, PARTNER.id + 1, listed[0].id)
    by_itself = await database.write(revoke_credential, KEY, PARTNER.id, listed[0].id)

    assert [(key.id, key.name) for key in listed] == [("ab" * 8, "shop"), ("cd" * 8, "till")]
    assert (by_another, by_itself) == (None, 0)
    assert [key.name for key in await database.read(list_credentials, KEY, PARTNER.id)] == ["till"]


async def test_partner_tokens_are_deleted_together_and_only_the_partners_own(database: Database) -> None:
    for name, partner_id in (("one", PARTNER.id), ("two", PARTNER.id), ("other", PARTNER.id + 1)):
        await database.write(stored.add_partner_token, name, partner_id, AT_MS, AT_MS + 10)

    ended = await database.write(stored.delete_partner_tokens, PARTNER.id)

    assert ended == 2
    assert await database.read(stored.partner_of_token, "one") is None
    assert await database.read(stored.partner_of_token, "other") == (PARTNER.id + 1, AT_MS + 10)


async def test_operator_account_is_read_back_and_its_secrets_are_sealed(database: Database) -> None:
    await database.write(stored.put_operator_account, OPERATOR, seal)

    account = await database.read(stored.operator_account_by_id, OPERATOR.id, unseal)

    assert account == OPERATOR

    def read_row(connection: Connection) -> str:
        return str(connection.execute(select(operator_accounts)).one())

    row_text = await database.read(read_row)
    for secret in (OPERATOR["token"], OPERATOR["app_secret"], OPERATOR["verify_token"]):
        assert secret not in row_text
    other_key = SecretBox("another instance key of forty characters")
    with pytest.raises(WrongInstanceKey):
        await Directory(database, other_key, ManualClock()).operator_account(OPERATOR.id)


async def test_source_names_exactly_one_app(database: Database) -> None:
    added = await database.write(stored.add_app, APP, "hash")
    duplicate = await database.write(stored.add_app, replace(APP, id=id_number(2), partner_id=8), "hash2")

    assert (added, duplicate) == (True, False)
    assert await database.read(stored.app_by_source, PARTNER.id, APP.phone_number) == APP
    assert await database.read(stored.app_by_source, 8, APP.phone_number) is None


async def test_recipient_is_the_same_by_either_of_its_identifiers(database: Database) -> None:
    by_number = await database.write(get_or_create_recipient, APP, ANN)
    by_both = await database.write(get_or_create_recipient, APP, ANN, "user-1")
    by_user = await database.write(get_or_create_recipient, APP, None, "user-1")
    another = await database.write(get_or_create_recipient, APP, None, "user-2")

    def count(connection: Connection) -> int:
        return len(connection.execute(select(recipients.c.id)).all())

    assert by_number == by_both == by_user != another
    assert await database.read(count) == 2


async def test_webhook_item_is_stored_once(database: Database) -> None:
    def new_item(key: str) -> WebhookItem:
        return WebhookItem(key, "number", "number ann", "0.0", b"{}")

    def webhook(number: int, *keys: str, account: str = "main") -> InboundWebhook:
        return InboundWebhook(id_number(number), account, AT_MS, b"{}", tuple(map(new_item, keys)))

    first = await database.join(record_webhooks, webhook(1, "a", "b", "a"))
    second = await database.join(record_webhooks, webhook(2, "b", "c"))
    elsewhere = await database.join(record_webhooks, webhook(3, "a", account="other"))

    assert (first, second, elsewhere) == (2, 1, 1)
    assert await database.read(count_jobs_by_state, QueueName.WEBHOOKS) == {JobState.OPEN: 4}
    assert len(await database.read(items_by_ids, set(range(9)))) == 4  # numbers may have gaps
    assert await database.read(_dedupe_keys) == ["a", "a", "b", "c"]


def _dedupe_keys(connection: Connection) -> list[str]:
    query = select(webhook_items.c.dedupe_key).order_by(webhook_items.c.dedupe_key)
    return list(connection.execute(query).scalars())


async def test_sequence_numbers_count_up_by_subscription_and_recipient(database: Database) -> None:
    first = await database.write(reserve_sequence_numbers, {(1, "ann"): 2, (1, "ben"): 1})
    second = await database.write(reserve_sequence_numbers, {(1, "ann"): 3, (2, "ann"): 1})

    assert first == {(1, "ann"): 2, (1, "ben"): 1}
    assert second == {(1, "ann"): 5, (2, "ann"): 1}


async def test_directory_caches_hits_for_five_seconds_and_misses_never(database: Database) -> None:
    clock = ManualClock()
    directory = Directory(database, SEALS, clock)
    before = await directory.partner_of_api_key("key")
    await database.write(add_credential, KEY, PARTNER.id, "key", AT_MS)
    hit = await directory.partner_of_api_key("key")
    await database.write(revoke_api_key, "key")
    still = await directory.partner_of_api_key("key")

    clock.advance(ms=5_000)

    assert (before, hit, still) == (None, PARTNER.id, PARTNER.id)
    assert await directory.partner_of_api_key("key") is None


async def test_directory_drops_its_cache_when_it_is_invalidated(database: Database) -> None:
    directory = Directory(database, SEALS, ManualClock())
    await database.write(add_credential, KEY, PARTNER.id, "key", AT_MS)
    await directory.partner_of_api_key("key")
    await database.write(revoke_api_key, "key")

    directory.invalidate()

    assert await directory.partner_of_api_key("key") is None
