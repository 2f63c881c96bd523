"""Texts of exceptions for people."""

import errno
import os
import socket
import ssl
import tomllib

import aiohttp
import pytest

from waypost.base.error_texts import error_text, toml_error_text
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
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "there is no host of this name"),
        (socket.gaierror(socket.EAI_FAIL, "Non-recoverable failure"), "the name of the host cannot be looked up"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"),
         "no secure connection could be made (TLS); the other side does not speak TLS"),
        (ssl.SSLCertVerificationError(1, "[SSL: X] certificate verify failed: self-signed certificate (_ssl.c:1006)"),
         "its certificate is not valid: self-signed certificate"),
        (UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte"), "it is not UTF-8 at byte 1"),
        (UnicodeError("label empty or too long"), "this is not the name of a host"),
    ],
)  # fmt: skip
def test_error_is_described_in_plain_text(error: Exception, text: str) -> None:
    assert error_text(error) == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("a = 1\na = 2\n", "is not valid TOML at line 2, column 6: a name is given twice"),
        ("[a]\n[a]\n", "is not valid TOML at line 2, column 3: a name is given twice"),
        ('a = "x', "is not valid TOML at its end: the text has no closing quote"),
        (
            "a = x\n",
            "is not valid TOML at line 1, column 5: a value or a closing bracket is missing, or a text has no quotes",
        ),
        ("a\n", "is not valid TOML at line 1, column 2: a name must be followed by ="),
        ("[[a\n", "is not valid TOML at line 1, column 4: a [table] has no closing bracket"),
        ("a = 1 b = 2", "is not valid TOML at line 1, column 7: only one name = value may stand on a line"),
    ],
)
def test_invalid_toml_is_described_by_its_place_and_rule(text: str, rule: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as parsing:
        tomllib.loads(text)

    assert toml_error_text(parsing.value) == rule
