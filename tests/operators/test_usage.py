"""Limit usage in the operator's headers: it is stored, shown, and respected without further calls."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.operators.conftest import TinyOperator, json_response
from tests.support.builders import ACCOUNT, APP, AT_MS, message, template
from tests.support.manual_clock import ManualClock
from waypost.domain.outcome import OperatorAccepted, OperatorUnavailable, RetryReason, RetryScope
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import GraphRequest, LimitUsage

SENT = {"messages": [{"id": "wamid.1"}]}
LISTED: dict[str, Any] = {"data": []}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(AT_MS)


@pytest.fixture
async def counted(tiny: TinyOperator, clock: ManualClock) -> AsyncIterator[TinyOperator]:
    """The tiny operator behind an adapter with a manual clock."""
    usual = tiny.adapter
    tiny.adapter = CloudOperator(clock, timeout_s=5)
    await tiny.adapter.open()
    yield tiny
    await tiny.adapter.close()
    tiny.adapter = usual


def account_usage(percent: float, *, type: str = "whatsapp_business_management", minutes: int = 0) -> str:
    usage = {
        "type": type,
        "call_count": percent,
        "total_cputime": 1,
        "total_time": 2,
        "estimated_time_to_regain_access": minutes,
    }
    return json.dumps({ACCOUNT.id: [usage]})


async def list_flows(tiny: TinyOperator, account_id: str = ACCOUNT.id) -> object:
    assert tiny.adapter.graph is not None
    request = GraphRequest("GET", f"{account_id}/flows", business=account_id)
    return await tiny.adapter.graph.request(tiny.account, request)


async def test_last_usage_is_stored_by_business_account_and_type(counted: TinyOperator, clock: ManualClock) -> None:
    app = json.dumps({"call_count": 28, "total_time": 25, "total_cputime": 31})
    counted.responses = [
        json_response(LISTED, x_app_usage=app, x_business_use_case_usage=account_usage(40)),
        json_response(LISTED, x_business_use_case_usage=account_usage(41)),
        json_response(LISTED),
    ]

    for _ in range(3):
        await list_flows(counted)
        clock.advance(ms=1000)

    assert counted.adapter.usage(counted.account.id) == (
        LimitUsage("", "", 31, 0, AT_MS),
        LimitUsage(ACCOUNT.id, "whatsapp_business_management", 41, 0, AT_MS + 1000),
    )
    assert counted.adapter.usage("another") == ()


async def test_management_call_near_the_limit_is_not_made_for_a_minute(
    counted: TinyOperator, clock: ManualClock
) -> None:
    counted.responses = [
        json_response(LISTED, x_business_use_case_usage=account_usage(95)),
        json_response(LISTED, x_business_use_case_usage=account_usage(40)),
    ]
    await list_flows(counted)

    listed = await list_flows(counted)
    submitted = await counted.submit()
    edited = await counted.adapter.edit_template(counted.account, template(operator_template_id="77"), {})
    clock.advance(ms=60_000)
    later = await list_flows(counted)

    assert len(counted.requests) == 2
    for outcome in (listed, submitted, edited):
        assert outcome == OperatorUnavailable(
            "the operator was not called: 95 % of the calls are used",
            0,
            60.0,
            RetryReason.CALLS,
            RetryScope.BUSINESS,
            4001,
        )
    assert later == LISTED
    assert await list_flows(counted) == LISTED


async def test_message_is_sent_even_if_management_calls_are_at_their_limit(counted: TinyOperator) -> None:
    app = json.dumps({"call_count": 100})
    usage = account_usage(100, minutes=30)
    counted.responses = [json_response(LISTED, x_app_usage=app, x_business_use_case_usage=usage), json_response(SENT)]
    await list_flows(counted)

    outcome = await counted.send()

    assert outcome == OperatorAccepted("wamid.1")


async def test_message_waits_if_messages_are_near_their_limit(counted: TinyOperator, clock: ManualClock) -> None:
    counted.responses = [
        json_response(SENT, x_business_use_case_usage=account_usage(97.4, type="whatsapp")),
        json_response(SENT, x_business_use_case_usage=account_usage(12, type="whatsapp")),
    ]
    first = await counted.send()

    second = await counted.send()
    clock.advance(ms=60_000)
    third = await counted.send()

    assert (first, third) == (OperatorAccepted("wamid.1"), OperatorAccepted("wamid.1"))
    assert isinstance(second, OperatorUnavailable)
    assert (second.retry_after_s, second.retry_scope) == (60.0, RetryScope.BUSINESS)
    assert len(counted.requests) == 2


async def test_blocked_account_waits_for_the_time_that_the_operator_names(
    counted: TinyOperator, clock: ManualClock
) -> None:
    usage = account_usage(100, minutes=7)
    error = {"error": {"message": "slow down", "code": 80008}}
    counted.responses = [
        json_response(error, 400, x_business_use_case_usage=usage),
        json_response(LISTED, x_business_use_case_usage=account_usage(0)),
    ]
    await list_flows(counted)
    clock.advance(ms=6 * 60_000)

    outcome = await list_flows(counted)

    assert isinstance(outcome, OperatorUnavailable)
    assert outcome.retry_after_s == 60.0
    clock.advance(ms=60_000)
    assert await list_flows(counted) == LISTED


async def test_failed_call_with_a_retry_after_is_not_repeated_before_that_time(
    counted: TinyOperator, clock: ManualClock
) -> None:
    error = {"error": {"message": "slow down", "code": 80007}}
    counted.responses = [json_response(error, 429, Retry_After="20"), json_response(LISTED)]
    failed = await list_flows(counted)
    clock.advance(ms=5000)

    waiting = await list_flows(counted)
    sent_meanwhile = await counted.send()

    assert isinstance(failed, OperatorUnavailable)
    assert isinstance(waiting, OperatorUnavailable)
    assert (failed.retry_after_s, waiting.retry_after_s) == (20.0, 15.0)
    assert not isinstance(sent_meanwhile, OperatorUnavailable)
    clock.advance(ms=15_000)
    assert await list_flows(counted) == LISTED


async def test_business_account_at_its_limit_delays_no_other(counted: TinyOperator) -> None:
    """Both belong to one operator account, and may belong to two partners."""
    error = {"error": {"message": "slow down", "code": 80008}}
    usage = json.dumps({ACCOUNT.id: [{"type": kind, "call_count": 100} for kind in ("whatsapp", "management")]})
    counted.responses = [
        json_response(error, 429, Retry_After="20", x_business_use_case_usage=usage),
        json_response(LISTED),
        json_response(SENT),
    ]
    await list_flows(counted)

    own = [await list_flows(counted), await counted.send()]
    other = await list_flows(counted, "another")
    others_message = await counted.adapter.send(
        counted.account, replace(APP, business_account_id="another"), message(), template=None, reply_to=None, copies={}
    )

    assert all(isinstance(outcome, OperatorUnavailable) for outcome in own)
    assert other == LISTED
    assert others_message == OperatorAccepted("wamid.1")


async def test_other_operator_accounts_do_not_wait(counted: TinyOperator) -> None:
    counted.responses = [json_response(LISTED, x_business_use_case_usage=account_usage(99))]
    await list_flows(counted)
    counted.account = replace(counted.account, id="another")

    outcome = await list_flows(counted)

    assert outcome == LISTED


async def test_account_with_a_new_base_url_has_used_nothing_there(counted: TinyOperator) -> None:
    counted.responses = [json_response(LISTED, x_business_use_case_usage=account_usage(99))]
    await list_flows(counted)
    elsewhere = counted.account.base_url.replace("127.0.0.1", "localhost")
    counted.account = replace(counted.account, base_url=elsewhere)

    outcome = await list_flows(counted)

    assert outcome == LISTED


INVALID_HEADERS = {
    "no_json": "97 %",
    "a_list": "[97]",
    "a_number": "97",
    "no_list": json.dumps({ACCOUNT.id: {"call_count": 97}}),
    "no_object": json.dumps({ACCOUNT.id: ["call_count"]}),
    "texts": json.dumps({ACCOUNT.id: [{"type": 7, "call_count": "many"}]}),
    "deep": "[" * 3000,
}


@pytest.mark.parametrize("name", INVALID_HEADERS)
async def test_invalid_header_is_ignored(counted: TinyOperator, name: str) -> None:
    header = INVALID_HEADERS[name]
    counted.responses = [json_response(LISTED, x_app_usage=header, x_business_use_case_usage=header)]

    outcomes = [await list_flows(counted), await list_flows(counted)]

    assert outcomes == [LISTED] * 2


async def test_unreasonable_waiting_time_is_limited_to_an_hour(counted: TinyOperator, clock: ManualClock) -> None:
    usage = account_usage(100, minutes=10**15)
    counted.responses = [json_response(LISTED, x_business_use_case_usage=usage), json_response(LISTED)]
    await list_flows(counted)

    clock.advance(ms=3_600_000)

    assert await list_flows(counted) == LISTED
