"""What exceptions say to people."""

import errno
import os

import aiohttp
import pytest

from waypost.base.error_texts import error_text
from waypost.base.http.post_client import ResponseLost, ResponseTimeout


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ResponseLost("the connection was closed before the answer"), "the connection was closed before the answer"),
        (ResponseTimeout("no answer in time"), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), os.strerror(errno.ECONNREFUSED)),
        (aiohttp.ServerDisconnectedError(), "Server disconnected"),
        (ConnectionResetError(), "connection reset"),
    ],
)  # fmt: skip
def test_an_error_is_told_in_words(error: Exception, text: str) -> None:
    assert error_text(error) == text
