"""Messages that hold one-time codes, found by the category of their template; on each engine."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from tests.support.builders import APP, AT_MS, PARTNER, draft, message, template
from waypost.domain.message import Content, Message, Passthrough, TemplateSend
from waypost.domain.session_messages.plain import SessionText
from waypost.domain.templates.template import Category
from waypost.store.database import Database
from waypost.store.encoding import app_columns, template_columns
from waypost.store.messages.messages import callback_holds_code, find_ids_with_codes, record_messages
from waypost.store.messages.search import MessageFilter, search_messages
from waypost.store.tables import apps, templates

CODE = "730519"
SIGN_IN = template(1, draft(element_name="sign_in"), category=Category.AUTHENTICATION)
OFFER = template(2, draft(element_name="offer"))


def template_passthrough(name: Any) -> Passthrough:
    return Passthrough("template", {"name": name, "values": [CODE]})


CONTENTS: dict[str, tuple[Content, bool]] = {
    "text": (SessionText(CODE), False),
    "of a code": (TemplateSend(SIGN_IN.id, (CODE,)), True),
    "of an offer": (TemplateSend(OFFER.id, (CODE,)), False),
    "passed with a code": (template_passthrough("sign_in"), True),
    "passed with an offer": (template_passthrough("offer"), False),
    "passed with an unknown name": (template_passthrough("elsewhere"), True),
    "passed without a name": (template_passthrough(7), True),
}


def _add(connection: Connection) -> None:
    connection.execute(insert(apps), [app_columns(APP, "hash")])
    connection.execute(insert(templates), [template_columns(row) for row in (SIGN_IN, OFFER)])


@pytest.fixture
async def messages(database: Database) -> dict[str, Message]:
    await database.write(_add)
    messages = {
        name: replace(message(number), content=content)
        for number, (name, (content, _)) in enumerate(CONTENTS.items(), 1)
    }
    await database.join_all(record_messages, list(messages.values()))
    return messages


async def test_codes_are_recognized_by_the_category(database: Database, messages: dict[str, Message]) -> None:
    ids = [item.id for item in messages.values()]

    codes = await database.read(find_ids_with_codes, PARTNER.id, ids)

    assert {name for name, item in messages.items() if item.id in codes} == {
        name for name, (_, holds_code) in CONTENTS.items() if holds_code
    }
    assert await database.read(find_ids_with_codes, PARTNER.id + 1, ids) == set()


async def test_message_with_a_code_is_not_found_by_its_text(database: Database, messages: dict[str, Message]) -> None:
    text_filter = MessageFilter(text=CODE, from_ms=AT_MS - 1)

    page = await database.read(search_messages, PARTNER.id, APP.id, text_filter)

    assert {row["id"] for row in page.rows} == {
        messages[name].id for name, (_, holds_code) in CONTENTS.items() if not holds_code
    }


async def test_callback_that_names_a_message_with_a_code_holds_the_code(
    database: Database, messages: dict[str, Message]
) -> None:
    def callback_row(body: bytes) -> dict[str, Any]:
        return {"partner_id": PARTNER.id, "message_id": None, "body": body}

    for name, (_, holds_code) in CONTENTS.items():
        body = b'{"payload":{"context":{"gsId":"%s"}}}' % messages[name].id.encode()
        assert await database.read(callback_holds_code, callback_row(body)) is holds_code, name
    assert await database.read(callback_holds_code, callback_row(b"no JSON")) is True
