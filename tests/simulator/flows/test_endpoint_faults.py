"""Faults between a handset and the endpoint of a Flow: what the handset sees, and how the endpoint took it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.simulator.conftest import ANN, BUSINESS, Bench
from tests.simulator.flows.conftest import exchange, publish_booking
from tests.support.flow_endpoint import FlowEndpoint

TOKEN = {"flow_token": "token-1"}


@pytest_asyncio.fixture
async def flow_id(bench: Bench, endpoint: FlowEndpoint) -> AsyncIterator[str]:
    flow_id = await publish_booking(bench, endpoint)
    endpoint.checks_signature = True
    endpoint.arrived = 0
    yield flow_id


async def arm(bench: Bench, what: dict[str, Any], **more: Any) -> None:
    fault = {"on": "endpoint", "what": what, **more}
    armed = await bench.control("POST", "faults", fault)
    assert armed.status == 200, armed.body


# fmt: off
SEEN: dict[str, dict[str, Any]] = {
    # what it is armed with, then: status, operator's name of the error, part of the diagnosis, of a warning, requests
    "slow":                {"what": {"slow_ms": 30}, "seen": (200, "", "", "", 1)},
    "too slow":            {"what": {"slow_ms": 60_000}, "seen": (0, "timeout_error", "within 0.3 s", "", 1)},
    "an HTTP status":      {"what": {"status": 503}, "seen": (503, "unexpected_http_status_code", "status 503", "", 0)},
    "after processing":    {"what": {"status": 500, "processed": True},
                            "seen": (500, "unexpected_http_status_code", "status 500", "", 1)},
    "421 twice":           {"what": {"status": 421}, "seen": (421, "business-decryption-error", "could not decrypt", "", 0)},
    "refused":             {"what": {"reset": "before"},
                            "seen": (0, "no_http_response_error", "connection refused", "", 0)},
    "broken":              {"what": {"reset": "after"},
                            "seen": (0, "no_http_response_error", "closed before the response", "", 1)},
    "an HTML page":        {"what": {"garbage": "html"}, "seen": (200, "response-decryption-error", "an HTML page", "", 1)},
    "cut off":             {"what": {"garbage": "truncated"}, "seen": (200, "response-decryption-error", "", "", 1)},
    "empty":               {"what": {"garbage": "empty"}, "seen": (200, "response-decryption-error", "is empty", "", 1)},
    "not base64":          {"what": {"garbage": "not_json"}, "seen": (200, "response-decryption-error", "no base64", "", 1)},
    "in quotes":           {"what": {"garbage": "quoted"}, "seen": (200, "response-decryption-error", "in quotes", "", 1)},
    "tag of the response": {"what": {"wrong_tag": "response"},
                            "seen": (200, "response-decryption-error", "tag of AES-GCM is wrong", "", 1)},
    "IV of the response":  {"what": {"wrong_iv": "response"},
                            "seen": (200, "response-decryption-error", "did not flip the bits", "", 1)},
    "tag of the request":  {"what": {"wrong_tag": "request"},
                            "seen": (200, "", "", "responded 421 to what fault 1: wrong_tag request sent, as it must", 2)},
    "IV of the request":   {"what": {"wrong_iv": "request"},
                            "seen": (200, "", "", "responded 421 to what fault 1: wrong_iv request sent, as it must", 2)},
    "an old key":          {"what": {"stale_key": True},
                            "seen": (200, "", "", "responded 421 to what fault 1: stale_key sent, as it must", 2)},
    "replayed":            {"what": {"replay": True},
                            "seen": (200, "", "", "responded 200 to the same request sent again, after 200", 2)},
    "another signature":   {"what": {"wrong_signature": True},
                            "seen": (432, "unexpected_http_status_code", "signature is wrong", "432 to what fault 1", 1)},
    "no signature":        {"what": {"unsigned": True},
                            "seen": (432, "unexpected_http_status_code", "signature is wrong", "432 to what fault 1", 1)},
}
# fmt: on


@pytest.mark.parametrize("name", SEEN)
async def test_handset_sees_the_fault(bench: Bench, endpoint: FlowEndpoint, flow_id: str, name: str) -> None:
    status, error_type, diagnosis, warning, arrived = SEEN[name]["seen"]
    await bench.control("PUT", "settings", {"endpoint_timeout_ms": 300})
    await arm(bench, SEEN[name]["what"], endpoint="INIT")

    seen = await exchange(bench, flow_id, **TOKEN)

    assert (seen["status"], seen["error_type"]) == (status, error_type)
    assert diagnosis in seen["diagnosis"]
    assert seen["diagnosis"].startswith("By fault 1: ") is bool(error_type)
    assert warning in " ".join(seen["warnings"])
    notices = sum("error" in request.get("data", {}) for request in endpoint.requests)
    assert endpoint.arrived - notices == arrived
    assert seen["fault"].startswith("fault 1: ")


async def test_user_reads_the_text_of_an_invalid_token(bench: Bench, flow_id: str) -> None:
    await arm(bench, {"status": 427, "error_msg": "Taken."})

    seen = await exchange(bench, flow_id, **TOKEN)

    assert (seen["status"], seen["user_message"]) == (427, "Taken.")


async def test_endpoint_that_takes_what_it_must_reject_is_named(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str
) -> None:
    endpoint.checks_signature = False
    await arm(bench, {"wrong_signature": True})

    seen = await exchange(bench, flow_id, **TOKEN)

    assert seen["error_type"] == ""
    assert seen["warnings"] == [
        "The endpoint responded 200 to what fault 1: wrong_signature sent; it must respond 432."
    ]


async def test_key_is_changed_between_two_screens(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    await arm(bench, {"stale_key": True}, endpoint="data_exchange", when={"next": 1})

    opened = await exchange(bench, flow_id, **TOKEN)
    submitted = await exchange(bench, flow_id, "data_exchange", screen="ASK", data={}, **TOKEN)
    again = await exchange(bench, flow_id, "data_exchange", screen="ASK", data={}, **TOKEN)

    assert [one["attempts"] for one in (opened, submitted, again)] == [1, 2, 1]
    assert [one["error_type"] for one in (opened, submitted, again)] == ["", "", ""]


@pytest.mark.parametrize(
    ("narrowed", "fires"),
    [
        ({"flow": "own"}, True),
        ({"flow": "1"}, False),
        ({"endpoint": "ping"}, False),
        ({"waba_id": "1000000000000001"}, True),
        ({"app": "1"}, False),
        ({"phone": ANN}, False),
        ({"number": BUSINESS}, False),
    ],
)
async def test_fault_is_limited_to_what_it_names(
    bench: Bench, flow_id: str, narrowed: dict[str, str], *, fires: bool
) -> None:
    own = {name: flow_id if value == "own" else value for name, value in narrowed.items()}
    await arm(bench, {"status": 500}, **own)

    seen = await exchange(bench, flow_id, **TOKEN)

    assert (seen["status"] == 500) is fires


async def test_firing_names_the_request_and_the_flow(bench: Bench, flow_id: str) -> None:
    await arm(bench, {"status": 500})

    await exchange(bench, flow_id, **TOKEN)
    [firing] = (await bench.control("GET", "faults/1")).body["firings"]

    assert (firing["endpoint"], firing["subject"]) == ("INIT", flow_id)
