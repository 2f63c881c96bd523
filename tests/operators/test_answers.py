"""What the adapter makes of an operator's answers, and of those that never come."""

from dataclasses import replace
from typing import Any

import pytest

from tests.operators.conftest import (
    Answering,
    TinyOperator,
    half_an_answer,
    hang_up,
    json_answer,
    never,
    text_answer,
)
from tests.support.builders import ACCOUNT, ANN, APP
from waypost.assembly.servers import bind, port_of
from waypost.domain.outcome import INVALID_ANSWER, Outcome, Rejected, Sent, Unavailable, Uncertain
from waypost.operators.cloud.codes import TRY_AGAIN, outcome_of


def error(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "OAuthException", "code": code, **more}}


SENT = {
    "messaging_product": "whatsapp",
    "contacts": [{"input": f"+{ANN}", "wa_id": "15551239999"}],
    "messages": [{"id": "wamid.1"}],
}


async def test_message_is_posted_to_the_number_of_the_app_with_the_operators_token(
    tiny: TinyOperator,
) -> None:
    tiny.answers = [json_answer(SENT)]

    outcome = await tiny.send()

    [(method, path, body, headers)] = tiny.requests
    assert outcome == Sent("wamid.1", recipient="15551239999")
    assert (method, path) == ("POST", f"/v25.0/{APP.phone_number_id}/messages")
    assert headers["Authorization"] == f"Bearer {tiny.account.token}"
    assert headers["Content-Type"] == "application/json"
    assert body["to"] == f"+{ANN}"


# fmt: off
ANSWERS: dict[str, tuple[Answering, Outcome | type[Outcome]]] = {
    "an_id_alone":             (json_answer({"messages": [{"id": "wamid.1"}]}), Sent("wamid.1")),
    "an_answer_without_id":    (json_answer({"messages": []}), Uncertain),
    "an_empty_object":         (json_answer({}), Uncertain),
    "a_list":                  (json_answer([]), Uncertain),
    "html_with_200":           (text_answer("<html>", 200), Uncertain),
    "html_with_502":           (text_answer("<html>Bad gateway</html>", 502), Uncertain),
    "nothing_with_500":        (text_answer("", 500), Uncertain),
    "html_with_404":           (text_answer("<html>", 404), Rejected(INVALID_ANSWER, "the operator answered 404 without a reason")),
    "html_with_429":           (text_answer("", 429), Unavailable("the operator answered 429", 4)),
    "a_final_error":           (json_answer(error(131026, "undeliverable"), 400), Rejected(131026, "undeliverable")),
    "an_error_in_200":         (json_answer(error(131026, "undeliverable"), 200), Rejected(131026, "undeliverable")),
    "an_error_in_500":         (json_answer(error(131000, "went wrong"), 500), Unavailable("went wrong", 131000)),
    "a_throughput_error":      (json_answer(error(130429, "slow"), 429), Unavailable("slow", 130429)),
    "a_wish":                  (json_answer(error(130429, "slow"), 429, Retry_After="7"), Unavailable("slow", 130429, 7.0)),
    "a_wish_that_is_no_number": (json_answer(error(130429, "slow"), 429, Retry_After="soon"), Unavailable("slow", 130429)),
    "an_expired_token":        (json_answer(error(190, "expired"), 401), Unavailable("expired", 190)),
    "details":                 (json_answer(error(132000, "short", error_data={"details": "long"}), 400), Rejected(132000, "long")),
    "details_as_text":         (json_answer(error(132000, "short", error_data="long"), 400), Rejected(132000, "long")),
    "a_text_for_the_user":     (json_answer(error(132000, "short", error_user_msg="friendly"), 400), Rejected(132000, "friendly")),
    "an_error_without_text":   (json_answer({"error": {"code": 131026}}, 400), Rejected(131026, "refused without a reason")),
    "an_error_without_code":   (json_answer({"error": {"message": "no"}}, 200), Uncertain),
    "an_error_that_is_a_text": (json_answer({"error": "no"}, 200), Uncertain),
    "an_error_of_a_gateway":   (json_answer({"error": "bad gateway"}, 502), Uncertain),
    "a_refusal_of_a_proxy":    (json_answer({"error": "unauthorized"}, 401), Rejected(INVALID_ANSWER, "the operator answered 401 without a reason")),
    "a_limit_as_text":         (json_answer({"error": "slow down"}, 429), Unavailable("the operator answered 429", 4)),
    "a_code_that_is_a_text":   (json_answer({"error": {"message": "x", "code": "2"}}, 500), Uncertain),
    "an_id_beside_an_error":   (json_answer({"error": "no", **SENT}, 200), Uncertain),
    "an_id_behind_a_redirect": (json_answer(SENT, 302), Uncertain),
    "a_redirect":              (text_answer("", 302), Uncertain),
    "a_broken_connection":     (hang_up, Uncertain),
    "half_an_answer":          (half_an_answer, Uncertain),
    "silence":                 (never, Uncertain),
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


async def test_message_to_an_operator_that_does_not_listen_was_certainly_not_sent(
    tiny: TinyOperator,
) -> None:
    tiny.answers = [json_answer(SENT)]
    tiny.account = replace(tiny.account, base_url=f"http://127.0.0.1:{free_port()}")

    outcome = await tiny.send()

    assert isinstance(outcome, Unavailable)
    assert outcome.code == 0


@pytest.mark.parametrize("code", TRY_AGAIN)
def test_code_of_the_table_is_tried_again(code: int) -> None:
    outcome = outcome_of(code, "later", 3.0)

    assert outcome == Unavailable("later", code, 3.0)


@pytest.mark.parametrize("code", [100, 131026, 131047, 132000, 132001, 132015, 470, 999999, -1])
def test_code_beyond_the_table_is_final(code: int) -> None:
    outcome = outcome_of(code, "never", None)

    assert outcome == Rejected(code, "never")


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
async def test_template_whose_answer_was_lost_is_handed_in_again(
    tiny: TinyOperator, answer: Answering
) -> None:
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
    assert tiny.requests[1][:2] == (
        "GET",
        f"/v25.0/{ACCOUNT.id}/message_templates?name=order_ready&limit=100",
    )


async def test_template_that_is_there_already_and_not_listed_is_rejected(
    tiny: TinyOperator,
) -> None:
    tiny.answers = [
        json_answer(error(100, "taken", error_subcode=2388024), 400),
        json_answer({"data": []}),
    ]

    outcome = await tiny.submit()

    assert isinstance(outcome, Rejected)


async def test_lost_list_of_templates_is_asked_for_again(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(error(100, "taken", error_subcode=2388024), 400), hang_up]

    outcome = await tiny.submit()

    assert isinstance(outcome, Unavailable)


def free_port() -> int:
    """A port on which nobody listens."""
    bound = bind("127.0.0.1", 0, option="")
    port = port_of(bound)
    bound.close()
    return port
