"""Templates edited and deleted at the operator: what it answers, and what it answers a second time."""

from typing import Any

import pytest

from tests.operators.conftest import TinyOperator, hang_up, json_answer
from tests.support.builders import ACCOUNT, template
from waypost.domain.outcome import Rejected, Sent, Unavailable

TEMPLATE = template(operator_template_id="77")
UNKNOWN = template()
REFUSED: dict[str, Any] = {
    "error": {
        "message": "Invalid parameter",
        "code": 100,
        "error_subcode": 2388039,
        "error_user_msg": "A template that is PENDING can't be edited.",
    }
}
BODY = {"type": "BODY", "text": "Hi {{1}}, your order is ready.", "example": {"body_text": [["Ann"]]}}
LISTED = {"id": "77", "name": "order_ready", "language": "en_US", "status": "APPROVED"}


async def test_edit_is_posted_to_the_template_without_name_and_language(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"success": True})]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert outcome == Sent("77")
    [(method, path, body, _)] = tiny.requests
    assert (method, path) == ("POST", "/v25.0/77")
    assert body["components"] == [BODY]
    assert not {"name", "language"} & set(body)


async def test_edit_of_a_template_whose_id_is_not_known_finds_it_first(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"data": [LISTED]}), json_answer({"success": True})]

    outcome = await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert outcome == Sent("77")
    assert [path.partition("?")[0] for _, path, _, _ in tiny.requests] == [
        f"/v25.0/{ACCOUNT.id}/message_templates",
        "/v25.0/77",
    ]


async def test_edit_of_a_template_that_the_operator_does_not_have_hands_it_in(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"data": []}), json_answer({"id": "78", "status": "PENDING"})]

    outcome = await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert outcome == Sent("78", status="PENDING")


async def test_id_that_no_index_takes_is_known_by_its_digest(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"id": "7" * 5000, "status": "PENDING"})]

    handed_in = await tiny.submit()
    tiny.answers = [json_answer({"data": [LISTED | {"id": "7" * 5000}]}), json_answer({})]
    await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert isinstance(handed_in, Sent)
    assert len(handed_in.operator_id) < 500
    assert tiny.requests[-1][1] == f"/v25.0/{handed_in.operator_id}"


async def test_edit_that_is_refused_because_it_has_been_done_is_done(tiny: TinyOperator) -> None:
    shown = {"id": "77", "status": "PENDING", "components": [BODY]}
    tiny.answers = [json_answer(REFUSED, 400), json_answer(shown)]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert outcome == Sent("77", status="PENDING")


@pytest.mark.parametrize(
    "components",
    [
        [{**BODY, "text": "Hi {{1}}, it is late."}],
        [BODY, {"type": "FOOTER", "text": "Acme"}],
        [],
        None,
        [{**BODY, "type": "HEADER"}],
    ],
)
async def test_edit_that_is_refused_and_not_done_is_rejected(tiny: TinyOperator, components: Any) -> None:
    shown = {"id": "77", "status": "APPROVED", "components": components}
    tiny.answers = [json_answer(REFUSED, 400), json_answer(shown)]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert outcome == Rejected(100, "A template that is PENDING can't be edited.")


async def test_lost_answers_are_tried_again(tiny: TinyOperator) -> None:
    tiny.answers = [hang_up]

    edited = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})
    deleted = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert isinstance(edited, Unavailable)
    assert isinstance(deleted, Unavailable)


async def test_deletion_names_id_and_name(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"success": True})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert outcome == Sent("77")
    [(method, path, body, _)] = tiny.requests
    assert (method, body) == ("DELETE", None)
    assert path == f"/v25.0/{ACCOUNT.id}/message_templates?hsm_id=77&name=order_ready"


async def test_deletion_of_what_the_operator_does_not_have_is_done(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer({"data": [{**LISTED, "language": "de"}]})]

    outcome = await tiny.adapter.delete_template(tiny.account, UNKNOWN)

    assert outcome == Sent("")


async def test_deletion_that_is_refused_because_it_has_been_done_is_done(tiny: TinyOperator) -> None:
    going = {**LISTED, "status": "PENDING_DELETION"}
    tiny.answers = [json_answer(REFUSED, 404), json_answer({"data": [going]})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert outcome == Sent("77")


async def test_deletion_that_the_operator_refuses_is_rejected(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(REFUSED, 400), json_answer({"data": [LISTED]})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert isinstance(outcome, Rejected)


async def test_template_is_looked_for_on_every_page(tiny: TinyOperator) -> None:
    first: dict[str, Any] = {"data": [], "paging": {"next": "http://more", "cursors": {"after": "abc"}}}
    tiny.answers = [json_answer(first), json_answer({"data": [LISTED]}), json_answer({"success": True})]

    outcome = await tiny.adapter.delete_template(tiny.account, UNKNOWN)

    assert outcome == Sent("77")
    assert "after=abc" in tiny.requests[1][1]


ENDLESS: dict[str, Any] = {"data": [], "paging": {"next": "http://more", "cursors": {"after": "abc"}}}
NO_LIST: dict[str, dict[str, Any]] = {
    "empty": {},
    "success": {"success": True},
    "no_list": {"data": None},
    "no_template": {"data": ["order_ready"]},
    "no_way_on": {"data": [], "paging": {"next": "http://more"}},
    "endless": ENDLESS,
}


@pytest.mark.parametrize("name", NO_LIST)
async def test_template_that_an_odd_list_does_not_name_is_looked_for_again(tiny: TinyOperator, name: str) -> None:
    tiny.answers = [json_answer(NO_LIST[name])]

    deleted = await tiny.adapter.delete_template(tiny.account, UNKNOWN)
    edited = await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert isinstance(deleted, Unavailable)
    assert isinstance(edited, Unavailable)
    assert {method for method, *_ in tiny.requests} == {"GET"}


async def test_refused_deletion_with_an_odd_list_after_it_is_tried_again(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(REFUSED, 400), json_answer({})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert isinstance(outcome, Unavailable)


async def test_refused_edit_of_what_then_cannot_be_seen_is_tried_again(tiny: TinyOperator) -> None:
    tiny.answers = [json_answer(REFUSED, 400), hang_up]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert isinstance(outcome, Unavailable)


async def test_taken_name_with_an_odd_list_after_it_is_handed_in_again(tiny: TinyOperator) -> None:
    taken = {"error": {"message": "taken", "code": 100, "error_subcode": 2388024}}
    tiny.answers = [json_answer(taken, 400), json_answer({"success": True})]

    outcome = await tiny.submit()

    assert isinstance(outcome, Unavailable)
