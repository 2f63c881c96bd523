"""Request ids, from the client to the operator, and the access log, which has them."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.builders import ANN, APP
from tests.support.operator_proxy import OperatorProxy
from tests.support.pipeline import API_KEY, PipelineHarness
from tests.support.polling import poll_until
from waypost.api import asgi
from waypost.base.clock import SystemClock
from waypost.base.ids import is_uuid
from waypost.base.telemetry.logs import log, set_up_logs

SEND: Final = "/wa/api/v1/msg"
FORM: Final = {
    "channel": "whatsapp", "source": APP.phone_number, "destination": ANN, "src.name": APP.name,
    "message": '{"type":"text","text":"Hello"}',
}  # fmt: skip


class RecordedHeaders(OperatorProxy):
    """Records the request ids of the calls to the operator that send a message."""

    def __init__(self) -> None:
        super().__init__()
        self.request_ids: list[str | None] = []

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.path.endswith("/messages"):
            self.request_ids.append(request.headers.get("X-Request-Id"))
        return await super()._forward(request, base_url)


@pytest.fixture(params=["json"])
def output(
    request: pytest.FixtureRequest, logs: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[io.StringIO]:
    """Record the log at level `info`, in a format."""
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=request.param == "json", level="info", stream=stream)
    monkeypatch.setattr(asgi, "_log", log("api"))  # a logger keeps the level at which it was used first
    yield stream
    logs()


def access_records(output: io.StringIO) -> list[dict[str, Any]]:
    """Return the records of the access log."""
    records = [json.loads(line) for line in output.getvalue().splitlines()]
    return [record for record in records if record["logger"] == "access"]


async def test_request_id_is_returned_stored_and_sent_to_the_operator(make_pipeline: Any) -> None:
    proxy = RecordedHeaders()
    pipeline: PipelineHarness = await make_pipeline(operator_proxy=proxy)
    await pipeline.open_window()

    sent = await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY, "X-Request-Id": "order-17/a"})
    message_id = sent.body["messageId"]
    await pipeline.events_of(message_id, until="delivered")
    without_id = await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY})
    await pipeline.events_of(without_id.body["messageId"], until="delivered")

    assert sent.headers["X-Request-Id"] == "order-17/a"
    assert "X-Request-Id" not in without_id.headers
    assert (await pipeline.trace(message_id))["request_id"] == "order-17/a"
    assert (await pipeline.trace(without_id.body["messageId"]))["request_id"] is None
    assert proxy.request_ids == ["order-17/a", None]


@pytest.mark.parametrize("sent", ["", "with space", "x" * 129, "\u00e9", "a;b", "<b>"])
async def test_request_id_that_is_not_safe_is_replaced(pipeline: PipelineHarness, sent: str) -> None:
    response = await pipeline.send_request("POST", SEND, FORM, {"apikey": "wrong", "X-Request-Id": sent})

    assert response.status == 401
    assert is_uuid(response.headers["X-Request-Id"])


async def test_access_log_has_one_record_for_each_request_and_no_path(output: io.StringIO, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(changes={"access_log": True, "trusted_proxies": ("127.0.0.0/8",)})
    await pipeline.open_window()
    paths = (f"/sm/api/v1/template/list/{APP.name}", "/media/a-secret-key", "/nothing/a-secret-key")

    headers = {"apikey": API_KEY, "X-Request-Id": "mine", "X-Forwarded-For": "203.0.113.9"}
    sent = await pipeline.send_request("POST", SEND, FORM, headers)
    others = [await pipeline.send_request("GET", path, headers={"apikey": API_KEY}) for path in paths]

    responses = (sent, *others)

    async def written() -> list[dict[str, Any] | None]:  # each is written after its response
        by_id = {record["request_id"]: record for record in access_records(output)}
        return [by_id.get(response.headers["X-Request-Id"]) for response in responses]

    first, *rest = [record for record in await poll_until(written, all) if record is not None]
    assert sent.headers["X-Request-Id"] == "mine"
    assert (first["method"], first["route"], first["status"]) == ("POST", SEND, 200)
    assert (first["client"], first["partner_id"], first["app_id"]) == ("203.0.113.9", APP.partner_id, APP.id)
    assert (first["bytes"], first["took_ms"] > 0) == (len(sent.raw), True)
    assert [record["status"] for record in rest] == [other.status for other in others]
    assert [record["route"] for record in rest][:1] == ["/sm/api/v1/template/list/{app_name}"]
    assert rest[2]["route"] == ""
    assert "secret" not in output.getvalue()
    assert ANN not in output.getvalue()


async def test_defect_is_logged_with_the_request_id_and_the_route(
    output: io.StringIO, pipeline: PipelineHarness
) -> None:
    async with pipeline.unavailable_store():
        response = await pipeline.send_request("POST", SEND, FORM, {"apikey": API_KEY, "X-Request-Id": "mine"})

    errors = [json.loads(line) for line in output.getvalue().splitlines() if '"mine"' in line]
    assert response.status == 500
    assert response.headers["X-Request-Id"] == "mine"
    assert [error["route"] for error in errors] == [f"POST {SEND}"]


@pytest.mark.parametrize("output", ["text"], indirect=True)
async def test_access_log_is_off_unless_it_is_set(output: io.StringIO, pipeline: PipelineHarness) -> None:
    await pipeline.send_request("GET", "/healthz")

    assert "[access" not in output.getvalue()
