"""The errors that the client of our APIs reads from their responses."""

import msgspec
import pytest

from waypost.client.responses import ApiResponseError, ClientResponse, read_json_response


@pytest.mark.parametrize(
    ("reply", "expected"),
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
def test_error_has_the_text_of_the_api(reply: ClientResponse, expected: str) -> None:
    with pytest.raises(ApiResponseError) as raised:
        read_json_response(reply, "GET /x")

    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("reply", "field", "rule", "accepted", "expected"),
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
def test_field_of_an_error_is_read_without_its_message(
    reply: ClientResponse, field: str, rule: str, accepted: str, expected: str
) -> None:
    with pytest.raises(ApiResponseError) as raised:
        read_json_response(reply)

    error = raised.value
    assert (error.field, error.rule, error.accepted, error.expected) == (field, rule, accepted, expected)
    assert error.top_field == field[:1]


def test_error_of_the_control_api_is_read_in_its_parts() -> None:
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


def test_response_without_a_body_is_none() -> None:
    assert read_json_response(ClientResponse(204, b"")) is None
