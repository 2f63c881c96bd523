"""The request log of a running service: what is in it, whose it is, and that nothing secret ever is."""

import asyncio
import json
from dataclasses import asdict, replace
from typing import Any, Final

import pytest

from tests.conftest import MakePipeline
from tests.support.builders import ANN, APP, PARTNER, id_number
from tests.support.builders import template as make_template
from tests.support.pipeline import API_KEY, PipelineHarness
from waypost.api import request_recorder
from waypost.base.encryption import hash_secret
from waypost.domain.templates.template import Category
from waypost.store.accounts.partners import add_app, add_partner, add_partner_token
from waypost.store.requests.request_log import RequestLogEntry, RequestLogFilter, read_request_page
from waypost.store.templates.templates import record_template
from waypost.wire.tokens import issue_partner_token

SEND: Final = "/wa/api/v1/msg"
FORM: Final = {"channel": "whatsapp", "source": APP.phone_number, "src.name": APP.name, "destination": ANN}
OTHER: Final = replace(PARTNER, id=8, email="ben@acme.test")
OTHER_APP: Final = replace(
    APP, id=id_number(2), partner_id=8, name="Other", phone_number="15550002222", phone_number_id="2000000000000009"
)


async def read_log(pipeline: PipelineHarness, **query: Any) -> list[RequestLogEntry]:
    """Return the entries, once all that is queued is written."""
    recorder = pipeline.waypost.recorder
    assert recorder is not None
    await recorder.flush()
    page = await pipeline.waypost.database.read(read_request_page, RequestLogFilter(**query), 1_000)
    return page.entries


async def test_a_failed_request_is_in_the_log_with_its_reason_under_the_id_of_its_response(
    pipeline: PipelineHarness,
) -> None:
    form = {**FORM, "destination": "12", "message": json.dumps({"type": "text", "text": "my private words"})}
    response = await pipeline.send_request("POST", SEND, form, {"apikey": API_KEY})

    entry, *others = await read_log(pipeline, request_id=response.headers["X-Request-Id"])

    assert (response.status, others) == (400, [])
    assert (entry.status, entry.partner_id, entry.app_id) == (400, PARTNER.id, APP.id)
    assert entry.route == f"POST {SEND}"
    assert entry.credential.startswith("API key")
    assert entry.message == response.body["message"]
    assert entry.explanation == response.headers.get("Waypost-Reason", "")
    assert (entry.field, "8 to 15 digits" in entry.accepted) == ("destination", True)
    sent = json.loads(entry.request)
    assert sent["path"] == SEND
    assert sent["body"]["message"] == {"type": "text", "text": "(16 characters)"}
    assert (sent["body"]["destination"], entry.recipient) == ("12", "12")


async def test_no_secret_and_no_text_is_in_any_entry(pipeline: PipelineHarness) -> None:
    secrets = ["pass-w0rd-Zebra", "key-Zebra-1", "token-Zebra-2", "hidden Zebra text", "Zebra-header-value"]
    meta = json.dumps({"headers": {"X-Auth": secrets[4]}})
    requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = [
        ("POST", "/partner/account/login", {"email": "nobody@acme.test", "password": secrets[0]}, {}),
        ("POST", SEND, {**FORM, "message": secrets[3]}, {"apikey": secrets[1]}),
        ("POST", SEND, {**FORM, "destination": "1", "message": secrets[3]}, {"apikey": API_KEY}),
        (
            "POST",
            f"/partner/app/{APP.id}/subscription?token={secrets[2]}",
            {"meta": meta, "tag": "a"},
            {"apikey": API_KEY},
        ),
        ("GET", f"/partner/app/{APP.id}/templates?token={secrets[2]}", {}, {"Authorization": secrets[2]}),
    ]
    for method, path, form, headers in requests:
        response = await pipeline.send_request(method, path, form or None, headers)
        assert response.status >= 400, (path, response.status)

    entries = await read_log(pipeline)

    assert len(entries) == len(requests)
    assert all(entry.response for entry in entries if entry.request)
    text = json.dumps([asdict(entry) for entry in entries])
    assert "Zebra" not in text
    assert hash_secret(API_KEY) not in text


async def test_one_of_some_successful_requests_is_in_the_log(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline(changes={"request_log_sample": 3})
    for _ in range(7):
        response = await pipeline.send_request("GET", "/sm/api/v2/wallet/balance", None, {"apikey": API_KEY})
        assert response.status == 200
        assert "X-Request-Id" not in response.headers

    entries = await read_log(pipeline)

    assert [(entry.status, entry.error, entry.partner_id) for entry in entries] == [(200, "", PARTNER.id)] * 2


async def test_response_is_in_the_log_with_its_headers(pipeline: PipelineHarness) -> None:
    response = await pipeline.send_request("POST", SEND, FORM | {"destination": "12"}, {"apikey": API_KEY})

    (entry,) = await read_log(pipeline)

    logged = json.loads(entry.response)
    assert logged["body"] == response.body
    headers = {name.lower(): value for name, value in logged["headers"]}
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == entry.request_id
    assert headers["waypost-reason"] == response.headers["Waypost-Reason"]


async def test_where_text_is_shown_every_request_is_in_the_log_with_it_and_without_secrets(
    make_pipeline: MakePipeline,
) -> None:
    pipeline = await make_pipeline(changes={"request_log_sample": 1, "show_text": True})
    template = {"id": id_number(1), "params": ["Ann"]}
    code = {"id": id_number(2), "params": ["314159"]}
    for number, category in enumerate((Category.UTILITY, Category.AUTHENTICATION), start=1):
        await pipeline.waypost.database.write(record_template, make_template(number, category=category))
    text = await pipeline.send_request("POST", SEND, FORM | {"message": "Hello Ann"}, {"apikey": API_KEY})
    for sent in (template, code):
        form = FORM | {"template": json.dumps(sent)}
        await pipeline.send_request("POST", "/wa/api/v1/template/msg", form, {"apikey": API_KEY})
    database, now_ms = pipeline.waypost.database, pipeline.clock.now_ms()
    token = issue_partner_token(pipeline.waypost.admin_context.secret_box, PARTNER, jti="log", now_ms=now_ms)
    await database.write(add_partner_token, hash_secret(token), PARTNER.id, now_ms, now_ms + 60_000, None)
    given = await pipeline.send_request("GET", f"/partner/app/{APP.id}/token", None, {"Authorization": token})

    entries = await read_log(pipeline)

    (of_token,) = (entry for entry in entries if entry.route.endswith("/token"))
    (of_text,) = (entry for entry in entries if entry.route.endswith("/v1/msg"))
    of_code, of_template = (entry for entry in entries if entry.route.endswith("/template/msg"))
    assert json.loads(of_text.request)["body"]["message"] == "Hello Ann"
    assert json.loads(of_text.response)["body"] == text.body
    assert of_text.request_id == text.headers["X-Request-Id"]
    assert json.loads(of_template.request)["body"]["template"] == template
    assert json.loads(of_code.request)["body"]["template"] == {"id": code["id"], "params": ["(6 characters)"]}
    assert json.loads(of_token.response)["body"]["token"] == "(hidden)"
    everything = json.dumps([asdict(entry) for entry in entries])
    assert "314159" not in everything
    assert given.body["token"]["token"] not in everything


@pytest.mark.parametrize("changes", [{"request_log_rows": 0}])
async def test_without_rows_there_is_no_log(make_pipeline: MakePipeline, changes: dict[str, Any]) -> None:
    pipeline = await make_pipeline(changes=changes)

    response = await pipeline.send_request("POST", SEND, FORM, {"apikey": "wrong"})

    assert pipeline.waypost.recorder is None
    assert (response.status, "X-Request-Id" in response.headers) == (401, False)


async def test_request_with_a_wrong_credential_is_shown_to_the_owner_of_the_app_without_its_content(
    pipeline: PipelineHarness,
) -> None:
    await pipeline.send_request("POST", f"/partner/app/{APP.id}/msg", FORM, {"Authorization": "wrong"})

    (entry,) = await read_log(pipeline, partner_id=PARTNER.id)

    assert (entry.status, entry.credential, entry.app_id, entry.request, entry.recipient) == (
        401, "not valid", APP.id, "", "",
    )  # fmt: skip


async def test_request_of_one_partner_about_the_app_of_another_is_its_own(pipeline: PipelineHarness) -> None:
    database = pipeline.waypost.database
    await database.write(add_partner, OTHER, "", pipeline.clock.now_ms())
    box = pipeline.waypost.admin_context.secret_box
    await database.write(add_app, OTHER_APP, hash_secret(box.app_token(OTHER_APP.id, OTHER_APP.token_serial)))
    token = box.app_token(APP.id, APP.token_serial)

    await pipeline.send_request("GET", f"/partner/app/{OTHER_APP.id}/templates", None, {"Authorization": token})

    (entry,) = await read_log(pipeline)
    assert (entry.partner_id, entry.app_id) == (PARTNER.id, "")
    assert await read_log(pipeline, partner_id=OTHER.id) == []


async def test_callers_without_a_credential_cannot_fill_the_log(pipeline: PipelineHarness) -> None:
    limit = request_recorder.MAX_UNAUTHENTICATED_OF_ADDRESS
    for _ in range(limit + 5):
        await pipeline.send_request("POST", SEND, FORM, {"apikey": "wrong"})
    await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY})

    entries = await read_log(pipeline)

    recorder = pipeline.waypost.recorder
    assert recorder is not None
    assert [entry.partner_id for entry in entries].count(None) == limit
    assert entries[0].partner_id == PARTNER.id
    assert recorder.counts["address"] == 5


async def test_one_partner_leaves_room_in_the_queue_and_a_full_one_is_counted(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = pipeline.waypost.recorder
    assert recorder is not None
    await recorder.flush()
    recorder.stop()  # nothing is written until the test does
    monkeypatch.setattr(request_recorder, "MAX_QUEUED_OF_PARTNER", 2)
    monkeypatch.setattr(request_recorder, "MAX_QUEUED", 3)
    for key in (API_KEY, API_KEY, API_KEY, "wrong", "wrong"):
        await pipeline.send_request("POST", SEND, FORM, {"apikey": key})

    counts = dict(recorder.counts)
    entries = await read_log(pipeline)

    assert (counts.get("partner"), counts.get("queue full"), len(entries)) == (1, 1, 3)


async def test_a_partner_has_at_most_so_many_entries(make_pipeline: MakePipeline) -> None:
    pipeline = await make_pipeline(changes={"request_log_rows": 10, "rates": False})
    for _ in range(15):
        await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY})

    entries = await read_log(pipeline, partner_id=PARTNER.id)

    assert len(entries) == 10


async def test_what_is_queued_is_written_when_the_service_stops(pipeline: PipelineHarness) -> None:
    await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY})

    await pipeline.close_service()
    await pipeline.open_service()

    assert len(await read_log(pipeline)) == 1


async def test_a_store_that_cannot_be_written_loses_entries_and_nothing_else(pipeline: PipelineHarness) -> None:
    recorder = pipeline.waypost.recorder
    assert recorder is not None
    async with pipeline.unavailable_store():
        response = await pipeline.send_request("POST", "/partner/account/login", {"email": "a"}, {})
        await recorder.flush()

    assert response.status in (400, 500)
    await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY})
    await asyncio.sleep(0)
    assert [entry.partner_id for entry in await read_log(pipeline)] == [PARTNER.id]


HOSTILE: Final = (
    b"\xff\xfe\x00", b"[" * 20_000, b'{"a":' * 9_000, b'{"destination":"\\ud800"}', b"%00=%00&destination=%00",
    b'{"type":["' + b"x" * 9_000 + b'"]}', b"a" * 40_000,
)  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE)
@pytest.mark.parametrize("media_type", ["application/json", "application/x-www-form-urlencoded"])
async def test_any_body_gets_an_entry(pipeline: PipelineHarness, body: bytes, media_type: str) -> None:
    headers = {"apikey": API_KEY, "Content-Type": media_type, "X-Request-Id": "r-1"}
    async with pipeline.http.post(pipeline.service_url + SEND, data=body, headers=headers) as response:
        assert 400 <= response.status < 500

    (entry,) = await read_log(pipeline, request_id="r-1")

    assert entry.size_bytes == len(body)
    assert len(entry.request) < 9_000
