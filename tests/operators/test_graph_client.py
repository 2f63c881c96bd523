"""Requests of the Graph API whose responses are passed on: sent as they are, and failures are outcomes."""

from typing import Any

import pytest

from tests.operators.conftest import TinyOperator, json_response
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.operators.contract import GraphClient, GraphFile, GraphRequest


def graph_of(tiny: TinyOperator) -> GraphClient:
    assert tiny.adapter.graph is not None
    return tiny.adapter.graph


# fmt: off
SENT: dict[str, tuple[GraphRequest, str, Any]] = {
    "a read":    (GraphRequest("GET", "7/username"),                                 "GET 7/username", None),
    "a query":   (GraphRequest("GET", "7", query={"fields": "id", "limit": "5"}),     "GET 7?fields=id&limit=5", None),
    "a body":    (GraphRequest("POST", "7/groups", {"subject": "Tea"}),               "POST 7/groups", {"subject": "Tea"}),
    "no result": (GraphRequest("DELETE", "7/block_users", {"block_users": []}),       "DELETE 7/block_users", {"block_users": []}),
}
# fmt: on


@pytest.mark.parametrize("name", SENT)
async def test_request_is_sent_with_our_token_and_its_object_returned(name: str, tiny: TinyOperator) -> None:
    request, line, body = SENT[name]
    tiny.responses = [json_response({"success": True, "other": [1]})]

    response = await graph_of(tiny).request(tiny.account, request)

    method, path, sent_body, headers = tiny.requests[0]
    assert f"{method} {path.removeprefix('/v25.0/')}" == line
    assert sent_body == body
    assert headers["Authorization"] == f"Bearer {tiny.account['token']}"
    assert response == {"success": True, "other": [1]}


async def test_files_make_a_form_in_parts(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"success": True})]
    file = GraphFile("flow.json", "application/json", b"{}")

    await graph_of(tiny).request(tiny.account, GraphRequest("POST", "6/assets", {"name": "n"}, files={"file": file}))

    method, path, _, headers = tiny.requests[0]
    assert (method, path) == ("POST", "/v25.0/6/assets")
    assert headers["Content-Type"].startswith("multipart/form-data")


async def test_error_of_the_operator_is_an_outcome(tiny: TinyOperator) -> None:
    tiny.responses = [json_response({"error": {"message": "no", "code": 100}}, 400)]

    assert isinstance(await graph_of(tiny).request(tiny.account, GraphRequest("GET", "7")), OperatorRejected)


async def test_every_page_is_read(tiny: TinyOperator) -> None:
    more = {"next": "https://graph.test/next", "cursors": {"after": "A"}}
    tiny.responses = [json_response({"data": [1], "paging": more}), json_response({"data": [2]})]

    items = await graph_of(tiny).list_all(tiny.account, GraphRequest("GET", "7/groups"), "groups")

    assert items == [1, 2]
    assert tiny.requests[1][1].endswith("limit=100&after=A")


@pytest.mark.parametrize("content", [{}, {"data": {}}, {"data": None}], ids=str)
async def test_response_without_a_list_is_unavailable(content: dict[str, Any], tiny: TinyOperator) -> None:
    tiny.responses = [json_response(content)]

    items = await graph_of(tiny).list_all(tiny.account, GraphRequest("GET", "7/groups"), "groups")

    assert items == OperatorUnavailable("the operator's response has no list of groups")
