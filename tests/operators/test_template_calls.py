"""Templates edited and deleted at the operator: its responses to the first call and to a repeated one."""

from typing import Any

import pytest

from tests.operators.conftest import TinyOperator, hang_up, json_response
from tests.support.builders import ACCOUNT, template
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable

TEMPLATE = template(operator_template_id="77")
UNKNOWN = template()
REJECTION: dict[str, Any] = {
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
    tiny.responses = [json_response({"success": True})]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert outcome == OperatorAccepted("77")
    [(method, path, body, _)] = tiny.requests
    assert (method, path) == ("POST", "/v25.0/77")
    assert body["components"] == [BODY]
    assert not {"name", "language"} & set(body)


async def test_edit_of_a_template_with_an_unknown_id_looks_it_up_first(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"data": [LISTED]}), json_response({"success": True})]

    outcome = await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert outcome == OperatorAccepted("77")
    assert [path.partition("?")[0] for _, path, _, _ in tiny.requests] == [
        f"/v25.0/{ACCOUNT.id}/message_templates",
        "/v25.0/77",
    ]


async def test_edit_of_a_template_that_the_operator_does_not_have_submits_it(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"data": []}), json_response({"id": "78", "status": "PENDING"})]

    outcome = await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert outcome == OperatorAccepted("78", status="PENDING")


async def test_id_too_long_for_an_index_is_replaced_by_its_digest(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"id": "7" * 5000, "status": "PENDING"})]

    submitted = await tiny.submit()
    tiny.responses = [json_response({"data": [LISTED | {"id": "7" * 5000}]}), json_response({})]
    await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert isinstance(submitted, OperatorAccepted)
    assert len(submitted.operator_id) < 500
    assert tiny.requests[-1][1] == f"/v25.0/{submitted.operator_id}"


async def test_edit_that_is_rejected_because_it_was_made_already_succeeds(tiny: TinyOperator) -> None:
    current = {"id": "77", "status": "PENDING", "components": [BODY]}
    tiny.responses = [json_response(REJECTION, 400), json_response(current)]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert outcome == OperatorAccepted("77", status="PENDING")


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
async def test_edit_that_is_rejected_and_was_not_made_is_rejected(tiny: TinyOperator, components: Any) -> None:
    current = {"id": "77", "status": "APPROVED", "components": components}
    tiny.responses = [json_response(REJECTION, 400), json_response(current)]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert outcome == OperatorRejected(100, "A template that is PENDING can't be edited.")


async def test_edit_and_deletion_with_lost_responses_are_retried(tiny: TinyOperator) -> None:
    tiny.responses = [hang_up]

    edited = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})
    deleted = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert isinstance(edited, OperatorUnavailable)
    assert isinstance(deleted, OperatorUnavailable)


async def test_deletion_names_id_and_name(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"success": True})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert outcome == OperatorAccepted("77")
    [(method, path, body, _)] = tiny.requests
    assert (method, body) == ("DELETE", None)
    assert path == f"/v25.0/{ACCOUNT.id}/message_templates?hsm_id=77&name=order_ready"


async def test_deletion_of_a_template_that_the_operator_does_not_have_succeeds(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"data": [{**LISTED, "language": "de"}]})]

    outcome = await tiny.adapter.delete_template(tiny.account, UNKNOWN)

    assert outcome == OperatorAccepted("")


async def test_deletion_that_is_rejected_because_it_was_made_already_succeeds(tiny: TinyOperator) -> None:
    pending_deletion = {**LISTED, "status": "PENDING_DELETION"}
    tiny.responses = [json_response(REJECTION, 404), json_response({"data": [pending_deletion]})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert outcome == OperatorAccepted("77")


async def test_deletion_that_the_operator_rejects_is_rejected(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(REJECTION, 400), json_response({"data": [LISTED]})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert isinstance(outcome, OperatorRejected)


async def test_template_is_searched_on_every_page(tiny: TinyOperator) -> None:
    first: dict[str, Any] = {"data": [], "paging": {"next": "http://more", "cursors": {"after": "abc"}}}
    tiny.responses = [json_response(first), json_response({"data": [LISTED]}), json_response({"success": True})]

    outcome = await tiny.adapter.delete_template(tiny.account, UNKNOWN)

    assert outcome == OperatorAccepted("77")
    assert "after=abc" in tiny.requests[1][1]


ENDLESS_LIST: dict[str, Any] = {"data": [], "paging": {"next": "http://more", "cursors": {"after": "abc"}}}
INVALID_LISTS: dict[str, dict[str, Any]] = {
    "empty": {},
    "success": {"success": True},
    "no_list": {"data": None},
    "no_template": {"data": ["order_ready"]},
    "no_cursor": {"data": [], "paging": {"next": "http://more"}},
    "endless": ENDLESS_LIST,
}


@pytest.mark.parametrize("name", INVALID_LISTS)
async def test_lookup_of_a_template_in_an_invalid_list_is_retried(tiny: TinyOperator, name: str) -> None:
    tiny.responses = [json_response(INVALID_LISTS[name])]

    deleted = await tiny.adapter.delete_template(tiny.account, UNKNOWN)
    edited = await tiny.adapter.edit_template(tiny.account, UNKNOWN, {})

    assert isinstance(deleted, OperatorUnavailable)
    assert isinstance(edited, OperatorUnavailable)
    assert {method for method, *_ in tiny.requests} == {"GET"}


async def test_rejected_deletion_followed_by_an_invalid_list_is_retried(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(REJECTION, 400), json_response({})]

    outcome = await tiny.adapter.delete_template(tiny.account, TEMPLATE)

    assert isinstance(outcome, OperatorUnavailable)


async def test_rejected_edit_of_a_template_that_cannot_be_read_then_is_retried(tiny: TinyOperator) -> None:
    tiny.responses = [json_response(REJECTION, 400), hang_up]

    outcome = await tiny.adapter.edit_template(tiny.account, TEMPLATE, {})

    assert isinstance(outcome, OperatorUnavailable)


async def test_duplicate_name_followed_by_an_invalid_list_is_submitted_again(tiny: TinyOperator) -> None:
    duplicate_name = {"error": {"message": "taken", "code": 100, "error_subcode": 2388024}}
    tiny.responses = [json_response(duplicate_name, 400), json_response({"success": True})]

    outcome = await tiny.submit()

    assert isinstance(outcome, OperatorUnavailable)
