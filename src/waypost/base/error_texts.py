"""Texts of exceptions for people: no class names, no notation of a library."""

import os
import re
from typing import Final

_INNER_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_text(error: BaseException) -> str:
    """Return the text of an error: the system's own if it has one, else the exception's.

    The text of an exception without one is its class name in lower case: `server disconnected`.
    """
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    text = str(error).strip()
    if text:
        return text
    if isinstance(error, TimeoutError):
        return "no response in time"
    name = type(error).__name__.removesuffix("Error").removesuffix("Exception")
    return _INNER_CAPITAL.sub(" ", name).lower()
