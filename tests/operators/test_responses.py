"""The outcomes that the adapter derives from an operator's responses, and from missing responses."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from tests.operators.conftest import (
    Responder,
    TinyOperator,
    hang_up,
    json_response,
    never_respond,
    send_half_a_response,
    text_response,
)
from tests.support.builders import ACCOUNT, ANN, APP
from tests.support.closed_port import closed_port
from waypost.domain.outcome import (
    INVALID_RESPONSE_CODE,
    OperatorAccepted,
    OperatorRejected,
    OperatorUnavailable,
    Outcome,
    OutcomeUncertain,
    RetryReason,
    RetryScope,
)
from waypost.operators.cloud import http_calls
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.cloud.responses import read_operator_response


def error(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "OAuthException", "code": code, **more}}


SENT = {
    "messaging_product": "whatsapp",
    "contacts": [{"input": f"+{ANN}", "wa_id": "15551239999"}],
    "messages": [{"id": "wamid.1"}],
}


async def test_message_is_posted_to_the_number_of_the_app_with_the_operators_token(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(SENT)]

    outcome = await tiny.send()

    [(method, path, body, headers)] = tiny.requests
    assert outcome == OperatorAccepted("wamid.1", recipient="15551239999")
    assert (method, path) == ("POST", f"/v25.0/{APP.phone_number_id}/messages")
    assert headers["Authorization"] == f"Bearer {tiny.account['token']}"
    assert headers["Content-Type"] == "application/json"
    assert body["to"] == f"+{ANN}"


def unavailable(text: str, code: int, retry_after_s: float | None = None) -> OperatorUnavailable:
    """Return the outcome that the error table has for a code used here."""
    reason, scope, partner_code = {
        4: (RetryReason.CALLS, RetryScope.JOB, 4001),
        190: (RetryReason.CREDENTIAL, RetryScope.ACCOUNT, 500),
        130429: (RetryReason.THROUGHPUT, RetryScope.SOURCE, 130429),
        131000: (RetryReason.OUTAGE, RetryScope.JOB, 131000),
    }[code]
    return OperatorUnavailable(text, code, retry_after_s, reason, scope, partner_code)


# fmt: off
RESPONSES: dict[str, tuple[Responder, Outcome | type[Outcome]]] = {
    "an_id_alone":                         (json_response({"messages": [{"id": "wamid.1"}]}), OperatorAccepted("wamid.1")),
    "a_response_without_id":               (json_response({"messages": []}), OutcomeUncertain),
    "an_empty_object":                     (json_response({}), OutcomeUncertain),
    "a_list":                              (json_response([]), OutcomeUncertain),
    "html_with_200":                       (text_response("<html>", 200), OutcomeUncertain),
    "html_with_502":                       (text_response("<html>Bad gateway</html>", 502), OutcomeUncertain),
    "nothing_with_500":                    (text_response("", 500), OutcomeUncertain),
    "html_with_404":                       (text_response("<html>", 404), OperatorRejected(INVALID_RESPONSE_CODE, "the operator returned status 404 without a reason")),
    "html_with_429":                       (text_response("", 429), unavailable("the operator returned status 429", 4)),
    "a_final_error":                       (json_response(error(131026, "undeliverable"), 400), OperatorRejected(131026, "undeliverable")),
    "an_error_in_200":                     (json_response(error(131026, "undeliverable"), 200), OperatorRejected(131026, "undeliverable")),
    "an_error_in_500":                     (json_response(error(131000, "went wrong"), 500), unavailable("went wrong", 131000)),
    "a_throughput_error":                  (json_response(error(130429, "slow"), 429), unavailable("slow", 130429)),
    "a_retry_after":                       (json_response(error(130429, "slow"), 429, Retry_After="7"), unavailable("slow", 130429, 7.0)),
    "an_invalid_retry_after":              (json_response(error(130429, "slow"), 429, Retry_After="soon"), unavailable("slow", 130429)),
    "an_expired_token":                    (json_response(error(190, "expired"), 401), unavailable("expired", 190)),
    "details":                             (json_response(error(132000, "short", error_data={"details": "long"}), 400), OperatorRejected(132000, "long")),
    "details_as_text":                     (json_response(error(132000, "short", error_data="long"), 400), OperatorRejected(132000, "long")),
    "a_text_for_the_user":                 (json_response(error(132000, "short", error_user_msg="friendly"), 400), OperatorRejected(132000, "friendly")),
    "an_error_without_text":               (json_response({"error": {"code": 131026}}, 400), OperatorRejected(131026, "rejected without a reason")),
    "an_error_without_code":               (json_response({"error": {"message": "no"}}, 200), OutcomeUncertain),
    "an_error_that_is_a_text":             (json_response({"error": "no"}, 200), OutcomeUncertain),
    "an_error_of_a_gateway":               (json_response({"error": "bad gateway"}, 502), OutcomeUncertain),
    "an_error_of_a_proxy":                 (json_response({"error": "unauthorized"}, 401), OperatorRejected(INVALID_RESPONSE_CODE, "the operator returned status 401 without a reason")),
    "a_limit_as_text":                     (json_response({"error": "slow down"}, 429), unavailable("the operator returned status 429", 4)),
    "a_code_that_is_a_text":               (json_response({"error": {"message": "x", "code": "2"}}, 500), OutcomeUncertain),
    "an_id_beside_an_error":               (json_response({"error": "no", **SENT}, 200), OutcomeUncertain),
    "an_id_beside_an_error_that_may_pass": (json_response({**error(131016), **SENT}, 500), OutcomeUncertain),
    "a_code_that_is_a_boolean":            (json_response({"error": {"message": "x", "code": True}}, 200), OutcomeUncertain),
    "an_id_behind_a_redirect":             (json_response(SENT, 302), OutcomeUncertain),
    "a_redirect":                          (text_response("", 302), OutcomeUncertain),
    "a_broken_connection":                 (hang_up, OutcomeUncertain),
    "half_a_response":                     (send_half_a_response, OutcomeUncertain),
    "no_response":                         (never_respond, OutcomeUncertain),
    "nothing_with_429_and_a_retry_after":  (text_response("", 429, Retry_After="30"), unavailable("the operator returned status 429", 4, 30.0)),
    "too_early":                           (text_response("", 425), unavailable("the operator returned status 425", 4)),
    "a_body_too_large":                    (text_response("<html>", 413), OperatorRejected(INVALID_RESPONSE_CODE, "the operator returned status 413 without a reason")),
    "a_gateway_timeout":                   (text_response("", 408), OutcomeUncertain),
    "nothing_with_200":                    (text_response("", 200), OutcomeUncertain),
    "nothing_with_204":                    (text_response("", 204), OutcomeUncertain),
    "html_with_503":                       (text_response("<html>Service unavailable</html>", 503), OutcomeUncertain),
    "truncated_json":                      (text_response('{"messages":[{"id":"wamid.1"', 200), OutcomeUncertain),
    "truncated_error":                     (text_response('{"error":{"code":131026', 400), OperatorRejected(INVALID_RESPONSE_CODE, "the operator returned status 400 without a reason")),
    "a_permanent_redirect":                (text_response("", 308), OutcomeUncertain),
    "an_unknown_code":                     (json_response(error(999999, "new"), 400), OperatorRejected(999999, "new")),
    "an_unknown_code_in_200":              (json_response(error(999999, "new"), 200), OperatorRejected(999999, "new")),
    "an_unknown_code_in_500":              (json_response(error(999999, "new"), 500), OutcomeUncertain),
    "an_unknown_transient_code":           (json_response(error(999999, "new", is_transient=True), 500), OperatorUnavailable("new", 999999)),
    "a_known_code_marked_transient":       (json_response(error(131026, "no", is_transient=True), 500), OperatorRejected(131026, "no")),
    "an_invalid_subcode":                  (json_response(error(100, "no", error_subcode={"a": []}), 400), OperatorRejected(100, "no")),
    "a_taken_name":                        (json_response(error(100, "taken", error_subcode=2388024), 400), OperatorRejected(100, "taken")),
    "retry_once":                          (json_response(error(131053, "media"), 400), OperatorRejected(131053, "media", retry_once=True, is_about_media=True)),
    "our_permission":                      (json_response(error(10, "permission"), 403), OperatorRejected(500, "permission", operator_code=10)),
    "an_error_with_half_an_emoji":         (text_response(r'{"error":{"code":131026,"message":"cut \ud83d"}}', 400), OperatorRejected(131026, "cut \ufffd")),
    "a_limit_with_half_an_emoji":          (text_response(r'{"error":{"code":130429,"message":"slow \ud83d"}}', 429), unavailable("slow \ufffd", 130429)),
    "an_error_with_nan":                   (text_response('{"error":{"code":131026,"message":"no","x":NaN}}', 400), OperatorRejected(131026, "no")),
    "json_nested_too_deep":                (text_response("[" * 100_000, 200), OutcomeUncertain),
}
# fmt: on


@pytest.mark.parametrize("name", RESPONSES)
async def test_response_to_a_message_has_its_outcome(tiny: TinyOperator, name: str) -> None:
    respond, expected = RESPONSES[name]
    tiny.responses = [respond]

    outcome = await tiny.send()

    if isinstance(expected, type):
        assert isinstance(outcome, expected)
    else:
        assert outcome == expected
    assert len(tiny.requests) == 1


async def test_message_to_an_operator_that_does_not_listen_is_unavailable_and_not_uncertain(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(SENT)]

    with closed_port() as port:
        tiny.account = replace(tiny.account, base_url=f"http://127.0.0.1:{port}")
        outcome = await tiny.send()

    assert isinstance(outcome, OperatorUnavailable)
    assert (outcome.code, outcome.retry_reason) == (0, RetryReason.NOT_REACHED)


RETRY_AFTER_DATES: dict[str, tuple[dict[str, str], float | None]] = {
    "by_the_operators_clock": (
        {"Date": "Sun, 22 Nov 2026 10:00:00 GMT", "Retry_After": "Sun, 22 Nov 2026 10:01:30 GMT"},
        90.0,
    ),
    "in_the_past": ({"Date": "Sun, 22 Nov 2026 10:00:00 GMT", "Retry_After": "Sun, 22 Nov 2026 09:00:00 GMT"}, 0.0),
    "not_a_date": ({"Retry_After": "tomorrow"}, None),
    "an_invalid_year": ({"Retry_After": "Sun, 22 Nov 99999 10:00:00 GMT"}, None),
}


@pytest.mark.parametrize("name", RETRY_AFTER_DATES)
async def test_retry_after_may_be_a_date(tiny: TinyOperator, name: str) -> None:
    headers, expected = RETRY_AFTER_DATES[name]
    tiny.responses = [json_response(error(130429, "slow"), 429, **headers)]

    outcome = await tiny.send()

    assert outcome == unavailable("slow", 130429, expected)


async def test_successive_calls_share_a_connection(tiny: TinyOperator) -> None:
    ports: set[int] = set()

    async def respond(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.json_response(SENT)

    tiny.responses = [respond]

    for _ in range(3):
        await tiny.send()

    assert len(ports) == 1


async def test_each_account_has_its_own_base_url_version_and_token(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(SENT)]
    first = tiny.account
    await tiny.send()

    tiny.account = replace(first.replace_fields(version="v26.0", token="another-token"), id="second")
    await tiny.send()

    versions_and_tokens = [(path.split("/")[1], headers["Authorization"]) for _, path, _, headers in tiny.requests]
    assert versions_and_tokens == [("v25.0", "Bearer operator-token"), ("v26.0", "Bearer another-token")]


async def test_call_that_gets_no_free_connection_in_time_is_unavailable_and_not_uncertain(
    tiny: TinyOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_calls, "CONNECT_S", 0.1)
    monkeypatch.setattr(http_calls, "SEND_CONNECTIONS_PER_HOST", 1)
    adapter = CloudOperator(timeout_s=2)
    await adapter.open()
    received, proceed = asyncio.Event(), asyncio.Event()

    async def respond(_request: web.Request) -> web.StreamResponse:
        received.set()
        await proceed.wait()
        return web.json_response(SENT)

    tiny.responses = [respond]
    tiny.adapter, usual = adapter, tiny.adapter
    first = asyncio.create_task(tiny.send())
    await received.wait()

    second = await tiny.send()

    proceed.set()
    assert isinstance(second, OperatorUnavailable)
    assert second.retry_reason is RetryReason.NOT_REACHED
    assert isinstance(await first, OperatorAccepted)
    assert len(tiny.requests) == 1
    await adapter.close()
    tiny.adapter = usual


async def test_invalid_base_url_is_unavailable_and_never_called(tiny: TinyOperator) -> None:
    tiny.account = replace(tiny.account, base_url="graph.example")

    outcome = await tiny.send()

    assert isinstance(outcome, OperatorUnavailable)
    assert outcome.retry_reason is RetryReason.NOT_REACHED


async def test_template_is_posted_to_its_business_account(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"id": "77", "status": "pending", "category": "UTILITY"})]

    outcome = await tiny.submit()

    [(method, path, body, _)] = tiny.requests
    assert outcome == OperatorAccepted("77", status="PENDING", category="UTILITY")
    assert (method, path) == ("POST", f"/v25.0/{ACCOUNT.id}/message_templates")
    assert body["name"] == "order_ready"


@pytest.mark.parametrize(
    "respond",
    [
        hang_up,
        send_half_a_response,
        never_respond,
        text_response("<html>", 502),
        json_response({}),
        json_response({"error": "bad gateway"}, 502),
        json_response({"error": {"message": "x", "code": "2"}}, 500),
    ],
    ids=["reset", "half", "no_response", "html", "no_id", "gateway", "code_as_text"],
)
async def test_template_with_a_lost_response_is_submitted_again(tiny: TinyOperator, respond: Responder) -> None:
    tiny.responses = [respond]

    outcome = await tiny.submit()

    assert isinstance(outcome, OperatorUnavailable)


async def test_template_that_breaks_a_rule_is_rejected_with_the_operators_text(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(error(100, "short", error_user_msg="Add a sample."), 400)]

    outcome = await tiny.submit()

    assert outcome == OperatorRejected(100, "Add a sample.")


async def test_template_that_exists_already_is_the_one_we_submitted(tiny: TinyOperator) -> None:
    others = {"id": "76", "name": "order_ready_2", "language": "en_US", "status": "APPROVED"}
    german = {"id": "75", "name": "order_ready", "language": "de", "status": "APPROVED"}
    ours = {"id": "77", "name": "order_ready", "language": "en_US", "status": "APPROVED"}
    tiny.responses = [
        json_response(error(100, "taken", error_subcode=2388024), 400),
        json_response({"data": [others, german, ours]}),
    ]

    outcome = await tiny.submit()

    assert outcome == OperatorAccepted("77", status="APPROVED")
    assert tiny.requests[1][:2] == ("GET", f"/v25.0/{ACCOUNT.id}/message_templates?name=order_ready&limit=100")


async def test_template_that_exists_already_and_is_not_listed_is_rejected(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(error(100, "taken", error_subcode=2388024), 400), json_response({"data": []})]

    outcome = await tiny.submit()

    assert isinstance(outcome, OperatorRejected)


async def test_list_of_templates_with_a_lost_response_is_unavailable(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(error(100, "taken", error_subcode=2388024), 400), hang_up]

    outcome = await tiny.submit()

    assert isinstance(outcome, OperatorUnavailable)


@pytest.mark.parametrize(
    "text",
    [
        b"1",
        b"1.",
        b"-1",
        b"1e",
        b'\\"',
        b"\\",
        b'"',
        b"[",
        b'{"a":',
        b"1,",
        b":",
        b"NaN,",
        b"\\ud83d",
        b"\xed\xa0",
        b"1.2.3e1000 ",
    ],
)
@pytest.mark.parametrize("begins", [b"", b'["'])
def test_no_text_takes_longer_than_its_length_explains(begins: bytes, text: bytes) -> None:
    """A text that is scanned again from each of its bytes would take hours."""
    outcome = read_operator_response(200, begins + text * (250_000 // len(text)), None)

    assert outcome == OutcomeUncertain("the operator gave an unreadable response with status 200")
