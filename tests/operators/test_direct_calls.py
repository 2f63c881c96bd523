"""Direct calls: the request of each, and the outcome of each response or timeout."""

from dataclasses import replace
from typing import Any

import pytest

from tests.operators.conformance.conftest import DIRECT_CALLS
from tests.operators.conftest import TinyOperator, hang_up, json_response, never_respond, text_response
from tests.support.builders import OPERATOR
from tests.support.closed_port import closed_port
from waypost.domain.direct_calls import (
    CallFailure,
    CallNotOffered,
    CheckToken,
    DeleteMedium,
    GetBusinessAccount,
    GetBusinessStatus,
    GetMedium,
    GetNumber,
    GetSubscription,
    GetTemplate,
    ListMissingFields,
    ListNumbers,
    ListTemplates,
    MarkRead,
    OperatorCall,
    OperatorTemplate,
    Subscribe,
    TemplateDetail,
    UnpauseTemplate,
    Unsubscribe,
)
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.cloud import http_calls


class _Unknown(OperatorCall[None]):
    """A call of a later version."""


WHATSAPP = {"messaging_product": "whatsapp"}
# fmt: off
SENT: dict[str, tuple[OperatorCall[Any], str, str, Any]] = {  # method, path with query, and body of the first request
    "GetNumber":          (GetNumber("7"),                            "GET",    "7", None),
    "GetBusinessStatus":  (GetBusinessStatus("8"),                    "GET",    "8?fields=id,name,account_review_status,ownership_type", None),
    "GetBusinessAccount": (GetBusinessAccount("8"),                   "GET",    "8?fields=id,name,timezone_id,message_template_namespace,account_review_status", None),
    "ListNumbers":        (ListNumbers("8"),                          "GET",    "8/phone_numbers", None),
    "CheckToken":         (CheckToken(),                              "GET",    f"debug_token?input_token={OPERATOR['token']}", None),
    "GetSubscription":    (GetSubscription("8"),                      "GET",    "8/subscribed_apps?limit=100", None),
    "ListMissingFields":  (ListMissingFields(),                       "GET",    f"{OPERATOR['app_id']}/subscriptions?limit=100", None),
    "Subscribe":          (Subscribe("8", "https://us.test"),         "POST",   "8/subscribed_apps", {"override_callback_uri": "https://us.test", "verify_token": OPERATOR["verify_token"]}),
    "Unsubscribe":        (Unsubscribe("8"),                          "DELETE", "8/subscribed_apps", None),
    "ListTemplates":      (ListTemplates("8", TemplateDetail.REVIEW), "GET",    "8/message_templates?fields=name,language,status,category,rejected_reason,quality_score&limit=100", None),
    "GetTemplate":        (GetTemplate("5"),                          "GET",    "5", None),
    "UnpauseTemplate":    (UnpauseTemplate("5"),                      "POST",   "5/unpause", None),
    "MarkRead":       (MarkRead("7", "wamid.1"),                                   "POST",   "7/messages", {**WHATSAPP, "status": "read", "message_id": "wamid.1"}),
    "GetMedium":      (GetMedium("9", "7"),                                        "GET",    "9?phone_number_id=7", None),
    "DeleteMedium":   (DeleteMedium("9", "7"),                                     "DELETE", "9?phone_number_id=7", None),
}
# fmt: on


@pytest.mark.parametrize("name", DIRECT_CALLS)
async def test_every_direct_call_is_sent_to_its_object_with_our_token(name: str, tiny: TinyOperator) -> None:
    request, method, path, body = SENT[name]
    tiny.responses = [json_response({"data": []})]

    response = await tiny.adapter.call(tiny.account, request)

    sent_method, sent_path, sent_body, headers = tiny.requests[0]
    assert not isinstance(response, CallNotOffered)
    assert sent_method == method
    assert sent_path.replace("%2C", ",").startswith(f"/v25.0/{path}")
    app_token = f"{OPERATOR['app_id']}|{OPERATOR['app_secret']}"
    token = app_token if name == "ListMissingFields" else tiny.account["token"]
    assert headers["Authorization"] == f"Bearer {token}"
    assert sent_body == body


# fmt: off
FAILED_RESPONSES: dict[str, tuple[Any, type[Any]]] = {
    "rejected":       (json_response({"error": {"message": "no", "code": 100}}, 400),          OperatorRejected),
    "retryable":      (json_response({"error": {"message": "no", "code": 4}}, 400),            OperatorUnavailable),
    "our token":      (json_response({"error": {"message": "no", "code": 190}}, 401),          OperatorUnavailable),
    "name taken":     (json_response({"error": {"code": 100, "error_subcode": 2388024}}, 400), OperatorRejected),
    "a gateway's":    (json_response({"error": "bad gateway"}, 502),                           OutcomeUncertain),
    "a proxy's":      (json_response({"error": "unauthorized"}, 401),                          OperatorRejected),
    "a code as text": (json_response({"error": {"message": "x", "code": "2"}}, 500),           OutcomeUncertain),
    "no text":        (json_response({"error": {"code": 190}}, 401),                           OperatorUnavailable),
    "a page":         (text_response("<html>", 502),                                           OutcomeUncertain),
    "disconnected":   (hang_up,                                                                OutcomeUncertain),
}
# fmt: on


@pytest.mark.parametrize("request_", [GetNumber("77"), ListTemplates("77", TemplateDetail.STATUS)], ids=str)
@pytest.mark.parametrize("name", FAILED_RESPONSES)
async def test_failed_response_becomes_an_outcome(name: str, request_: OperatorCall[Any], tiny: TinyOperator) -> None:
    response, expected = FAILED_RESPONSES[name]
    tiny.responses = [response]

    outcome = await tiny.adapter.call(tiny.account, request_)

    assert isinstance(outcome, expected)


LISTS: tuple[OperatorCall[Any], ...] = (
    ListNumbers("77"),
    GetSubscription("77"),
    ListTemplates("77", TemplateDetail.STATUS),
)


@pytest.mark.parametrize("request_", LISTS, ids=lambda call: type(call).__name__)
@pytest.mark.parametrize("content", [{}, {"success": True}, {"data": {}}, {"data": None}], ids=str)
async def test_response_without_the_requested_list_is_unavailable(
    request_: OperatorCall[Any], content: dict[str, Any], tiny: TinyOperator
) -> None:
    tiny.responses = [json_response(content)]

    outcome = await tiny.adapter.call(tiny.account, request_)

    assert isinstance(outcome, OperatorUnavailable)


LISTED = {"id": "5", "name": "hello", "language": "de", "status": "APPROVED"}
# fmt: off
INVALID_TEMPLATES: dict[str, Any] = {
    "no object":          "hello",
    "without a status":   {name: LISTED[name] for name in ("id", "name", "language")},
    "a number as its id": {**LISTED, "id": 5},
    "an endless id":      {**LISTED, "id": "5" * 501},
}
# fmt: on


@pytest.mark.parametrize("name", INVALID_TEMPLATES)
async def test_list_with_an_invalid_template_is_unavailable(name: str, tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"data": [LISTED, INVALID_TEMPLATES[name]]})]

    outcome = await tiny.adapter.call(tiny.account, ListTemplates("77", TemplateDetail.STATUS))

    assert isinstance(outcome, OperatorUnavailable)


async def test_every_page_of_a_list_is_read(tiny: TinyOperator) -> None:
    more = {"next": "https://graph.test/next", "cursors": {"after": "A"}}
    tiny.responses = [
        json_response({"data": [LISTED], "paging": more}),
        json_response({"data": [{**LISTED, "id": "6", "status": "PENDING_DELETION"}]}),
    ]

    templates = await tiny.adapter.call(tiny.account, ListTemplates("77", TemplateDetail.STATUS))

    assert templates == [
        OperatorTemplate("5", "hello", "de", "APPROVED"),
        OperatorTemplate("6", "hello", "de", "PENDING_DELETION", is_being_deleted=True),
    ]
    assert tiny.requests[1][1].endswith("&limit=100&after=A")


# fmt: off
ENDLESS_PAGING: dict[str, Any] = {
    "a next page forever":        {"next": "https://graph.test/next", "cursors": {"after": "A"}},
    "a next page without cursor": {"next": "https://graph.test/next"},
}
# fmt: on


@pytest.mark.parametrize("name", ENDLESS_PAGING)
async def test_list_without_an_end_is_unavailable(name: str, tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"data": [LISTED], "paging": ENDLESS_PAGING[name]})]

    outcome = await tiny.adapter.call(tiny.account, ListTemplates("77", TemplateDetail.STATUS))

    assert outcome == OperatorUnavailable("the operator's list of templates has no end")


async def test_call_that_the_operator_does_not_offer_is_not_made(tiny: TinyOperator) -> None:
    outcome: CallFailure | None = await tiny.adapter.call(tiny.account, _Unknown())

    assert isinstance(outcome, CallNotOffered)
    assert tiny.requests == []


async def test_response_that_takes_too_long_is_uncertain(tiny: TinyOperator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls, "OPERATOR_CALL_TIMEOUT_S", 0.2)
    tiny.responses = [never_respond]

    outcome = await tiny.adapter.call(tiny.account, GetNumber("77"))

    assert isinstance(outcome, OutcomeUncertain)


async def test_call_to_an_unreachable_operator_is_unavailable(tiny: TinyOperator) -> None:
    with closed_port() as port:
        account = replace(tiny.account, base_url=f"http://127.0.0.1:{port}")
        outcome = await tiny.adapter.call(account, GetNumber("77"))

    assert isinstance(outcome, OperatorUnavailable)
