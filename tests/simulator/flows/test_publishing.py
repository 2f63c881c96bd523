"""Publishing of Flows with an endpoint: what the operator checks, and what the health check finds."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.simulator.conftest import NUMBER_ID, WABA, Bench, SimulatorResponse
from tests.support.flow_endpoint import FlowEndpoint, public_pem
from tests.support.flow_json import one_screen_flow

WITH_ENDPOINT = json.dumps({**one_screen_flow(), "data_api_version": "3.0", "routing_model": {"START": []}})


async def create_flow(bench: Bench, **more: Any) -> str:
    body = {"name": "booking", "categories": ["OTHER"], "flow_json": WITH_ENDPOINT, **more}
    created = await bench.graph("POST", f"{WABA}/flows", json=body)
    assert created.body["validation_errors"] == []
    return created.body["id"]


async def set_key(bench: Bench) -> None:
    path = f"{NUMBER_ID}/whatsapp_business_encryption"
    assert (await bench.graph("POST", path, json={"business_public_key": public_pem()})).status == 200


async def publish(bench: Bench, flow_id: str) -> SimulatorResponse:
    return await bench.graph("POST", f"{flow_id}/publish")


async def test_flow_with_an_endpoint_is_published_when_nothing_is_missing(bench: Bench, endpoint: FlowEndpoint) -> None:
    flow_id = await create_flow(bench)
    without_endpoint = await publish(bench, flow_id)
    await bench.graph("POST", flow_id, json={"endpoint_uri": endpoint.url})
    without_key = await publish(bench, flow_id)
    await set_key(bench)

    published = await publish(bench, flow_id)

    titles = [response.error["error_user_title"] for response in (without_endpoint, without_key)]
    assert titles == ["Publishing without specifying endpoint_uri is forbidden", "Missing Flows Signed Public Key"]
    assert published.body == {"success": True}
    assert endpoint.requests == [{"version": "3.0", "action": "ping"}]
    assert endpoint.signatures == [True]


async def test_account_must_be_subscribed_to_the_webhooks_of_flows(bench: Bench, endpoint: FlowEndpoint) -> None:
    await set_key(bench)
    flow_id = await create_flow(bench, endpoint_uri=endpoint.url)
    await bench.graph("DELETE", f"{WABA}/subscribed_apps")

    refused = await publish(bench, flow_id)

    assert "not subscribed to Flows Webhooks" in refused.error["error_user_title"]
    assert endpoint.requests == []


def not_flipped(key: bytes, vector: bytes, text: bytes) -> bytes:
    return base64.b64encode(AESGCM(key).encrypt(vector, text, None))


def tag_first(key: bytes, vector: bytes, text: bytes) -> bytes:
    data = AESGCM(key).encrypt(bytes(byte ^ 0xFF for byte in vector), text, None)
    return base64.b64encode(data[-16:] + data[:-16])


def another_key(_key: bytes, vector: bytes, text: bytes) -> bytes:
    return not_flipped(bytes(16), vector, text)


def not_encrypted(_key: bytes, _vector: bytes, text: bytes) -> bytes:
    return text


def a_page(_key: bytes, _vector: bytes, _text: bytes) -> bytes:
    return b"<html>"


def nothing(_key: bytes, _vector: bytes, _text: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("encrypt", "diagnosis"),
    [
        (not_flipped, "did not flip the bits of the initial vector"),
        (tag_first, "put the tag before the encrypted data"),
        (another_key, "used another key than that of the request"),
        (not_encrypted, "The body is JSON that is not encrypted; it must be the encrypted response in base64"),
        (a_page, "no base64 text but an HTML page"),
        (nothing, "The body is empty"),
    ],
)
async def test_endpoint_that_encrypts_wrongly_is_told_how(
    bench: Bench, endpoint: FlowEndpoint, encrypt: Callable[[bytes, bytes, bytes], bytes], diagnosis: str
) -> None:
    await set_key(bench)
    flow_id = await create_flow(bench, endpoint_uri=endpoint.url)
    endpoint.encrypt = encrypt

    refused = await publish(bench, flow_id)

    assert (refused.error["code"], refused.error["error_subcode"]) == (139002, 4233014)
    assert diagnosis in refused.error["error_user_msg"]
    assert (await bench.graph("GET", flow_id)).body["status"] == "DRAFT"


@pytest.mark.parametrize(
    ("status", "diagnosis"), [(421, "could not decrypt"), (432, "signature is wrong"), (500, "status 500")]
)
async def test_endpoint_with_another_status_is_not_available(
    bench: Bench, endpoint: FlowEndpoint, status: int, diagnosis: str
) -> None:
    await set_key(bench)
    flow_id = await create_flow(bench, endpoint_uri=endpoint.url)
    endpoint.status = status

    refused = await publish(bench, flow_id)

    assert refused.error["error_user_title"] == "Endpoint Not Available"
    assert diagnosis in refused.error["error_user_msg"]


@pytest.mark.parametrize("answer", [{}, {"data": {"status": "ok"}}, {"data": 1}, []])
async def test_health_check_must_be_answered_as_active(bench: Bench, endpoint: FlowEndpoint, answer: Any) -> None:
    await set_key(bench)
    flow_id = await create_flow(bench, endpoint_uri=endpoint.url)
    endpoint.respond = lambda _request: answer

    refused = await publish(bench, flow_id)

    assert refused.error["error_user_title"] == "Endpoint Not Available"


async def test_endpoint_that_is_away_is_not_available(bench: Bench) -> None:
    await set_key(bench)
    flow_id = await create_flow(bench, endpoint_uri="http://127.0.0.1:9/flow")

    refused = await publish(bench, flow_id)

    assert "cannot be reached" in refused.error["error_user_msg"]


async def test_flow_of_a_frozen_version_is_kept_as_a_draft_with_a_warning(bench: Bench) -> None:
    asset = one_screen_flow(version="4.0")
    flow_id = await create_flow(bench, flow_json=json.dumps(asset))

    refused = await publish(bench, flow_id)

    assert "not available for publishing" in refused.error["error_user_title"]
    warnings = lambda: [one for one in bench.receiver.changes("flows") if "warning" in one]  # noqa: E731
    [warning] = await bench.receiver.wait_until(warnings)
    assert warning["event"] == "FLOW_VERSION_FREEZE_WARNING"
    assert warning["flow_id"] == flow_id
