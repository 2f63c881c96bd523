"""Texts of messages: shown as they were written, and never JSON that was meant to be read."""

import json
from typing import Any, Final

import pytest

from waypost.domain.errors import ApiError
from waypost.domain.session_messages.choices import SessionList, SessionQuickReply
from waypost.domain.session_messages.plain import SessionText
from waypost.wire.forms import Form
from waypost.wire.message_forms import is_about_products, read_session_message, read_template_send

MESSAGE: Final = '{"type":"text","text":"Hi"}'
BOM: Final = "\ufeff"
MOJIBAKE: Final = "\u00ef\u00bb\u00bf"


def session_message(text: str) -> Any:
    return read_session_message(Form([("message", text)]))


@pytest.mark.parametrize(
    "text", [f"{BOM}{MESSAGE}", f"\u200b{MESSAGE}", f" \u2060{BOM} {MESSAGE}\u200b", f"{MESSAGE}\n", f"\u00a0{MESSAGE}"]
)
def test_json_between_invisible_characters_is_read(text: str) -> None:
    assert session_message(text) == SessionText("Hi")


def test_kind_of_a_message_is_found_behind_a_byte_order_mark() -> None:
    assert is_about_products(Form([("message", f'{BOM}{{"type":"product_details"}}')]))


# fmt: off
MEANT_AS_JSON: Final = (  # what encoders and shells make of an object by mistake
    f"b'{MESSAGE}'", f'b"{MESSAGE}"', f"'{MESSAGE}'", f"`{MESSAGE}`", f"\"\"\"{MESSAGE}\"\"\"", json.dumps(MESSAGE),
    json.dumps(json.dumps(MESSAGE)), f"{BOM}b'{MESSAGE}'",
    "{'type': 'text', 'text': 'Hi'}", "[{'type': 'text'}]", '{"type":"text","text":"Hi",}', '{"type":"text","text":"Hi"',
    '{\u200b"type":"text","text":"Hi"}', '{"type":"text"} {"type":"text"}', '{type: "text", text: "Hi"}', "{type:'text'}",
    r'{\"type\":\"text\"}', "{&quot;type&quot;:&quot;text&quot;}", "{&#34;type&#34;:1}", "%7B%22type%22%3A%22text%22%7D",
    "%257B%2522type%22", "{\u201ctype\u201d:\u201ctext\u201d}", "[object Object]", f"{MOJIBAKE}{MESSAGE}", f"message={MESSAGE}",
    f"={MESSAGE}", "{}", "[]", '["Hi"]', "[1]", "{", "null", "true", '"Hi"',
)
PLAIN: Final = (  # what a person may write
    "{name}, hello", "{ smile }", "{{1}} is yours", "[Offer] Only today", "[1] Yes", "{1} Yes", "b'coz I said so", "'tis {so}",
    "Price: {12}", "50% off", "%", "{Sale: today}", "7.50", "1e3", "-0", "\ufeffHello", "Hello {\"type\": 1} is what JSON looks like",
    '"Soon" is what she said',
)
# fmt: on


@pytest.mark.parametrize("text", MEANT_AS_JSON)
def test_text_that_was_meant_as_json_is_an_error_and_is_never_sent(text: str) -> None:
    with pytest.raises(ApiError, match=r"must be|required"):
        session_message(text)


@pytest.mark.parametrize("text", PLAIN)
def test_text_that_begins_like_json_and_is_none_is_sent_as_it_is(text: str) -> None:
    assert session_message(text) == SessionText(text)


def test_parameters_and_postback_texts_show_a_number_as_it_was_written() -> None:
    form = Form(
        [
            ("template", '{"id": "a", "params": [7.50, 1e3, 3.14159265358979323846, -0, 5, true, null, "1.10"]}'),
            ("postbackTexts", '[{"index": 0, "text": 7.50}, {"index": 1.0, "text": "1.10"}]'),
        ]
    )

    send = read_template_send(form)

    assert send.params == ("7.50", "1e3", "3.14159265358979323846", "-0", "5", "true", "", "1.10")
    assert send.postback_texts == {0: "7.50", 1: "1.10"}


def test_postback_texts_within_a_message_and_its_cards_show_a_number_as_it_was_written() -> None:
    message = '{"type":"image","image":{"id":"1","filename":1.10},"postbackTexts":[{"index":0,"text":1.20}]}'
    cards = (
        '{"type":"carousel","cardHeaderType":"IMAGE","cards":[{"id":"1","postbackTexts":[{"index":0,"text":1.30}]}]}'
    )

    sends = [read_template_send(Form([("template", '{"id":"a"}'), ("message", text)])) for text in (message, cards)]

    assert (sends[0].postback_texts, sends[0].file_name) == ({0: "1.20"}, "1.10")
    assert [card.postback_texts for card in sends[1].cards] == [{0: "1.30"}]


def test_session_messages_show_a_number_as_it_was_written() -> None:
    reply = session_message(
        '{"type":"quick_reply","msgid":1.0,"content":{"type":"text","header":2.50,"text":7.50,"caption":1e3},'
        '"options":[{"title":1.10,"postbackText":2.20}]}'
    )
    options = session_message(
        '{"type":"list","title":0.10,"body":7.50,"globalButtons":[{"title":1.0}],'
        '"items":[{"title":2.0,"options":[{"title":3.0,"description":4.0,"postbackText":5.0}]}]}'
    )

    assert isinstance(reply, SessionQuickReply)
    assert (reply.header, reply.text, reply.footer, reply.sender_id) == ("2.50", "7.50", "1e3", "1.0")
    assert [(choice.title, choice.postback_text) for choice in reply.choices] == [("1.10", "2.20")]
    assert isinstance(options, SessionList)
    assert (options.title, options.body) == ("0.10", "7.50")
    assert session_message('{"type":"text","text":7.50}') == SessionText("7.50")
