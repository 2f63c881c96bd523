"""What an exception says to people: no class names, no notation of a library."""

import os
import re
from typing import Final

_INNER_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_text(error: BaseException) -> str:
    """Say what went wrong in words: the system's own where it has some, else the exception's text.

    An exception without a text is named by its class, in words: `server disconnected`.
    """
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    text = str(error).strip()
    if text:
        return text
    if isinstance(error, TimeoutError):
        return "no answer in time"
    name = type(error).__name__.removesuffix("Error").removesuffix("Exception")
    return _INNER_CAPITAL.sub(" ", name).lower()
