"""Exceptions: their texts for people, without class names and the notation of a library, and what they keep alive."""

import json
import os
import re
import socket
from typing import Final

_INNER_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CERTIFICATE_CHAIN: Final = re.compile(r"certificate verify failed: (.+?)(?: \(_ssl\.c:\d+\))?$")
_TOML_PLACE: Final = re.compile(r"^(.*) \(at (line \d+, column \d+|end of document)\)$", re.DOTALL)
_NAME_ERRORS: Final = {
    socket.EAI_NONAME: "there is no host of this name",
    socket.EAI_AGAIN: "the name cannot be looked up now: the name server gives no response",
}
_TOML_RULES: Final = (  # how the parser's text begins, and what is wrong
    ("Cannot", "a name is given twice"),
    ("Unterminated", "the text has no closing quote"),
    ("Illegal character", "the text has no closing quote, or a control character"),
    ("Invalid value", "a value or a closing bracket is missing, or a text has no quotes"),
    ("Expected '='", "a name must be followed by ="),
    ("Expected newline", "only one name = value may stand on a line"),
    ("Invalid statement", "a line must be name = value or [table]"),
    ("Unescaped", "a \\ in a text must be written twice, or the text stand in single quotes"),
    ("Expected ']", "a [table] has no closing bracket"),
    ("Unclosed", "a list or a table has no closing bracket"),
)


def error_text(error: BaseException) -> str:
    """Return the text of an error: the system's if it has one, ours for a library's, else the exception's.

    The text of an exception without one is its class name in lower case: `server disconnected`.
    """
    if isinstance(error, socket.gaierror) or (
        isinstance(error, OSError) and (error.errno or 0) < 0
    ):  # socket.create_server loses the type
        return _NAME_ERRORS.get(error.errno or 0, "the name of the host cannot be looked up")
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 at byte {error.start}"
    if isinstance(error, UnicodeError):  # while a name is encoded for the name server
        return "this is not the name of a host"
    text = str(error).strip()
    if any(kind.__module__ == "ssl" for kind in type(error).__mro__):  # its number is not the system's
        return _tls_text(text)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if text:
        return text
    if isinstance(error, TimeoutError):
        return "no response in time"
    name = type(error).__name__.removesuffix("Error").removesuffix("Exception")
    return _INNER_CAPITAL.sub(" ", name).lower()


def json_error_text(error: ValueError) -> str:
    """Return where the standard library finds that a text is not JSON; follows its name in a sentence."""
    place = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"is not valid JSON{place}"


def toml_error_text(error: ValueError) -> str:
    """Return where a text stops to be TOML, and why; follows its name in a sentence."""
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 at byte {error.start}"
    if (placed := _TOML_PLACE.match(str(error))) is None:
        return "is not valid TOML"
    place = "its end" if placed[2] == "end of document" else placed[2]
    rule = next((rule for beginning, rule in _TOML_RULES if placed[1].startswith(beginning)), "")
    return f"is not valid TOML at {place}{': ' if rule else ''}{rule}"


def _tls_text(text: str) -> str:
    if chain := _CERTIFICATE_CHAIN.search(text):
        return f"its certificate is not valid: {chain[1]}"
    detail = "; the other side does not speak TLS" if "WRONG_VERSION_NUMBER" in text else ""
    return f"no secure connection could be made (TLS){detail}"


def release_frames(error: BaseException) -> None:
    """Remove the tracebacks of an error and of its causes.

    Each refers to the frames that the error passed through, and these to the request, its body and often to the error
    itself: a cycle, which would keep all of them until the garbage collector runs.
    """
    each: BaseException | None = error
    while each is not None and (each.__traceback__ is not None or each is error):
        each.__traceback__ = None
        before = each.__cause__ or each.__context__
        each = None if before is each else before
