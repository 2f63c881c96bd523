"""Every route that takes a key: one effect and one answer, however often and however close together it is asked."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from sqlalchemy import Connection, Table, func, select

from tests.support.pipeline import Answer
from tests.support.wire_cases import Part, Step
from waypost.api.route import IdempotencyMode, RouteRow
from waypost.api.routes import ROUTES
from waypost.store.tables import app_keys, apps, idempotency_keys, media, messages, queue_jobs, subscriptions, templates

if TYPE_CHECKING:
    from tests.wire.conftest import World, Worlds

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYED: Final = [row for row in ROUTES if row.idempotency is not IdempotencyMode.NO_KEY]


@dataclass(frozen=True)
class Good:
    """A request that is carried out, the same with another body, and where its effect can be counted."""

    credential: tuple[str, str]
    table: Table | None
    form: dict[str, str] | None = None
    other: dict[str, str] | None = None
    parts: list[Part] | None = None
    other_parts: list[Part] | None = None
    status: int = 200
    app: str = "app_id"


KEY = ("apikey", "{api_key}")
APP_TOKEN = ("Authorization", "{app_token}")
PARTNER_TOKEN = ("Authorization", "{partner_token}")
DIRECT = ("Authorization", "{direct_app_token}")
TEXT = {
    "channel": "whatsapp",
    "source": "{source}",
    "destination": "15551234567",
    "src.name": "{app_name}",
    "message": '{"type":"text","text":"Hello"}',
}
BYE = TEXT | {"message": '{"type":"text","text":"Bye"}'}
SEND = {name: value for name, value in TEXT.items() if name != "message"} | {
    "template": '{"id":"{template_id}","params":["Ann"]}'
}
SEND_BEN = SEND | {"destination": "15551234568"}
DRAFT = {
    "elementName": "made_once",
    "category": "UTILITY",
    "templateType": "TEXT",
    "vertical": "v",
    "content": "Hi",
    "example": "Hi",
}
IN_FRENCH = DRAFT | {"languageCode": "fr"}
PASSTHROUGH = {
    "messaging_product": "whatsapp",
    "recipient_type": "individual",
    "to": "15551234567",
    "type": "text",
    "text": '{"body":"Hello"}',
}
PICTURE = [
    Part(name="file_type", text="image/png"),
    Part(name="file", sample="png", file_name="a.png", content_type="image/png"),
]
RENAMED = [PICTURE[0], msgspec.structs.replace(PICTURE[1], file_name="b.png")]
HEARING = {"modes": "SENT", "tag": "once", "url": "{receiver}", "version": "2"}
READY = {
    "elementName": "made_once_by_them",
    "category": "UTILITY",
    "languageCode": "en_US",
    "libraryTemplateName": "order_on_its_way",
}
FLOW = {"name": "Once", "categories": '["SIGN_UP"]'}

# fmt: off
GOOD: Final = {
    "POST /partner/app/{app_id}/token":                Good(PARTNER_TOKEN, app_keys, {"name": "a", "expiry": "{in_an_hour}"}, {"name": "b", "expiry": "{in_an_hour}"}),
    "POST /partner/app/{app_id}/apikey":               Good(PARTNER_TOKEN, app_keys, {"name": "a"}, {"name": "b"}),
    "POST /partner/app/{app_id}/templates":            Good(APP_TOKEN, templates, DRAFT, IN_FRENCH),
    "POST /wa/app/{app_id}/template":                  Good(KEY, templates, DRAFT, IN_FRENCH),
    "POST /partner/app/{app_id}/template/metalibrary": Good(DIRECT, templates, READY, READY | {"elementName": "b"}, app="direct_app_id"),
    "POST /wa/api/v1/msg":                             Good(KEY, messages, TEXT, BYE),
    "POST /sm/api/v1/msg":                             Good(KEY, messages, TEXT, BYE),
    "POST /sm/api/v1/template/msg":                    Good(KEY, messages, SEND, SEND_BEN),
    "POST /partner/app/{app_id}/msg":                  Good(APP_TOKEN, messages, TEXT, BYE),
    "POST /wa/api/v1/template/msg":                    Good(KEY, messages, SEND, SEND_BEN),
    "POST /partner/app/{app_id}/template/msg":         Good(APP_TOKEN, messages, SEND, SEND_BEN),
    "POST /wa/app/{app_id}/template/v1/msg":           Good(KEY, messages, SEND, SEND_BEN),
    "POST /partner/app/{app_id}/v3/message":           Good(APP_TOKEN, messages, PASSTHROUGH, PASSTHROUGH | {"to": "15551234568"}),
    "POST /partner/app/{app_id}/upload/media":         Good(APP_TOKEN, media, parts=PICTURE, other_parts=RENAMED),
    "POST /partner/app/{app_id}/media":                Good(APP_TOKEN, media, parts=PICTURE, other_parts=RENAMED),
    "POST /wa/{app_id}/wa/media":                      Good(KEY, media, parts=PICTURE, other_parts=RENAMED),
    "POST /wa/{app_id}/wa/media/v2":                   Good(KEY, media, parts=PICTURE, other_parts=RENAMED),
    "POST /partner/app/{app_id}/subscription":         Good(APP_TOKEN, subscriptions, HEARING, HEARING | {"tag": "b"}),
    "POST /wa/app/{app_id}/subscription":              Good(KEY, subscriptions, HEARING, HEARING | {"tag": "b"}),
    "POST /partner/app":                               Good(PARTNER_TOKEN, apps, {"name": "OnceShop"}, {"name": "TwiceShop"}),
    "POST /partner/app/{app_id}/flows":                Good(DIRECT, None, FLOW, FLOW | {"name": "Twice"}, status=201, app="direct_app_id"),
}
# fmt: on


def asking(row: RouteRow, *, other: bool = False, key: str | None = "one") -> Step:
    """A good request to a route, under a key."""
    good = GOOD[row.name]
    headers = dict([good.credential])
    if key is not None:
        headers["Idempotency-Key"] = key
    return Step(
        method=row.method,
        path=row.path.replace("{app_id}", f"{{{good.app}}}"),
        headers=headers,
        form=good.other if other else good.form,  # pyright: ignore[reportArgumentType]
        parts=good.other_parts if other else good.parts,
    )


async def counted(world: "World", row: RouteRow) -> dict[str, int]:
    """How many rows there are: of what the route makes, of entries, and of keys."""
    tables = [one for one in (GOOD[row.name].table, queue_jobs, idempotency_keys) if one is not None]

    def look(connection: Connection) -> dict[str, int]:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
        }

    return await world.database.read(look)


def added(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in before}


def documented(answer: Answer) -> dict[str, Any]:
    """Its headers but the time."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    del headers["date"]
    return headers


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_second_request_is_answered_byte_for_byte_and_does_nothing(row: RouteRow, worlds: "Worlds") -> None:
    world = worlds.lenient
    values = await world.values()
    first = await world.ask(asking(row), values)
    assert first.status == GOOD[row.name].status, first.raw
    before = await counted(world, row)

    second = await world.ask(asking(row), values)

    assert (second.status, second.raw) == (first.status, first.raw)
    assert documented(second) == documented(first) | {"idempotent-replayed": "true"}
    assert await counted(world, row) == before


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_another_body_is_refused_and_does_nothing(row: RouteRow, worlds: "Worlds") -> None:
    world = worlds.lenient
    values = await world.values()
    first = await world.ask(asking(row), values)
    before = await counted(world, row)

    other = await world.ask(asking(row, other=True), values)
    again = await world.ask(asking(row), values)

    assert other.status == 422
    assert again.raw == first.raw
    assert await counted(world, row) == before


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_of_many_at_once_one_has_an_effect(row: RouteRow, worlds: "Worlds") -> None:
    world = worlds.lenient
    values = await world.values()
    begun = await counted(world, row)
    await world.ask(asking(row, other=True, key="two"), values)
    of_one = added(begun, await counted(world, row))
    before = await counted(world, row)

    answers = await asyncio.gather(*(world.ask(asking(row), values) for _ in range(5)))

    told = {(answer.status, answer.raw) for answer in answers if answer.status != 409}
    assert {status for status, _ in told} == {GOOD[row.name].status}
    assert len(told) == 1
    assert added(before, await counted(world, row)) == of_one
    assert of_one[idempotency_keys.name] == 1
    again = await world.ask(asking(row), values)
    assert (again.status, again.raw) in told


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_key_of_a_refused_request_is_free(row: RouteRow, worlds: "Worlds") -> None:
    """The body cannot be read at first; the same key carries the mended request."""
    world = worlds.lenient
    values = await world.values()
    before = await counted(world, row)
    good = asking(row)
    headers = good.headers | {"Content-Type": "text/plain"}
    broken = msgspec.structs.replace(good, headers=headers, body="a", form=None, parts=None)

    refused = await world.ask(broken, values)

    assert refused.status == 400, refused.raw
    assert await counted(world, row) == before
    mended = await world.ask(good, values)
    assert mended.status == GOOD[row.name].status
    assert "Idempotent-Replayed" not in mended.headers


async def test_every_route_that_takes_a_key_is_tried() -> None:
    assert {row.name for row in KEYED} == set(GOOD)


async def test_every_post_that_makes_or_sends_something_takes_a_key() -> None:
    """All others say, set or refuse: asked twice they do what they did."""
    others = {row.path.rpartition("/")[2] for row in ROUTES if row.method == "POST"} - {
        row.path.rpartition("/")[2] for row in KEYED
    }

    assert others == {
        "login",  # a token is made, but nobody is known yet whose key it could be
        "revoke", "analytics", "buttonclick", "event", "appLink", "{app_name}", "transfer", "enable",
        "block", "unblock", "component", "publish", "deprecate", "check",
    }  # fmt: skip
