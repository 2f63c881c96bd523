"""Texts of exceptions for people."""

import errno
import os

import aiohttp
import pytest

from waypost.base.error_texts import error_text
from waypost.base.http.connections import ResponseLost, ResponseTimeout


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ResponseLost("the connection was closed before the response"), "the connection was closed before the response"),
        (ResponseTimeout("no response in time"), "no response in time"),
        (TimeoutError(), "no response in time"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), os.strerror(errno.ECONNREFUSED)),
        (aiohttp.ServerDisconnectedError(), "Server disconnected"),
        (ConnectionResetError(), "connection reset"),
    ],
)  # fmt: skip
def test_error_is_described_in_plain_text(error: Exception, text: str) -> None:
    assert error_text(error) == text
