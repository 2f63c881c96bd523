"""Bodies and requests are stored compressed, and are read as they were."""

import hashlib
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import APP, AT_MS, PARTNER, id_number, message
from tests.support.store_statements import fetch_column
from waypost.domain.message import TemplateSend
from waypost.store.callbacks.callbacks import CallbackRow, callback_with_attempts, callbacks_by_ids, enqueue_callbacks
from waypost.store.console.trace import app_message_content, full_message_trace
from waypost.store.database import Database
from waypost.store.encoding import CALLBACK_BODIES, REQUESTS, TextCompressor, decode_content, encode_content
from waypost.store.messages.messages import record_messages
from waypost.store.tables import callbacks, messages

OUR_ID: Final = id_number(1)
DELIVERED_V2: Final = (
    b'{"app":"AcmeShop","phone":"15550001111","timestamp":1760000000000,"version":2,"type":"message-event","payload":'
    b'{"id":"wamid.HBgLMTU1NTEyMzQ1NjcVAgARGBI5","gsId":"01990000-0000-7000-8000-000000000001","type":"delivered",'
    b'"destination":"15551234567","payload":{"ts":1760000000}}}'
)
DELIVERED_V3: Final = (
    b'{"object":"whatsapp_business_account","entry":[{"id":"1000000000000001","changes":[{"field":"messages","value":'
    b'{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550001111","phone_number_id":'
    b'"2000000000000002"},"statuses":[{"id":"wamid.HBgLMTU1NTEyMzQ1NjcVAgARGBI5","status":"delivered","timestamp":'
    b'"1760000000","recipient_id":"15551234567","gs_id":"01990000-0000-7000-8000-000000000001"}]}}]}],'
    b'"gs_app_id":"01990000-0000-7000-8000-00000000000a"}'
)
FORM: Final = (
    "channel=whatsapp&source=15550001111&destination=15551234567&src.name=AcmeShop&template=%7B%22id%22%3A%22"
    "01990000-0000-7000-8000-00000000000b%22%2C%22params%22%3A%5B%22Ann%22%2C%224711%22%5D%7D"
)
# fmt: off
COMPRESSORS: Final = [
    # compressor      the digest of its dictionary, on which stored texts depend
    (CALLBACK_BODIES, "24dde82e3538fe26"),
    (REQUESTS,        "dd7c14b29745bee4"),
]
# fmt: on


@pytest.mark.parametrize(("compressor", "digest"), COMPRESSORS)
def test_dictionary_of_stored_texts_has_not_changed(compressor: TextCompressor, digest: str) -> None:
    assert hashlib.sha256(compressor.mark + compressor.dictionary).hexdigest()[:16] == digest


@pytest.mark.parametrize("compressor", [CALLBACK_BODIES, REQUESTS])
@given(
    st.lists(st.one_of(st.binary(max_size=9), st.sampled_from([DELIVERED_V2, DELIVERED_V3, FORM.encode(), b"\x01"])))
)
def test_every_text_is_read_as_it_was(compressor: TextCompressor, parts: list[bytes]) -> None:
    text = b"".join(parts)

    stored = compressor.compress(text)

    assert compressor.decompress(stored) == text
    assert len(stored) <= len(text) or text.startswith(compressor.mark)


def test_text_of_before_is_read_as_it_is() -> None:
    for compressor in (CALLBACK_BODIES, REQUESTS):
        for text in (b"", b"{}", DELIVERED_V2, DELIVERED_V3, FORM.encode()):
            assert compressor.decompress(text) == text


@pytest.mark.parametrize(("body", "at_most"), [(DELIVERED_V2, 75), (DELIVERED_V3, 110)], ids=["version 2", "version 3"])
async def test_body_of_a_callback_is_stored_short_and_read_whole(database: Database, body: bytes, at_most: int) -> None:
    row = CallbackRow(id_number(2), PARTNER.id, APP.id, 1, "9", 7, OUR_ID, "delivered", body, AT_MS)

    await database.write(enqueue_callbacks, [row], [AT_MS])

    [stored] = await fetch_column(database, callbacks.select().with_only_columns(callbacks.c.body))
    assert len(stored) <= at_most
    assert await database.read(callbacks_by_ids, {row.id}) == {row.id: row}
    shown = await database.read(callback_with_attempts, row.id)
    assert shown is not None
    assert shown["body"] == body.decode()


async def test_request_is_stored_short_and_read_whole(database: Database) -> None:
    content = TemplateSend("01990000-0000-7000-8000-00000000000b", ("Ann", "4711"))
    await database.join(record_messages, message(1, content, request=FORM))

    [stored] = await fetch_column(database, messages.select().with_only_columns(messages.c.compressed_request))
    trace = await database.read(full_message_trace, OUR_ID)
    found = await database.read(app_message_content, PARTNER.id, APP.id, OUR_ID)

    assert len(stored) <= 110
    assert trace is not None
    assert trace["request"] == FORM
    assert found is not None
    assert found[0].request == FORM


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        (TemplateSend("t"), b'{"template_id":"t"}'),
        (TemplateSend("t", ("a",), {0: "b"}), b'{"template_id":"t","params":["a"],"postback_texts":{"0":"b"}}'),
        (
            TemplateSend("t", file_name="f"),
            b'{"template_id":"t","params":[],"postback_texts":null,"media_kind":null,"media":{"id":null,"link":null},'
            b'"file_name":"f"}',
        ),
    ],
)
def test_last_members_of_a_template_that_have_their_defaults_are_not_stored(content: Any, stored: bytes) -> None:
    assert encode_content(content) == stored
    assert decode_content("template", stored) == content


def test_text_like_the_end_of_a_content_is_kept() -> None:
    content = TemplateSend("t", ("a", ',"sections":[]}'), expiration_ms=5)

    assert decode_content("template", encode_content(content)) == content
