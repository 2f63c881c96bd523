"""The endpoint of a Flow: requests as a handset sends them, and what it says of each response."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from tests.simulator.conftest import ANN, APP, NUMBER_ID, SECRET, Bench
from tests.simulator.flows.conftest import answer_booking, exchange, publish_booking, two_screens
from tests.support.flow_endpoint import FlowEndpoint, public_pem_of, seal
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.client.api_client import ApiClient
from waypost.client.simulated_events import add_simulated_events
from waypost.client.transports import HttpTransport

TOKEN = {"flow_token": "token-1"}


@pytest_asyncio.fixture
async def flow_id(bench: Bench, endpoint: FlowEndpoint) -> AsyncIterator[str]:
    yield await publish_booking(bench, endpoint)


def flip(vector: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in vector)


async def test_flow_is_played_from_its_opening_to_its_end(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    opened = await exchange(bench, flow_id, **TOKEN)
    submitted = await exchange(bench, flow_id, "data_exchange", screen="ASK", data={}, **TOKEN)
    back = await exchange(bench, flow_id, "BACK", screen="TIMES", **TOKEN)
    ended = await exchange(bench, flow_id, "data_exchange", screen="TIMES", data={"time": "1"}, **TOKEN)

    assert [one["response"]["screen"] for one in (opened, submitted, back, ended)] == ["ASK", "TIMES", "ASK", "SUCCESS"]
    assert [(one["error_type"], one["diagnosis"], one["warnings"]) for one in (opened, submitted, back, ended)] == [
        ("", "", [])
    ] * 4
    assert all(endpoint.signatures)
    assert endpoint.requests[1] == {
        "version": "4.0",
        "action": "data_exchange",
        "screen": "ASK",
        "data": {},
        "flow_token": "token-1",
        "flow_token_signature": endpoint.requests[1]["flow_token_signature"],
    }


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


async def test_flow_token_is_signed_by_the_app_secret(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    await exchange(bench, flow_id, **TOKEN)
    await bench.control("PUT", "settings", {"flow_token_signature": False})
    await exchange(bench, flow_id, **TOKEN)

    signed, unsigned = endpoint.requests
    head, payload, signature = signed["flow_token_signature"].split(".")
    assert json.loads(decode(head)) == {"alg": "HS256", "typ": "JWT"}
    assert json.loads(decode(payload)) == {"flow_token": "token-1"}
    assert decode(signature) == hmac.digest(SECRET.encode(), f"{head}.{payload}".encode(), hashlib.sha256)
    assert "flow_token_signature" not in unsigned


@pytest.mark.parametrize(("version", "data_api_version"), [("7.2", "3.0"), ("7.3", "3.0")])
async def test_flow_token_of_older_versions_is_not_signed(
    bench: Bench, endpoint: FlowEndpoint, version: str, data_api_version: str
) -> None:
    flow_id = await publish_booking(bench, endpoint, version=version, data_api_version=data_api_version)

    await exchange(bench, flow_id, **TOKEN)

    assert endpoint.requests == [{"version": data_api_version, "action": "INIT", "flow_token": "token-1"}]


Encrypt = Callable[[bytes, bytes, bytes], bytes]


def encrypt_by(vector_of: Callable[[bytes], bytes], change: Callable[[bytes], bytes] = lambda data: data) -> Encrypt:
    def encrypt(key: bytes, vector: bytes, text: bytes) -> bytes:
        return base64.b64encode(change(AESGCM(key).encrypt(vector_of(vector), text, None)))

    return encrypt


def after_sealing(change: Callable[[bytes], bytes]) -> Encrypt:
    return lambda key, vector, text: change(seal(key, vector, text))


def answer_with(body: bytes) -> Encrypt:
    return lambda _key, _vector, _text: body


def encrypt_by_cbc(key: bytes, vector: bytes, text: bytes) -> bytes:
    padder, encryptor = PKCS7(128).padder(), Cipher(AES128(key), CBC(vector)).encryptor()
    return base64.b64encode(encryptor.update(padder.update(text) + padder.finalize()) + encryptor.finalize())


def put_own_vector(size: int) -> Encrypt:
    own = bytes(range(size))
    return encrypt_by(lambda _: own, lambda data: own + data)


def move_tag(data: bytes) -> bytes:
    return data[-16:] + data[:-16]


def with_text_added(key: bytes, vector: bytes, text: bytes) -> bytes:
    return base64.b64encode(AESGCM(key).encrypt(flip(vector), text, b"more"))


# fmt: off
MISTAKES: dict[str, tuple[Encrypt, str]] = {
    "vector not flipped":        (encrypt_by(bytes), "did not flip the bits of the initial vector."),
    "tag first":                 (encrypt_by(flip, move_tag), "put the tag before the encrypted data; it must follow"),
    "tag first, not flipped":    (encrypt_by(bytes, move_tag), "put the tag before the encrypted data, and did not flip"),
    "vector of 12 bytes":        (encrypt_by(lambda vector: flip(vector)[:12]), "an initial vector of 12 bytes; it must be"),
    "12 bytes, not flipped":     (encrypt_by(lambda vector: vector[:12]), "12 bytes and did not flip it"),
    "own vector of 16 bytes":    (put_own_vector(16), "an initial vector of its own and put it before the data"),
    "own vector of 12 bytes":    (put_own_vector(12), "an initial vector of 12 bytes and put it before the data"),
    "vector of zeros":           (encrypt_by(lambda _: bytes(16)), "an initial vector of zeros"),
    "vector reversed":           (encrypt_by(lambda vector: vector[::-1]), "reversed the bytes"),
    "tag left out":              (encrypt_by(flip, lambda data: data[:-16]), "left out the tag"),
    "tag left out, not flipped": (encrypt_by(bytes, lambda data: data[:-16]), "left out the tag of AES-GCM: its 16 bytes "
                                  "must follow the encrypted data. It also did not flip"),
    "tag wrong":                 (encrypt_by(flip, lambda data: data[:-1] + bytes([data[-1] ^ 1])), "tag of AES-GCM is wrong"),
    "authenticated data":        (with_text_added, "used additional authenticated data"),
    "cut off":                   (after_sealing(lambda body: body[: len(body) // 8 * 4]), "was cut off"),
    "another key":               (lambda _, vector, text: seal(bytes(16), vector, text), "used another key"),
    "CBC":                       (encrypt_by_cbc, "encrypted with AES-CBC"),
    "base64 twice":              (after_sealing(base64.b64encode), "in base64 twice"),
    "hexadecimal":               (after_sealing(lambda body: base64.b64decode(body).hex().encode()), "is hexadecimal"),
    "bytes":                     (after_sealing(base64.b64decode), "is the encrypted response as bytes"),
    "in quotes":                 (after_sealing(lambda body: b'"%b"' % body), "base64 in quotes"),
    "in an object":              (after_sealing(lambda body: b'{"encrypted": "%b"}' % body), "encrypted text in encrypted"),
    "base64 for URLs":           (after_sealing(lambda body: b"-_" + body.replace(b"+", b"-").replace(b"/", b"_")),
                                  "of the alphabet for URLs"),
    "JSON in base64":            (lambda _, _vector, text: base64.b64encode(text), "JSON in base64 that was not encrypted"),
    "not encrypted":             (lambda _, _vector, text: text, "JSON that is not encrypted"),
    "an HTML page":              (answer_with(b"<html>"), "an HTML page"),
    "any text":                  (answer_with(b"ok!"), "no base64 text"),
    "empty":                     (answer_with(b""), "body is empty"),
    "shorter than the tag":      (answer_with(b"AAAA"), "has 3 bytes"),
    "a list":                    (lambda key, vector, _: seal(key, vector, b"[]"), "no JSON object"),
    "not JSON":                  (lambda key, vector, _: seal(key, vector, b"{"), "is not JSON"),
    "not a number":              (lambda key, vector, _: seal(key, vector, b'{"a": NaN}'), "is not JSON"),
    "nested deeply":             (lambda key, vector, _: seal(key, vector, b'{"a":' * 101 + b"1" + b"}" * 101), "100 levels"),
    "nested too deeply":         (lambda key, vector, _: seal(key, vector, b"[" * 100_000), "is not JSON"),
}
# fmt: on


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_mistake_in_the_encryption_is_named(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, mistake: str
) -> None:
    endpoint.encrypt, diagnosis = MISTAKES[mistake]

    failed = await exchange(bench, flow_id, **TOKEN)

    assert diagnosis in failed["diagnosis"]
    assert failed["error_type"] == "response-decryption-error"
    assert (failed["status"], failed["response"]) == (200, {})


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "without padding": lambda body: body.rstrip(b"="),
    "in lines": lambda body: base64.encodebytes(base64.b64decode(body)),
    "with white space": lambda body: b" " + body + b"\r\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_base64_is_decoded_as_browsers_do(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, spelling: str
) -> None:
    endpoint.encrypt = after_sealing(SPELLINGS[spelling])

    opened = await exchange(bench, flow_id, **TOKEN)

    assert (opened["error_type"], opened["response"]["screen"]) == ("", "ASK")


@pytest.mark.parametrize("content_type", ["text/html", "application/json; charset=utf-8"])
async def test_another_content_type_is_a_warning(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, content_type: str
) -> None:
    endpoint.content_type = content_type

    opened = await exchange(bench, flow_id, **TOKEN)

    assert opened["error_type"] == ""
    [warning] = opened["warnings"]
    assert warning == f"The Content-Type of the response is {content_type.partition(';')[0]}; documented is text/plain."


# fmt: off
ANSWERS: dict[str, tuple[Any, str, str]] = {  # the answer on ASK, the operator's name of what is wrong, the diagnosis
    "screen missing":        ({"data": {}}, "payload-schema-error", "has no screen"),
    "screen a number":       ({"screen": 1, "data": {}}, "payload-schema-error", "a screen that is no text"),
    "data missing":          ({"screen": "TIMES"}, "payload-schema-error", "has no data"),
    "data a list":           ({"screen": "TIMES", "data": []}, "payload-schema-error", "data that is no object"),
    "error_message":         ({"screen": "ASK", "data": {"error_message": 1}}, "payload-schema-error", "error_message"),
    "unknown screen":        ({"screen": "TIME", "data": {}}, "invalid-screen-transition", "it has ASK, TIMES, SUCCESS"),
    "end without params":    ({"screen": "SUCCESS", "data": {}}, "payload-schema-error", "without its params"),
    "wrong type":            ({"screen": "TIMES", "data": {"count": "1"}}, "payload-schema-error",
                              "count is declared as number, and is string"),
    "boolean for a number":  ({"screen": "TIMES", "data": {"count": True}}, "payload-schema-error", "and is boolean"),
    "null":                  ({"screen": "TIMES", "data": {"times": None}}, "payload-schema-error", "array, and is null"),
    "wrong type of an item": ({"screen": "TIMES", "data": {"times": ["9:00"]}}, "payload-schema-error",
                              "times[0] is declared as object, and is string"),
    "wrong type within":     ({"screen": "TIMES", "data": {"times": [{"id": 1}]}}, "payload-schema-error",
                              "times[0].id is declared as string, and is number"),
}
# fmt: on


@pytest.mark.parametrize("name", ANSWERS)
async def test_invalid_answer_is_named_and_the_endpoint_is_told(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, name: str
) -> None:
    answer, error_type, diagnosis = ANSWERS[name]
    endpoint.respond = lambda request: answer_booking(request) if "error" in request.get("data", {}) else answer

    failed = await exchange(bench, flow_id, "data_exchange", screen="ASK", data={}, **TOKEN)
    exchanges = await wait_for_exchanges(bench, flow_id, 2)

    assert failed["error_type"] == error_type
    assert diagnosis in failed["diagnosis"]
    notice = endpoint.requests[-1]
    assert (notice["action"], notice["screen"], notice["flow_token"]) == ("data_exchange", "ASK", "token-1")
    assert notice["data"] == {"error": error_type, "error_message": failed["diagnosis"]}
    assert exchanges[-1]["exchange"]["response"] == {"data": {"acknowledged": True}}
    assert exchanges[-1]["exchange"]["warnings"] == []


async def wait_for_exchanges(bench: Bench, flow_id: str, count: int) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        return (await bench.control("GET", f"flows/{flow_id}/exchanges")).body["exchanges"]

    return await poll_until(read, lambda exchanges: len(exchanges) >= count)


async def test_screen_must_be_one_that_the_routing_model_allows(bench: Bench, endpoint: FlowEndpoint) -> None:
    content = two_screens()
    last = {**content["screens"][1], "id": "LAST"}
    asked, times = content["screens"][0], {**content["screens"][1], "terminal": False}
    routes = {"ASK": ["TIMES"], "TIMES": ["LAST"], "LAST": []}
    flow_id = await publish_booking(bench, endpoint, routing_model=routes, screens=[asked, times, last])
    more: dict[str, Any] = {"data": {}, **TOKEN}
    results: list[tuple[str, str]] = []

    for action, screen, following in (
        ("INIT", "", "TIMES"),
        ("data_exchange", "ASK", "LAST"),
        ("data_exchange", "LAST", "TIMES"),
        ("data_exchange", "LAST", "LAST"),
        ("BACK", "LAST", "TIMES"),
    ):
        endpoint.respond = lambda _, following=following: {"screen": following, "data": {}}
        done = await exchange(bench, flow_id, action, screen=screen, **more)
        results.append((done["error_type"], done["diagnosis"]))

    into_the_middle = "The Flow cannot open with TIMES: the routing model has a route to it."
    too_far = "from ASK to LAST, which the routing model does not allow; it allows TIMES, ASK, SUCCESS."
    assert results[0] == ("invalid-screen-transition", into_the_middle)
    assert results[1] == ("invalid-screen-transition", f"The response leads {too_far}")
    assert results[2:] == [("", "")] * 3


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        ({"screen": "ASK", "data": {"more": 1}}, "The screen ASK declares no more: handsets ignore it."),
        (
            {"screen": "SUCCESS", "data": {"extension_message_response": {"params": {}}}},
            "The params of the end have no flow_token, which the documentation requires.",
        ),
        (
            {"screen": "SUCCESS", "data": {"extension_message_response": {"params": {"flow_token": "t-9"}}}},
            "The params of the end have another flow_token than the request; return the same.",
        ),
        (
            {"version": "2.1", "screen": "ASK", "data": {"error_message": "No time is free."}},
            "The response has version 2.1, the request 4.0; leave it out, or send the same.",
        ),
    ],
)
async def test_what_handsets_accept_against_the_documentation_is_a_warning(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, answer: Any, warning: str
) -> None:
    endpoint.respond = lambda _: answer

    opened = await exchange(bench, flow_id, **TOKEN)

    assert (opened["error_type"], opened["response"], opened["warnings"]) == ("", answer, [warning])


@pytest.mark.parametrize("encrypted", [True, False])
async def test_invalid_token_carries_the_text_for_the_user(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, *, encrypted: bool
) -> None:
    endpoint.status = 427
    endpoint.respond = lambda _: {"error_msg": "The order has been placed."}
    if not encrypted:
        endpoint.encrypt = lambda _key, _vector, text: text

    refused = await exchange(bench, flow_id, **TOKEN)

    assert (refused["status"], refused["user_message"]) == (427, "The order has been placed.")
    assert "no longer valid" in refused["diagnosis"]
    assert len(endpoint.requests) == 1


async def test_invalid_token_without_a_text_has_none(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    endpoint.status = 427
    endpoint.encrypt = answer_with(b"")

    refused = await exchange(bench, flow_id, **TOKEN)

    assert (refused["user_message"], refused["warnings"]) == ("", [])


async def test_changed_key_is_fetched_after_421_and_the_request_sent_again(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str
) -> None:
    endpoint.key = rsa.generate_private_key(65537, 2048)
    body = {"business_public_key": public_pem_of(endpoint.key)}
    fault = {"on": "endpoint", "endpoint": "INIT", "what": {"stale_key": True}}
    await bench.graph("POST", f"{NUMBER_ID}/whatsapp_business_encryption", json=body)
    await bench.control("POST", "faults", fault)

    opened = await exchange(bench, flow_id, **TOKEN)

    assert (opened["error_type"], opened["attempts"], endpoint.arrived - 1) == ("", 2, 2)
    assert opened["warnings"] == ["The endpoint responded 421 to what fault 1: stale_key sent, as it must."]


async def test_endpoint_with_another_key_is_told_so(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    endpoint.key = rsa.generate_private_key(65537, 2048)

    failed = await exchange(bench, flow_id, **TOKEN)

    assert (failed["error_type"], failed["status"], failed["attempts"]) == ("business-decryption-error", 421, 2)
    assert "its private key is not that of the uploaded public key" in failed["diagnosis"]


@pytest.mark.parametrize(
    ("used", "diagnosis"),
    [
        (padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None), "by OAEP with SHA-1"),
        (padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA256(), None), "MGF1 with SHA-1"),
        (padding.PKCS1v15(), "PKCS#1 1.5"),
    ],
)
async def test_endpoint_with_another_padding_is_told_so(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, used: padding.AsymmetricPadding, diagnosis: str
) -> None:
    endpoint.request_padding = used

    failed = await exchange(bench, flow_id, **TOKEN)

    assert failed["error_type"] == "business-decryption-error"
    assert diagnosis in failed["diagnosis"]
    assert [request["action"] for request in endpoint.requests] == ["ping"]


@pytest.mark.parametrize(
    ("status", "diagnosis"),
    [
        (201, "status 201, not 200"),
        (302, "a redirect; handsets follow none"),
        (404, "is the path of endpoint_uri right"),
        (405, "must accept POST"),
        (413, "limit for bodies"),
        (415, "must accept application/json"),
        (432, "it knows another app secret"),
        (500, "status 500, not 200"),
    ],
)
async def test_other_statuses_are_errors_of_the_endpoint(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, status: int, diagnosis: str
) -> None:
    endpoint.status = status
    endpoint.headers = {"Location": endpoint.url} if status == 302 else {}

    failed = await exchange(bench, flow_id, **TOKEN)

    assert failed["error_type"] == "unexpected_http_status_code"
    assert diagnosis in failed["diagnosis"]
    assert len(endpoint.requests) == 1


async def test_endpoint_has_a_time_limit(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    await bench.control("PUT", "settings", {"endpoint_timeout_ms": 50})
    never = asyncio.Event()

    async def hang() -> None:
        await never.wait()

    endpoint.respond = lambda _: hang()

    failed = await exchange(bench, flow_id, **TOKEN)
    never.set()

    assert (failed["error_type"], failed["status"]) == ("timeout_error", 0)
    assert failed["diagnosis"] == "The endpoint did not respond within 0.05 s."
    assert 50 <= failed["duration_ms"] < HANGS_AFTER_S * 1000


async def test_response_of_more_than_a_megabyte_is_not_read(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    endpoint.encrypt = answer_with(b"A" * (1024 * 1024 + 1))

    failed = await exchange(bench, flow_id, **TOKEN)

    assert failed["error_type"] == "no_http_response_error"
    assert "more than 1048576 bytes" in failed["diagnosis"]


async def test_large_response_is_read_and_not_kept(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    endpoint.respond = lambda _: {"screen": "ASK", "data": {"more": "x" * 500_000}}

    opened = await exchange(bench, flow_id, **TOKEN)

    assert (opened["error_type"], opened["response"], opened["omitted"]) == ("", {}, ["response"])


async def test_last_exchanges_of_a_flow_are_kept(bench: Bench, endpoint: FlowEndpoint, flow_id: str) -> None:
    for _ in range(201):
        await exchange(bench, flow_id, "ping")
    await bench.restart()

    kept = (await bench.control("GET", f"flows/{flow_id}/exchanges")).body["exchanges"]
    newest = (await bench.control("GET", f"flows/{flow_id}/exchanges?after=199&limit=1")).body["exchanges"]
    of_a_message = (await bench.control("GET", f"flows/{flow_id}/exchanges?wamid=wamid.x")).body["exchanges"]

    assert (len(kept), kept[0]["number"], kept[-1]["number"]) == (200, 2, 201)
    assert [one["number"] for one in newest] == [201]
    assert of_a_message == []
    assert kept[-1]["exchange"]["endpoint_uri"] == endpoint.url


@pytest.mark.parametrize("status", ["BLOCKED", "DEPRECATED"])
async def test_flow_that_cannot_be_served_gets_no_request(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str, status: str
) -> None:
    await bench.control("PUT", f"flows/{flow_id}/status", {"status": status})

    failed = await exchange(bench, flow_id, **TOKEN)

    assert (failed["error_type"], failed["attempts"], endpoint.requests) == ("cannot_be_served", 0, [])


async def test_key_of_an_earlier_registration_does_not_count(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str
) -> None:
    registration = {"messaging_product": "whatsapp", "pin": "123456"}
    path = f"{NUMBER_ID}/whatsapp_business_encryption"
    await bench.graph("POST", f"{NUMBER_ID}/register", json=registration)
    first = (await bench.graph("GET", path)).body
    await bench.graph("POST", f"{NUMBER_ID}/deregister")
    await bench.graph("POST", f"{NUMBER_ID}/register", json=registration)

    after = (await bench.graph("GET", path)).body
    failed = await exchange(bench, flow_id, **TOKEN)
    await bench.graph("POST", path, json={"business_public_key": after["business_public_key"]})
    opened = await exchange(bench, flow_id, **TOKEN)

    statuses = [
        one["business_public_key_signature_status"] for one in (first, first["data"][0], after, after["data"][0])
    ]
    assert statuses == ["VALID", "VALID", "MISMATCH", "MISMATCH"]
    assert failed["error_type"] == "public-key-signiture-verification"
    assert opened["error_type"] == ""


async def test_requests_are_signed_by_the_app_that_is_connected_to_the_flow(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str
) -> None:
    await bench.control("PUT", "apps/3000000000000009", {"app_secret": "another"})

    unknown = await bench.graph("POST", flow_id, json={"application_id": "3000000000000010"})
    changed = await bench.graph("POST", flow_id, json={"application_id": "3000000000000009"})
    endpoint.secret = "another"
    await exchange(bench, flow_id, **TOKEN)

    assert "application_id" in unknown.error["message"]
    assert changed.body == {"success": True}
    assert endpoint.signatures[-1] is True
    shown = (await bench.graph("GET", f"{flow_id}?fields=application,health_status")).body
    apps = [one["id"] for one in shown["health_status"]["entities"] if one["entity_type"] == "APP"]
    assert (shown["application"]["id"], apps) == ("3000000000000009", ["3000000000000009"])
    assert APP not in apps


@pytest.mark.parametrize(
    "uri", ["shop.example", "ftp://shop.example", "https://", "https://shop.example/" + "x" * 2048]
)
async def test_endpoint_uri_must_be_one(bench: Bench, flow_id: str, uri: str) -> None:
    refused = await bench.graph("POST", flow_id, json={"endpoint_uri": uri})

    assert (refused.status, refused.error["code"]) == (400, 100)
    assert "endpoint_uri" in refused.error["message"]


async def test_templates_of_the_operator_cannot_be_cloned(bench: Bench) -> None:
    flow = {"name": "copied", "categories": ["OTHER"], "clone_template": "BOOK_APPOINTMENT"}

    refused = await bench.graph("POST", "1000000000000001/flows", json=flow)

    assert "clone_template" in refused.error["message"]


async def test_data_that_the_screen_did_not_get_is_not_sent(bench: Bench, endpoint: FlowEndpoint) -> None:
    content = two_screens()
    asked = content["screens"][0]
    asked["data"] = {"coupon": {"type": "string", "__example__": "x"}, "day": {"type": "string", "__example__": "x"}}
    asked["layout"]["children"][0]["on-click-action"]["payload"] = {"coupon": "${data.coupon}", "day": "${data.day}"}
    flow_id = await publish_booking(bench, endpoint, screens=content["screens"])
    endpoint.respond = lambda request: (
        {"screen": "ASK", "data": {"day": "Monday"}} if request["action"] == "INIT" else answer_booking(request)
    )
    preview = {"flow_id": flow_id, "flow_action": "data_exchange", "version": 1}
    session = (await bench.control("POST", "flow-sessions", preview)).body["session_id"]

    played = await bench.control("POST", f"flow-sessions/{session}/steps", {"steps": [{"tap": "Next"}]})

    assert played.body["view"]["screen_id"] == "TIMES"
    assert endpoint.requests[-1]["data"] == {"day": "Monday"}


async def test_requests_of_a_message_are_events_of_its_trace(
    bench: Bench, endpoint: FlowEndpoint, flow_id: str
) -> None:
    await bench.send_from_phone()
    parameters = {
        "flow_message_version": "3", "flow_id": flow_id, "flow_cta": "Book", "flow_token": "t", "flow_action": "data_exchange",
    }  # fmt: skip
    interactive = {"type": "flow", "body": {"text": "Book"}, "action": {"name": "flow", "parameters": parameters}}
    sent = await bench.send({"type": "interactive", "interactive": interactive})
    wamid = sent.body["messages"][0]["id"]
    endpoint.encrypt = encrypt_by(bytes)

    opened = await bench.control("POST", f"phones/{ANN}/flow", {"message_id": wamid})
    [stored] = (await bench.control("GET", f"messages/{wamid}/exchanges")).body["exchanges"][:1]
    trace: dict[str, Any] = {"operator_message_id": wamid, "events": []}
    client = ApiClient(HttpTransport(bench.base), {})
    may_change = await add_simulated_events(lambda: client, trace)

    assert opened.status == 200, opened.body
    assert (stored["exchange"]["phone"], stored["exchange"]["request"]["action"]) == (ANN, "INIT")
    assert may_change is True
    [event, *_] = trace["events"]
    assert event["event"] == "flow request"
    assert event["detail"].startswith("INIT: status 200 in ")
    assert event["detail"].endswith(" ms. The endpoint did not flip the bits of the initial vector.")
