"""The door for programs that wait: what it says when a call comes to nothing."""

import socket

import msgspec
import pytest

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.responses import ApiResponseError, ApiUnreachable, ClientResponse, read_json_response


def test_address_where_nobody_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    door = BlockingApiClient(f"http://127.0.0.1:{port}/admin")

    with pytest.raises(ApiUnreachable, match=f"no response to GET http://127.0.0.1:{port}/admin/queues"):
        door.json("GET", "/queues")


def test_server_that_never_answers_is_left_after_the_given_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        door = BlockingApiClient(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=0.05)

        with pytest.raises(ApiUnreachable, match="timed out"):
            door.json("GET", "/")


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (ClientResponse(400, b'{"status":"error","message":"Bad Request"}'), "Bad Request (400)"),
        (
            ClientResponse(400, b'{"message":"Bad Request"}', {"waypost-reason": "to: gone"}),
            "Bad Request: to: gone (400)",
        ),
        (ClientResponse(404, b'{"error":"fault_id: is no fault"}'), "fault_id: is no fault (404)"),
        (ClientResponse(502, b"<html>"), "GET /x failed without an error message (502)"),
    ],
)
def test_refusal_has_the_doors_own_words(reply: ClientResponse, says: str) -> None:
    with pytest.raises(ApiResponseError) as refused:
        read_json_response(reply, "GET /x")

    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("reply", "field", "rule", "accepted", "would_do"),
    [
        (
            ClientResponse(400, b'{"error":"a[0].b: is odd; accepted: 2","field":"a[0].b","rule":"is odd","accepted":"2"}'),
            "a[0].b", "is odd", "2", "2",
        ),
        (
            ClientResponse(400, b'{"message":"a must be 2."}', {"waypost-error": '{"field":"a","rule":"odd","accepted":"2"}'}),
            "a", "odd", "2", "",
        ),
        (ClientResponse(400, b'{"message":"No.","field":7}'), "", "", "", ""),
        (ClientResponse(502, b"<html>"), "", "", "", ""),
    ],
)  # fmt: skip
def test_field_of_an_error_needs_no_sentence(
    reply: ClientResponse, field: str, rule: str, accepted: str, would_do: str
) -> None:
    with pytest.raises(ApiResponseError) as refused:
        read_json_response(reply)

    error = refused.value
    assert (error.field, error.rule, error.accepted, error.expected) == (field, rule, accepted, would_do)
    assert error.top_field == field[:1]


def test_refusal_of_the_control_api_comes_in_its_parts() -> None:
    body = {"error": "x[0].y: is odd; accepted: 2, 4", "field": "x[0].y", "rule": "is odd", "accepted": "2, 4"}

    with pytest.raises(ApiResponseError) as listed:
        read_json_response(ClientResponse(400, msgspec.json.encode(body)))
    with pytest.raises(ApiResponseError) as hinted:
        read_json_response(
            ClientResponse(
                400,
                msgspec.json.encode({**body, "error": "x[0].y: is odd; did you mean 2?", "hint": "did you mean 2?"}),
            )
        )

    assert (listed.value.top_field, listed.value.problem, listed.value.expected) == ("x", "x[0].y: is odd", "2, 4")
    assert (hinted.value.problem, hinted.value.expected) == ("x[0].y: is odd; did you mean 2?", "")


def test_answer_without_a_body_is_nothing() -> None:
    assert read_json_response(ClientResponse(204, b"")) is None
