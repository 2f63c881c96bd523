"""What the adapter makes of an operator's answers, and of those that never come."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from tests.operators.conftest import Answering, TinyOperator, half_an_answer, hang_up, json_answer, never, text_answer
from tests.support.builders import ACCOUNT, ANN, APP
from tests.support.closed_port import refusing_port
from waypost.domain.outcome import (
    INVALID_RESPONSE_CODE,
    Outcome,
    Rejected,
    RetryReason,
    RetryScope,
    Sent,
    Unavailable,
    Uncertain,
)
from waypost.operators.cloud import http_calls
from waypost.operators.cloud.adapter import CloudOperator


def error(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "OAuthException", "code": code, **more}}


SENT = {
    "messaging_product": "whatsapp",
    "contacts": [{"input": f"+{ANN}", "wa_id": "15551239999"}],
    "messages": [{"id": "wamid.1"}],
}


async def test_message_is_posted_to_the_number_of_the_app_with_the_operators_token(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(SENT)]

    outcome = await tiny.send()

    [(method, path, body, headers)] = tiny.requests
    assert outcome == Sent("wamid.1", recipient="15551239999")
    assert (method, path) == ("POST", f"/v25.0/{APP.phone_number_id}/messages")
    assert headers["Authorization"] == f"Bearer {tiny.account['token']}"
    assert headers["Content-Type"] == "application/json"
    assert body["to"] == f"+{ANN}"


def refused(text: str, code: int, wish_s: float | None = None) -> Unavailable:
    """What the table makes of the codes used here."""
    again, waits, told = {
        4: (RetryReason.CALLS, RetryScope.JOB, 4001),
        190: (RetryReason.CREDENTIAL, RetryScope.ACCOUNT, 500),
        130429: (RetryReason.THROUGHPUT, RetryScope.SOURCE, 130429),
        131000: (RetryReason.OUTAGE, RetryScope.JOB, 131000),
    }[code]
    return Unavailable(text, code, wish_s, again, waits, told)


# fmt: off
ANSWERS: dict[str, tuple[Answering, Outcome | type[Outcome]]] = {
    "an_id_alone":             (json_answer({"messages": [{"id": "wamid.1"}]}), Sent("wamid.1")),
    "an_answer_without_id":    (json_answer({"messages": []}), Uncertain),
    "an_empty_object":         (json_answer({}), Uncertain),
    "a_list":                  (json_answer([]), Uncertain),
    "html_with_200":           (text_answer("<html>", 200), Uncertain),
    "html_with_502":           (text_answer("<html>Bad gateway</html>", 502), Uncertain),
    "nothing_with_500":        (text_answer("", 500), Uncertain),
    "html_with_404":           (text_answer("<html>", 404), Rejected(INVALID_RESPONSE_CODE, "the operator answered 404 without a reason")),
    "html_with_429":           (text_answer("", 429), refused("the operator answered 429", 4)),
    "a_final_error":           (json_answer(error(131026, "undeliverable"), 400), Rejected(131026, "undeliverable")),
    "an_error_in_200":         (json_answer(error(131026, "undeliverable"), 200), Rejected(131026, "undeliverable")),
    "an_error_in_500":         (json_answer(error(131000, "went wrong"), 500), refused("went wrong", 131000)),
    "a_throughput_error":      (json_answer(error(130429, "slow"), 429), refused("slow", 130429)),
    "a_wish":                  (json_answer(error(130429, "slow"), 429, Retry_After="7"), refused("slow", 130429, 7.0)),
    "a_wish_that_is_no_number": (json_answer(error(130429, "slow"), 429, Retry_After="soon"), refused("slow", 130429)),
    "an_expired_token":        (json_answer(error(190, "expired"), 401), refused("expired", 190)),
    "details":                 (json_answer(error(132000, "short", error_data={"details": "long"}), 400), Rejected(132000, "long")),
    "details_as_text":         (json_answer(error(132000, "short", error_data="long"), 400), Rejected(132000, "long")),
    "a_text_for_the_user":     (json_answer(error(132000, "short", error_user_msg="friendly"), 400), Rejected(132000, "friendly")),
    "an_error_without_text":   (json_answer({"error": {"code": 131026}}, 400), Rejected(131026, "refused without a reason")),
    "an_error_without_code":   (json_answer({"error": {"message": "no"}}, 200), Uncertain),
    "an_error_that_is_a_text": (json_answer({"error": "no"}, 200), Uncertain),
    "an_error_of_a_gateway":   (json_answer({"error": "bad gateway"}, 502), Uncertain),
    "a_refusal_of_a_proxy":    (json_answer({"error": "unauthorized"}, 401), Rejected(INVALID_RESPONSE_CODE, "the operator answered 401 without a reason")),
    "a_limit_as_text":         (json_answer({"error": "slow down"}, 429), refused("the operator answered 429", 4)),
    "a_code_that_is_a_text":   (json_answer({"error": {"message": "x", "code": "2"}}, 500), Uncertain),
    "an_id_beside_an_error":   (json_answer({"error": "no", **SENT}, 200), Uncertain),
    "an_id_beside_an_error_that_may_pass": (json_answer({**error(131016), **SENT}, 500), Uncertain),
    "a_code_that_is_a_boolean": (json_answer({"error": {"message": "x", "code": True}}, 200), Uncertain),
    "an_id_behind_a_redirect": (json_answer(SENT, 302), Uncertain),
    "a_redirect":              (text_answer("", 302), Uncertain),
    "a_broken_connection":     (hang_up, Uncertain),
    "half_an_answer":          (half_an_answer, Uncertain),
    "silence":                 (never, Uncertain),
    "nothing_with_429_and_a_wish": (text_answer("", 429, Retry_After="30"), refused("the operator answered 429", 4, 30.0)),
    "too_early":               (text_answer("", 425), refused("the operator answered 425", 4)),
    "a_body_too_large":        (text_answer("<html>", 413), Rejected(INVALID_RESPONSE_CODE, "the operator answered 413 without a reason")),
    "a_gateway_out_of_time":   (text_answer("", 408), Uncertain),
    "nothing_with_200":        (text_answer("", 200), Uncertain),
    "nothing_with_204":        (text_answer("", 204), Uncertain),
    "html_with_503":           (text_answer("<html>Service unavailable</html>", 503), Uncertain),
    "truncated_json":          (text_answer('{"messages":[{"id":"wamid.1"', 200), Uncertain),
    "truncated_error":         (text_answer('{"error":{"code":131026', 400), Rejected(INVALID_RESPONSE_CODE, "the operator answered 400 without a reason")),
    "a_permanent_redirect":    (text_answer("", 308), Uncertain),
    "an_unknown_code":         (json_answer(error(999999, "new"), 400), Rejected(999999, "new")),
    "an_unknown_code_in_200":  (json_answer(error(999999, "new"), 200), Rejected(999999, "new")),
    "an_unknown_code_in_500":  (json_answer(error(999999, "new"), 500), Uncertain),
    "an_unknown_passing_code": (json_answer(error(999999, "new", is_transient=True), 500), Unavailable("new", 999999)),
    "a_known_code_called_passing": (json_answer(error(131026, "no", is_transient=True), 500), Rejected(131026, "no")),
    "a_subcode_that_is_none":  (json_answer(error(100, "no", error_subcode={"a": []}), 400), Rejected(100, "no")),
    "a_taken_name":            (json_answer(error(100, "taken", error_subcode=2388024), 400), Rejected(100, "taken")),
    "one_more_try":            (json_answer(error(131053, "media"), 400), Rejected(131053, "media", one_more_try=True, is_about_media=True)),
    "our_permission":          (json_answer(error(10, "permission"), 403), Rejected(500, "permission", operator_code=10)),
    "json_nested_too_deep":    (text_answer("[" * 100_000, 200), Uncertain),
}
# fmt: on


@pytest.mark.parametrize("name", ANSWERS)
async def test_answer_to_a_message_is_judged(tiny: TinyOperator, name: str) -> None:
    answer, expected = ANSWERS[name]
    tiny.answers = [answer]

    outcome = await tiny.send()

    if isinstance(expected, type):
        assert isinstance(outcome, expected)
    else:
        assert outcome == expected
    assert len(tiny.requests) == 1


async def test_message_to_an_operator_that_does_not_listen_was_certainly_not_sent(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(SENT)]

    with refusing_port() as port:
        tiny.account = replace(tiny.account, base_url=f"http://127.0.0.1:{port}")
        outcome = await tiny.send()

    assert isinstance(outcome, Unavailable)
    assert (outcome.code, outcome.retry_reason) == (0, RetryReason.NOT_REACHED)


DATED: dict[str, tuple[dict[str, str], float | None]] = {
    "by_the_operators_clock": (
        {"Date": "Sun, 22 Nov 2026 10:00:00 GMT", "Retry_After": "Sun, 22 Nov 2026 10:01:30 GMT"},
        90.0,
    ),
    "over_already": ({"Date": "Sun, 22 Nov 2026 10:00:00 GMT", "Retry_After": "Sun, 22 Nov 2026 09:00:00 GMT"}, 0.0),
    "no_date": ({"Retry_After": "tomorrow"}, None),
    "a_year_that_is_none": ({"Retry_After": "Sun, 22 Nov 99999 10:00:00 GMT"}, None),
}


@pytest.mark.parametrize("name", DATED)
async def test_wish_may_be_a_date(tiny: TinyOperator, name: str) -> None:
    headers, expected = DATED[name]
    tiny.answers = [json_answer(error(130429, "slow"), 429, **headers)]

    outcome = await tiny.send()

    assert outcome == refused("slow", 130429, expected)


async def test_calls_after_one_another_share_a_connection(tiny: TinyOperator) -> None:
    ports: set[int] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.json_response(SENT)

    tiny.answers = [answer]

    for _ in range(3):
        await tiny.send()

    assert len(ports) == 1


async def test_each_account_has_an_address_a_version_and_a_token_of_its_own(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(SENT)]
    first = tiny.account
    await tiny.send()

    tiny.account = replace(first.replace_fields(version="v26.0", token="another-token"), id="second")
    await tiny.send()

    told = [(path.split("/")[1], headers["Authorization"]) for _, path, _, headers in tiny.requests]
    assert told == [("v25.0", "Bearer operator-token"), ("v26.0", "Bearer another-token")]


async def test_call_that_finds_no_free_connection_in_time_was_certainly_not_made(
    tiny: TinyOperator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_calls, "CONNECT_S", 0.1)
    monkeypatch.setattr(http_calls, "OPERATOR_CONNECTIONS_PER_HOST", 1)
    adapter = CloudOperator(timeout_s=2)
    await adapter.open()
    came, go_on = asyncio.Event(), asyncio.Event()

    async def answer(_request: web.Request) -> web.StreamResponse:
        came.set()
        await go_on.wait()
        return web.json_response(SENT)

    tiny.answers = [answer]
    tiny.adapter, usual = adapter, tiny.adapter
    first = asyncio.create_task(tiny.send())
    await came.wait()

    second = await tiny.send()

    go_on.set()
    assert isinstance(second, Unavailable)
    assert second.retry_reason is RetryReason.NOT_REACHED
    assert isinstance(await first, Sent)
    assert len(tiny.requests) == 1
    await adapter.close()
    tiny.adapter = usual


async def test_address_that_is_none_is_never_sent_to(tiny: TinyOperator) -> None:
    tiny.account = replace(tiny.account, base_url="graph.example")

    outcome = await tiny.send()

    assert isinstance(outcome, Unavailable)
    assert outcome.retry_reason is RetryReason.NOT_REACHED


async def test_template_is_posted_to_its_business_account(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"id": "77", "status": "pending", "category": "UTILITY"})]

    outcome = await tiny.submit()

    [(method, path, body, _)] = tiny.requests
    assert outcome == Sent("77", status="PENDING", category="UTILITY")
    assert (method, path) == ("POST", f"/v25.0/{ACCOUNT.id}/message_templates")
    assert body["name"] == "order_ready"


@pytest.mark.parametrize(
    "answer",
    [
        hang_up,
        half_an_answer,
        never,
        text_answer("<html>", 502),
        json_answer({}),
        json_answer({"error": "bad gateway"}, 502),
        json_answer({"error": {"message": "x", "code": "2"}}, 500),
    ],
    ids=["reset", "half", "silence", "html", "no_id", "gateway", "code_as_text"],
)
async def test_template_whose_answer_was_lost_is_handed_in_again(tiny: TinyOperator, answer: Answering) -> None:
    tiny.answers = [answer]

    outcome = await tiny.submit()

    assert isinstance(outcome, Unavailable)


async def test_refused_template_is_rejected_with_the_operators_words(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(error(100, "short", error_user_msg="Add a sample."), 400)]

    outcome = await tiny.submit()

    assert outcome == Rejected(100, "Add a sample.")


async def test_template_that_is_there_already_is_the_one_we_handed_in(tiny: TinyOperator) -> None:
    others = {"id": "76", "name": "order_ready_2", "language": "en_US", "status": "APPROVED"}
    german = {"id": "75", "name": "order_ready", "language": "de", "status": "APPROVED"}
    ours = {"id": "77", "name": "order_ready", "language": "en_US", "status": "APPROVED"}
    tiny.answers = [
        json_answer(error(100, "taken", error_subcode=2388024), 400),
        json_answer({"data": [others, german, ours]}),
    ]

    outcome = await tiny.submit()

    assert outcome == Sent("77", status="APPROVED")
    assert tiny.requests[1][:2] == ("GET", f"/v25.0/{ACCOUNT.id}/message_templates?name=order_ready&limit=100")


async def test_template_that_is_there_already_and_not_listed_is_rejected(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(error(100, "taken", error_subcode=2388024), 400), json_answer({"data": []})]

    outcome = await tiny.submit()

    assert isinstance(outcome, Rejected)


async def test_lost_list_of_templates_is_asked_for_again(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(error(100, "taken", error_subcode=2388024), 400), hang_up]

    outcome = await tiny.submit()

    assert isinstance(outcome, Unavailable)
