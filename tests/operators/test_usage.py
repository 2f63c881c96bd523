"""What the operator's headers say of its limits: kept, shown, and respected without asking again."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.operators.conftest import TinyOperator, json_answer
from tests.support.builders import ACCOUNT, APP, AT_MS, message, template
from waypost.base.clock import ManualClock
from waypost.domain.direct_calls import ListFlows, RawList
from waypost.domain.outcome import RetryReason, RetryScope, Sent, Unavailable
from waypost.operators.cloud.adapter import CloudOperator
from waypost.operators.contract import LimitUsage

SENT = {"messages": [{"id": "wamid.1"}]}
LISTED: dict[str, Any] = {"data": []}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(AT_MS)


@pytest.fixture
async def counted(tiny: TinyOperator, clock: ManualClock) -> AsyncIterator[TinyOperator]:
    """The tiny operator behind an adapter whose clock stands still."""
    usual = tiny.adapter
    tiny.adapter = CloudOperator(clock, timeout_s=5)
    await tiny.adapter.open()
    yield tiny
    await tiny.adapter.close()
    tiny.adapter = usual


def of_account(percent: float, *, type: str = "whatsapp_business_management", minutes: int = 0) -> str:
    usage = {
        "type": type,
        "call_count": percent,
        "total_cputime": 1,
        "total_time": 2,
        "estimated_time_to_regain_access": minutes,
    }
    return json.dumps({ACCOUNT.id: [usage]})


async def ask(tiny: TinyOperator) -> object:
    return await tiny.adapter.call(tiny.account, ListFlows(ACCOUNT.id))


async def test_what_was_last_seen_is_kept_by_business_and_type(counted: TinyOperator, clock: ManualClock) -> None:
    app = json.dumps({"call_count": 28, "total_time": 25, "total_cputime": 31})
    counted.answers = [
        json_answer(LISTED, x_app_usage=app, x_business_use_case_usage=of_account(40)),
        json_answer(LISTED, x_business_use_case_usage=of_account(41)),
        json_answer(LISTED),
    ]

    for _ in range(3):
        await ask(counted)
        clock.advance(ms=1000)

    assert counted.adapter.usage(counted.account.id) == (
        LimitUsage("", "", 31, 0, AT_MS),
        LimitUsage(ACCOUNT.id, "whatsapp_business_management", 41, 0, AT_MS + 1000),
    )
    assert counted.adapter.usage("another") == ()


async def test_management_call_near_the_limit_is_not_made_for_a_minute(
    counted: TinyOperator, clock: ManualClock
) -> None:
    counted.answers = [
        json_answer(LISTED, x_business_use_case_usage=of_account(95)),
        json_answer(LISTED, x_business_use_case_usage=of_account(40)),
    ]
    await ask(counted)

    asked = await ask(counted)
    submitted = await counted.submit()
    edited = await counted.adapter.edit_template(counted.account, template(operator_template_id="77"), {})
    clock.advance(ms=60_000)
    later = await ask(counted)

    assert len(counted.requests) == 2
    for outcome in (asked, submitted, edited):
        assert outcome == Unavailable(
            "the operator was not called: 95 % of the calls are used",
            0,
            60.0,
            RetryReason.CALLS,
            RetryScope.BUSINESS,
            4001,
        )
    assert later == RawList([])
    assert await ask(counted) == RawList([])


async def test_message_goes_however_near_the_management_calls_are_to_their_limit(counted: TinyOperator) -> None:
    app = json.dumps({"call_count": 100})
    usage = of_account(100, minutes=30)
    counted.answers = [json_answer(LISTED, x_app_usage=app, x_business_use_case_usage=usage), json_answer(SENT)]
    await ask(counted)

    outcome = await counted.send()

    assert outcome == Sent("wamid.1")


async def test_message_waits_where_messages_are_near_their_limit(counted: TinyOperator, clock: ManualClock) -> None:
    counted.answers = [
        json_answer(SENT, x_business_use_case_usage=of_account(97.4, type="whatsapp")),
        json_answer(SENT, x_business_use_case_usage=of_account(12, type="whatsapp")),
    ]
    first = await counted.send()

    second = await counted.send()
    clock.advance(ms=60_000)
    third = await counted.send()

    assert (first, third) == (Sent("wamid.1"), Sent("wamid.1"))
    assert isinstance(second, Unavailable)
    assert (second.retry_after_s, second.retry_scope) == (60.0, RetryScope.BUSINESS)
    assert len(counted.requests) == 2


async def test_account_that_is_shut_out_waits_as_long_as_the_operator_says(
    counted: TinyOperator, clock: ManualClock
) -> None:
    usage = of_account(100, minutes=7)
    error = {"error": {"message": "slow down", "code": 80008}}
    counted.answers = [
        json_answer(error, 400, x_business_use_case_usage=usage),
        json_answer(LISTED, x_business_use_case_usage=of_account(0)),
    ]
    await ask(counted)
    clock.advance(ms=6 * 60_000)

    outcome = await ask(counted)

    assert isinstance(outcome, Unavailable)
    assert outcome.retry_after_s == 60.0
    clock.advance(ms=60_000)
    assert await ask(counted) == RawList([])


async def test_refused_call_with_a_wish_is_not_made_again_before_its_time(
    counted: TinyOperator, clock: ManualClock
) -> None:
    error = {"error": {"message": "slow down", "code": 80007}}
    counted.answers = [json_answer(error, 429, Retry_After="20"), json_answer(LISTED)]
    refused = await ask(counted)
    clock.advance(ms=5000)

    waiting = await ask(counted)
    sent_meanwhile = await counted.send()

    assert isinstance(refused, Unavailable)
    assert isinstance(waiting, Unavailable)
    assert (refused.retry_after_s, waiting.retry_after_s) == (20.0, 15.0)
    assert not isinstance(sent_meanwhile, Unavailable)
    clock.advance(ms=15_000)
    assert await ask(counted) == RawList([])


async def test_what_one_business_account_has_used_up_holds_up_no_other(counted: TinyOperator) -> None:
    """Both are of one operator account, and perhaps of two partners."""
    error = {"error": {"message": "slow down", "code": 80008}}
    usage = json.dumps({ACCOUNT.id: [{"type": kind, "call_count": 100} for kind in ("whatsapp", "management")]})
    counted.answers = [
        json_answer(error, 429, Retry_After="20", x_business_use_case_usage=usage),
        json_answer(LISTED),
        json_answer(SENT),
    ]
    await ask(counted)

    own = [await ask(counted), await counted.send()]
    other = await counted.adapter.call(counted.account, ListFlows("another"))
    others_message = await counted.adapter.send(
        counted.account, replace(APP, business_account_id="another"), message(), template=None, reply_to=None, copies={}
    )

    assert all(isinstance(outcome, Unavailable) for outcome in own)
    assert other == RawList([])
    assert others_message == Sent("wamid.1")


async def test_other_operator_accounts_do_not_wait(counted: TinyOperator) -> None:
    counted.answers = [json_answer(LISTED, x_business_use_case_usage=of_account(99))]
    await ask(counted)
    counted.account = replace(counted.account, id="another")

    outcome = await ask(counted)

    assert outcome == RawList([])


async def test_account_that_was_pointed_elsewhere_has_spent_nothing_there(counted: TinyOperator) -> None:
    counted.answers = [json_answer(LISTED, x_business_use_case_usage=of_account(99))]
    await ask(counted)
    elsewhere = counted.account.base_url.replace("127.0.0.1", "localhost")
    counted.account = replace(counted.account, base_url=elsewhere)

    outcome = await ask(counted)

    assert outcome == RawList([])


ODD = {
    "no_json": "97 %",
    "a_list": "[97]",
    "a_number": "97",
    "no_list": json.dumps({ACCOUNT.id: {"call_count": 97}}),
    "no_object": json.dumps({ACCOUNT.id: ["call_count"]}),
    "texts": json.dumps({ACCOUNT.id: [{"type": 7, "call_count": "many"}]}),
    "deep": "[" * 3000,
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_header_says_nothing(counted: TinyOperator, name: str) -> None:
    answer = json_answer(LISTED, x_app_usage=ODD[name], x_business_use_case_usage=ODD[name])
    counted.answers = [answer]

    told = [await ask(counted), await ask(counted)]

    assert told == [RawList([])] * 2


async def test_time_beyond_all_reason_is_an_hour(counted: TinyOperator, clock: ManualClock) -> None:
    usage = of_account(100, minutes=10**15)
    counted.answers = [json_answer(LISTED, x_business_use_case_usage=usage), json_answer(LISTED)]
    await ask(counted)

    clock.advance(ms=3_600_000)

    assert await ask(counted) == RawList([])
