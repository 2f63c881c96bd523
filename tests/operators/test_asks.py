"""Direct calls: what each sends, and what its answers and silences become."""

from dataclasses import replace
from typing import Any

import pytest

from tests.operators.conftest import TinyOperator, hang_up, json_answer, never, text_answer
from tests.support.refusing import refusing_port
from waypost.domain.outcome import Rejected, Unavailable, Uncertain
from waypost.operators.cloud import asks
from waypost.operators.cloud.asks import ASKS
from waypost.operators.contract import Ask, Question, Told


@pytest.mark.parametrize("what", Ask)
async def test_every_direct_call_has_a_row_and_goes_to_its_object(what: Ask, tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"data": []})]

    told = await tiny.adapter.ask(tiny.account, Question(what, "77"))

    [(method, path, _, headers)] = tiny.requests
    edge = f"/{ASKS[what].edge}" if ASKS[what].edge else ""
    assert told == Told({"data": []})
    assert (method, path.partition("?")[0]) == (ASKS[what].method, f"/v25.0/77{edge}")
    assert headers["Authorization"] == f"Bearer {tiny.account.token}"


async def test_body_and_query_travel_as_they_are(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"success": True})]
    body = {"messaging_product": "whatsapp", "block_users": [{"user": "15551234567"}]}

    await tiny.adapter.ask(tiny.account, Question(Ask.UNBLOCK, "77", {"limit": "5"}, body))

    [(method, path, sent, _)] = tiny.requests
    assert (method, path) == ("DELETE", "/v25.0/77/block_users?limit=5")
    assert sent == body


async def test_call_about_nothing_goes_to_the_edge_itself(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"data": []})]

    await tiny.adapter.ask(tiny.account, Question(Ask.TEMPLATE_LIBRARY, ""))

    assert tiny.requests[0][1] == "/v25.0/message_template_library"


async def test_wished_fields_take_the_place_of_the_usual_ones(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"data": []})]

    await tiny.adapter.ask(tiny.account, Question(Ask.BUSINESS_PROFILE, "77"))
    await tiny.adapter.ask(tiny.account, Question(Ask.BUSINESS_PROFILE, "77", {"fields": "about"}))

    usual, wished = (path for _, path, _, _ in tiny.requests)
    assert "fields=about,address" in usual.replace("%2C", ",")
    assert wished.endswith("?fields=about")


# fmt: off
ANSWERS: dict[str, tuple[Any, type[Any]]] = {
    "refused":          (json_answer({"error": {"message": "no", "code": 100}}, 400), Rejected),
    "for later":        (json_answer({"error": {"message": "no", "code": 4}}, 400),   Unavailable),
    "our token":        (json_answer({"error": {"message": "no", "code": 190}}, 401), Unavailable),
    "taken":            (json_answer({"error": {"code": 100, "error_subcode": 2388024}}, 400), Rejected),
    "a gateway's":      (json_answer({"error": "bad gateway"}, 502),                  Uncertain),
    "a proxy's":        (json_answer({"error": "unauthorized"}, 401),                 Rejected),
    "a code as text":   (json_answer({"error": {"message": "x", "code": "2"}}, 500),  Uncertain),
    "no text":          (json_answer({"error": {"code": 190}}, 401),                  Unavailable),
    "a page":           (text_answer("<html>", 502),                                  Uncertain),
    "hung up":          (hang_up,                                                     Uncertain),
}
# fmt: on


@pytest.mark.parametrize("name", ANSWERS)
async def test_what_is_no_answer_becomes_an_outcome(name: str, tiny: TinyOperator) -> None:
    answer, expected = ANSWERS[name]
    tiny.answers = [answer]

    outcome = await tiny.adapter.ask(tiny.account, Question(Ask.NUMBER, "77"))

    assert isinstance(outcome, expected)


@pytest.mark.parametrize("what", [what for what in Ask if ASKS[what].is_list])
@pytest.mark.parametrize("answer", [{}, {"success": True}, {"data": {}}, {"data": None}], ids=str)
async def test_answer_without_the_list_that_was_asked_for_is_none(
    what: Ask, answer: dict[str, Any], tiny: TinyOperator
) -> None:
    tiny.answers = [json_answer(answer)]

    outcome = await tiny.adapter.ask(tiny.account, Question(what, "77"))

    assert isinstance(outcome, Unavailable)


async def test_answer_that_takes_too_long_is_uncertain(tiny: TinyOperator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asks, "WITHIN_S", 0.2)
    tiny.answers = [never]

    outcome = await tiny.adapter.ask(tiny.account, Question(Ask.NUMBER, "77"))

    assert isinstance(outcome, Uncertain)


async def test_operator_that_is_not_there_is_unavailable(tiny: TinyOperator) -> None:
    with refusing_port() as port:
        account = replace(tiny.account, base_url=f"http://127.0.0.1:{port}")
        outcome = await tiny.adapter.ask(account, Question(Ask.NUMBER, "77"))

    assert isinstance(outcome, Unavailable)
