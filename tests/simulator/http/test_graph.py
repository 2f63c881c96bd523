"""The Graph API as a whole: access, fields shown, and robustness against junk."""

import io
import json
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulator.conftest import BUSINESS, NUMBER_ID, TOKEN, WABA, Bench
from waypost.simulator import AccountSeed, NumberSeed


async def test_missing_or_unknown_token_is_401(bench: Bench) -> None:
    without = await bench.request("GET", f"/v25.0/{WABA}")
    unknown = await bench.graph("GET", WABA, token="other")
    in_query = await bench.request("GET", f"/v23.0/{WABA}?access_token={TOKEN}")

    for rejected in (without, unknown):
        assert (rejected.status, rejected.error["code"]) == (401, 190)
        assert rejected.error["type"] == "OAuthException"
        assert rejected.error["fbtrace_id"]
    assert in_query.status == 200
    assert in_query.headers["facebook-api-version"] == "v23.0"


@pytest.mark.parametrize(("method", "verb"), [("GET", "get"), ("POST", "post"), ("DELETE", "delete")])
async def test_unknown_object_has_the_documented_error(bench: Bench, method: str, verb: str) -> None:
    response = await bench.graph(method, "999")

    assert response.status == 400
    del response.error["fbtrace_id"]
    assert response.error == {
        "message": f"Unsupported {verb} request. Object with ID '999' does not exist, cannot be "
        "loaded due to missing permissions, or does not support this operation.",
        "type": "GraphMethodException",
        "code": 100,
        "error_subcode": 33,
    }


async def test_object_of_another_account_does_not_exist(bench: Bench) -> None:
    other = AccountSeed("1000000000000011", "Two", "", "token-2", "3000000000000033", "s", "v", "")
    numbers = [NumberSeed("2000000000000022", other.waba_id, "15550002222", "Shop Two")]
    await bench.simulator.seed(other, numbers)
    message = {"messaging_product": "whatsapp", "to": "15551234567", "text": {"body": "x"}}

    shown = await bench.graph("GET", "2000000000000022")
    sent = await bench.graph("POST", "2000000000000022/messages", json=message)

    assert shown.error["error_subcode"] == sent.error["error_subcode"] == 33


async def test_account_shows_its_fields(bench: Bench) -> None:
    default = await bench.graph("GET", WABA)
    unknown = await bench.graph("GET", f"{WABA}?fields=currency,weather{{name}}")
    chosen = await bench.graph("GET", f"{WABA}?fields=currency")

    assert default.body == {
        "id": WABA,
        "name": "One",
        "timezone_id": "1",
        "message_template_namespace": "58e6d318_b627_4112_b9c7_2961197553ea",
    }
    assert "weather" in unknown.error["message"]
    assert chosen.body == {"id": WABA, "currency": "USD"}


async def test_number_shows_its_fields(bench: Bench) -> None:
    shown = await bench.graph("GET", NUMBER_ID)
    chosen = await bench.graph("GET", f"{NUMBER_ID}?fields=throughput,status")
    listed = await bench.graph("GET", f"{WABA}/phone_numbers")

    assert shown.body == {
        "verified_name": "Shop One",
        "code_verification_status": "VERIFIED",
        "display_phone_number": "+1 555-000-1111",
        "quality_rating": "GREEN",
        "platform_type": "CLOUD_API",
        "throughput": {"level": "STANDARD"},
        "webhook_configuration": {"application": bench.receiver.uri},
        "id": NUMBER_ID,
    }
    assert chosen.body == {"id": NUMBER_ID, "throughput": {"level": "STANDARD"}, "status": "CONNECTED"}
    assert listed.body["data"] == [shown.body]
    assert listed.body["paging"]["cursors"]


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=-1", "after=%C3%BC", "after=%25%25", "fields=nothing"])
async def test_bad_query_is_code_100(bench: Bench, query: str) -> None:
    response = await bench.graph("GET", f"{WABA}/phone_numbers?{query}")

    assert response.status in (200, 400)
    if response.status == 400:
        assert response.error["code"] == 100


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"to":"\\ud800"}',
        b"[" * 100_000,
        b'{"a":1e999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b"to=15551234567",
        b"",
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
async def test_unreadable_body_is_code_100(bench: Bench, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}

    response = await bench.graph("POST", f"{NUMBER_ID}/messages", data=body, headers=headers)

    assert (response.status, response.error["code"]) == (400, 100)


async def test_large_body_is_rejected(bench: Bench) -> None:
    body = io.BytesIO(b"x" * (5 * 1024 * 1024))

    response = await bench.graph("POST", f"{NUMBER_ID}/messages", data=body)

    assert (response.status, response.error["code"]) == (400, 100)


async def test_form_body_is_accepted_like_json(bench: Bench) -> None:
    await bench.send_from_phone()
    form = {"messaging_product": "whatsapp", "to": "15551234567", "text": '{"body":"x"}'}

    response = await bench.graph("POST", f"{NUMBER_ID}/messages", data=form)

    assert response.status == 200


async def test_unknown_path_is_rejected(bench: Bench) -> None:
    deep = await bench.graph("GET", f"{WABA}/a/b/c")
    edge = await bench.graph("GET", f"{WABA}/nothing")
    root = await bench.request("GET", "/")

    assert deep.error["code"] == 2500
    assert edge.error["error_subcode"] == 33
    assert root.status == 400


_MEMBERS = st.sampled_from(
    [
        "to",
        "type",
        "text",
        "body",
        "template",
        "name",
        "language",
        "code",
        "components",
        "parameters",
        "payload",
        "index",
        "sub_type",
        "messaging_product",
        "header",
        "button",
        "buttons",
        "format",
        "example",
        "body_text",
        "header_text",
        "header_handle",
        "url",
        "phone_number",
        "category",
        "parameter_format",
        "context",
        "message_id",
        "status",
        "interactive",
        "action",
        "sections",
        "image",
        "link",
        "id",
        "location",
        "latitude",
        "contacts",
        "cards",
        "biz_opaque_callback_data",
        "hsm_id",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_MEMBERS, inner, max_size=5),
    max_leaves=15,
)
_TYPES = st.sampled_from(
    [
        "text",
        "template",
        "image",
        "location",
        "contacts",
        "reaction",
        "interactive",
        "sticker",
        "body",
        "header",
        "button",
        "BODY",
        "HEADER",
        "BUTTONS",
        "URL",
        "QUICK_REPLY",
        "COPY_CODE",
        "PHONE_NUMBER",
        "OTP",
        "carousel",
        "CAROUSEL",
    ]
)


def _typed(value: Any, kinds: list[str]) -> Any:
    """Return the value with known types where a type is expected, so that junk passes the first checks."""
    if isinstance(value, list):
        return [_typed(inner, kinds) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        typed = {name: _typed(inner, kinds) for name, inner in members.items()}
        return {**typed, "type": kinds[len(typed) % len(kinds)]}
    return value


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(value=st.dictionaries(_MEMBERS, _VALUES, max_size=6), kinds=st.lists(_TYPES, min_size=1, max_size=4))
def test_any_junk_returns_a_response_in_the_documented_shape(
    post_junk: Any, value: dict[str, Any], kinds: list[str]
) -> None:
    typed = _typed(value, kinds)
    for body in (
        {**typed, "messaging_product": "whatsapp", "to": "15551234567"},
        {**typed, "name": "x", "language": "en", "category": "UTILITY"},
        {**typed, "messaging_product": "whatsapp", "to": "15551234567", "type": "template",
         "template": {"name": "seeded", "language": {"code": "en_US"}, "components": [typed]}},
        typed,
    ):  # fmt: skip
        for path in (f"{NUMBER_ID}/messages", f"{WABA}/message_templates"):
            status, response = post_junk(path, json.dumps(body).encode())
            assert status in (200, 400, 404, 429), response
            assert status == 200 or response["error"]["fbtrace_id"]


async def test_business_number_is_shown_as_digits(bench: Bench) -> None:
    state = await bench.control("GET", "state")

    [account] = state.body["accounts"]
    assert account["numbers"][0]["phone_number"] == BUSINESS
