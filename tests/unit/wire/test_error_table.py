"""The table of errors: every error code has a row, and documented texts are the whole message."""

import pytest

from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.errors import ERRORS, error_response, header_text


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_a_row_with_its_source(code: ErrorCode) -> None:
    assert ERRORS[code].source
    assert ERRORS[code].status in (
        *range(400, 501),
        503,
    )  # 500: as documented for a full disk; 503: the operator is unavailable


@pytest.mark.parametrize("code", ErrorCode)
def test_documented_text_is_the_whole_message_and_the_explanation_a_header(code: ErrorCode) -> None:
    status, body, headers = error_response(ApiError(code, "because"))

    row = ERRORS[code]
    text = row.text
    assert status == row.status
    message = {"message": text} if row.nested else text or "because"
    assert body == {"status": "error", "message": message}
    assert headers.get("Waypost-Reason") == ("because" if text else None)


def test_field_is_named_to_our_own_programs_only() -> None:
    error = invalid_field("name", "ä or\nb")

    response = error_response(error, names_field=True)

    assert error_response(error) == (400, response[1], {})
    assert response[2] == {"Waypost-Error": r'{"field": "name", "rule": "field_broken", "accepted": "\u00e4 or\nb"}'}


def test_explanation_cannot_break_out_of_its_header() -> None:
    text = header_text("a\r\nSet-Cookie: b\0ä" + "x" * 1000)

    assert text.startswith("a??Set-Cookie: b??x")
    assert len(text) == 400


def test_error_response_has_the_time_to_retry_after() -> None:
    error = ApiError(ErrorCode.TOO_MANY_REQUESTS, retry_after_s=7)

    assert error_response(error)[2] == {"Retry-After": "7"}
