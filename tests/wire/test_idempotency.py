"""Every route that accepts an idempotency key: repeated and concurrent requests have one effect and one response."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from sqlalchemy import Connection, Table, func, select

from tests.support.pipeline import HttpResponse
from tests.support.wire_cases import FormPart, Step, read_cases, value_at
from waypost.api.route import IdempotencyMode, RouteRow
from waypost.api.routes import ROUTES
from waypost.store.tables import app_keys, apps, idempotency_keys, media, messages, queue_jobs, subscriptions, templates

if TYPE_CHECKING:
    from tests.wire.conftest import WireService, WireServices

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYED: Final = [row for row in ROUTES if row.idempotency is not IdempotencyMode.NO_KEY]


@dataclass(frozen=True)
class ValidRequest:
    """A valid request, the same with another body, and the table in which its effect is counted.

    `setup` is the wire case whose earlier steps come first; empty: none.
    """

    credential: tuple[str, str]
    table: Table | None
    form: dict[str, str] | None = None
    other: dict[str, str] | None = None
    parts: list[FormPart] | None = None
    other_parts: list[FormPart] | None = None
    status: int = 200
    app: str = "app_id"
    setup: str = ""


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
OFFER = PASSTHROUGH | {"type": "template", "template": '{"name":"offer","language":{"code":"en_US"}}'}
PICTURE = [
    FormPart(name="file_type", text="image/png"),
    FormPart(name="file", sample="png", file_name="a.png", content_type="image/png"),
]
RENAMED = [PICTURE[0], msgspec.structs.replace(PICTURE[1], file_name="b.png")]
SUBSCRIPTION = {"modes": "SENT", "tag": "once", "url": "{receiver}", "version": "2"}
LIBRARY_TEMPLATE = {
    "elementName": "made_once_by_them",
    "category": "UTILITY",
    "languageCode": "en_US",
    "libraryTemplateName": "order_on_its_way",
}
GROUP = {"messaging_product": "whatsapp", "subject": "Once"}
CONFIGURATION = {"configuration_name": "once", "provider_name": "razorpay"}
REFUND = {
    "reference_id": "order-7",
    "payment_config_id": "payment_config_1",
    "amount": '{"currency":"INR","value":100,"offset":100}',
}
LESS = REFUND | {"amount": '{"currency":"INR","value":50,"offset":100}'}
FLOW = {"name": "Once", "categories": '["SIGN_UP"]'}

# fmt: off
VALID_REQUESTS: Final = {
    "POST /partner/app/{app_id}/token":                ValidRequest(("Authorization", "{universal_token}"), app_keys, {"name": "a", "expiry": "{in_an_hour}"}, {"name": "b", "expiry": "{in_an_hour}"}, setup="mint_token/response"),
    "POST /partner/app/{app_id}/apikey":               ValidRequest(PARTNER_TOKEN, app_keys, {"name": "a"}, {"name": "b"}),
    "POST /partner/app/{app_id}/templates":            ValidRequest(APP_TOKEN, templates, DRAFT, IN_FRENCH),
    "POST /wa/app/{app_id}/template":                  ValidRequest(KEY, templates, DRAFT, IN_FRENCH),
    "POST /partner/app/{app_id}/template/metalibrary": ValidRequest(DIRECT, templates, LIBRARY_TEMPLATE, LIBRARY_TEMPLATE | {"elementName": "b"}, app="direct_app_id"),
    "POST /wa/api/v1/msg":                             ValidRequest(KEY, messages, TEXT, BYE),
    "POST /sm/api/v1/msg":                             ValidRequest(KEY, messages, TEXT, BYE),
    "POST /sm/api/v1/template/msg":                    ValidRequest(KEY, messages, SEND, SEND_BEN),
    "POST /partner/app/{app_id}/msg":                  ValidRequest(APP_TOKEN, messages, TEXT, BYE),
    "POST /wa/api/v1/template/msg":                    ValidRequest(KEY, messages, SEND, SEND_BEN),
    "POST /partner/app/{app_id}/template/msg":         ValidRequest(APP_TOKEN, messages, SEND, SEND_BEN),
    "POST /wa/app/{app_id}/template/v1/msg":           ValidRequest(KEY, messages, SEND, SEND_BEN),
    "POST /partner/app/{app_id}/v3/message":           ValidRequest(APP_TOKEN, messages, PASSTHROUGH, PASSTHROUGH | {"to": "15551234568"}),
    "POST /partner/app/{app_id}/onboarding/marketing/msg": ValidRequest(DIRECT, messages, OFFER, OFFER | {"to": "15551234568"}, app="direct_app_id"),
    "POST /partner/app/{app_id}/v3/mmlite/message":    ValidRequest(DIRECT, messages, OFFER, OFFER | {"to": "15551234568"}, app="direct_app_id"),
    "POST /partner/app/{app_id}/upload/media":         ValidRequest(APP_TOKEN, media, parts=PICTURE, other_parts=RENAMED),
    "POST /partner/app/{app_id}/media":                ValidRequest(APP_TOKEN, media, parts=PICTURE, other_parts=RENAMED),
    "POST /wa/{app_id}/wa/media":                      ValidRequest(KEY, media, parts=PICTURE, other_parts=RENAMED),
    "POST /wa/{app_id}/wa/media/v2":                   ValidRequest(KEY, media, parts=PICTURE, other_parts=RENAMED),
    "POST /partner/app/{app_id}/subscription":         ValidRequest(APP_TOKEN, subscriptions, SUBSCRIPTION, SUBSCRIPTION | {"tag": "b"}),
    "POST /wa/app/{app_id}/subscription":              ValidRequest(KEY, subscriptions, SUBSCRIPTION, SUBSCRIPTION | {"tag": "b"}),
    "POST /partner/app":                               ValidRequest(PARTNER_TOKEN, apps, {"name": "OnceShop"}, {"name": "TwiceShop"}),
    "POST /partner/app/{app_id}/flows":                ValidRequest(DIRECT, None, FLOW, FLOW | {"name": "Twice"}, app="direct_app_id"),
    "POST /partner/app/{app_id}/group":                ValidRequest(DIRECT, None, GROUP, GROUP | {"subject": "Twice"}, app="direct_app_id"),
    "POST /partner/app/{app_id}/payment/configuration": ValidRequest(DIRECT, None, CONFIGURATION, CONFIGURATION | {"configuration_name": "twice"}, app="direct_app_id"),
    "POST /partner/app/{app_id}/payments/refund":      ValidRequest(PARTNER_TOKEN, None, REFUND, LESS, app="direct_app_id", setup="refund_payment/response"),
}
# fmt: on


def build_request(row: RouteRow, *, other: bool = False, key: str | None = "one") -> Step:
    """Return a valid request to a route, with an idempotency key."""
    valid = VALID_REQUESTS[row.name]
    headers = dict([valid.credential])
    if key is not None:
        headers["Idempotency-Key"] = key
    return Step(
        method=row.method,
        path=row.path.replace("{app_id}", f"{{{valid.app}}}"),
        headers=headers,
        form=valid.other if other else valid.form,  # pyright: ignore[reportArgumentType]
        parts=valid.other_parts if other else valid.parts,
    )


async def prepared_values(service: "WireService", row: RouteRow) -> dict[str, str]:
    """Return the placeholders of a route's requests, once what the requests need is there."""
    values = await service.values()
    setup = VALID_REQUESTS[row.name].setup
    for step in read_cases()[setup].before if setup else ():
        response = await service.send_request(step, values)
        assert response.status == step.status, response.raw
        values |= {name: str(value_at(response.body, path)) for name, path in step.keep.items()}
    return values


async def count_rows(service: "WireService", row: RouteRow) -> dict[str, int]:
    """Count the rows of the route's table, of the queue, and of the idempotency keys."""
    tables = [table for table in (VALID_REQUESTS[row.name].table, queue_jobs, idempotency_keys) if table is not None]

    def count(connection: Connection) -> dict[str, int]:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
        }

    return await service.database.read(count)


def added(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in before}


def documented(response: HttpResponse) -> dict[str, Any]:
    """Return the headers of a response, without the date."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    del headers["date"]
    return headers


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_second_request_gets_the_same_bytes_and_has_no_effect(row: RouteRow, services: "WireServices") -> None:
    service = services.lenient
    values = await prepared_values(service, row)
    first = await service.send_request(build_request(row), values)
    assert first.status == VALID_REQUESTS[row.name].status, first.raw
    before = await count_rows(service, row)

    second = await service.send_request(build_request(row), values)

    assert (second.status, second.raw) == (first.status, first.raw)
    assert documented(second) == documented(first) | {"idempotent-replayed": "true"}
    assert await count_rows(service, row) == before


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_another_body_under_the_key_gets_422_and_has_no_effect(row: RouteRow, services: "WireServices") -> None:
    service = services.lenient
    values = await prepared_values(service, row)
    first = await service.send_request(build_request(row), values)
    before = await count_rows(service, row)

    other = await service.send_request(build_request(row, other=True), values)
    again = await service.send_request(build_request(row), values)

    assert other.status == 422
    assert again.raw == first.raw
    assert await count_rows(service, row) == before


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_one_of_many_concurrent_requests_has_an_effect(row: RouteRow, services: "WireServices") -> None:
    service = services.lenient
    values = await prepared_values(service, row)
    initial = await count_rows(service, row)
    await service.send_request(build_request(row, other=True, key="two"), values)
    single_effect = added(initial, await count_rows(service, row))
    before = await count_rows(service, row)

    responses = await asyncio.gather(*(service.send_request(build_request(row), values) for _ in range(5)))

    # Those that wait for another, and those beyond the rate of a route that allows fewer at once.
    outcomes = {(response.status, response.raw) for response in responses if response.status not in (409, 429)}
    assert {status for status, _ in outcomes} == {VALID_REQUESTS[row.name].status}
    assert len(outcomes) == 1
    assert added(before, await count_rows(service, row)) == single_effect
    assert single_effect[idempotency_keys.name] == 1
    again = await service.send_request(build_request(row), values)
    assert (again.status, again.raw) in outcomes


@pytest.mark.parametrize("row", KEYED, ids=lambda row: row.name)
async def test_key_of_a_failed_request_stays_free(row: RouteRow, services: "WireServices") -> None:
    """The first body cannot be read; the corrected request uses the same key."""
    service = services.lenient
    values = await prepared_values(service, row)
    before = await count_rows(service, row)
    good = build_request(row)
    headers = good.headers | {"Content-Type": "text/plain"}
    broken = msgspec.structs.replace(good, headers=headers, body="a", form=None, parts=None)

    rejected = await service.send_request(broken, values)

    assert rejected.status == 400, rejected.raw
    assert await count_rows(service, row) == before
    corrected = await service.send_request(good, values)
    assert corrected.status == VALID_REQUESTS[row.name].status
    assert "Idempotent-Replayed" not in corrected.headers


async def test_every_route_that_accepts_a_key_is_tested() -> None:
    assert {row.name for row in KEYED} == set(VALID_REQUESTS)


async def test_every_post_that_creates_or_sends_something_accepts_a_key() -> None:
    """All others read, set or delete: repeated, they have the same effect."""
    others = {row.path.rpartition("/")[2] for row in ROUTES if row.method == "POST"} - {
        row.path.rpartition("/")[2] for row in KEYED
    }

    assert others == {
        "login",  # creates a token, but the partner who owns the key is not yet known
        "revoke", "revoke-all", "analytics", "buttonclick", "event", "appLink", "{app_name}", "transfer", "enable",
        "prefilled", "register", "deregister", "sync",
        "displayName", "oba", "preferences", "public_key", "username",
        "partner-link-token", "app-token",  # a repeated one gets an error that says what has happened
        "resend", "phoneMigration", "intent", "whitelist", "{business_id}", "status", "publicKey",
        "block", "unblock", "component", "voice", "publish", "deprecate", "check", "invite_link", "regenerate", "remove",
    }  # fmt: skip
