"""The emoji of a reaction: whether a text is exactly one."""

import re
from typing import Final

_PICTURE: Final = "[\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf\u2b00-\u2bff]"
"""Characters that are emoji by default, without flags and skin tones."""
_SIGN: Final = "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23fa\u24c2\u25aa-\u25fe\u2934\u2935\u3030\u303d\u3297\u3299]"
"""Characters that may be shown as emoji."""
_ELEMENT: Final = f"(?:{_PICTURE}|{_SIGN})(?:\ufe0f?[\U0001f3fb-\U0001f3ff]?)[\U000e0020-\U000e007f]*"
_FLAG: Final = "[\U0001f1e6-\U0001f1ff]{2}"
_KEYCAP: Final = "[0-9#*]\ufe0f?\u20e3"
# Source: Unicode, emoji sequences
_SINGLE: Final = re.compile(f"{_ELEMENT}(?:\u200d{_ELEMENT})*|{_FLAG}|{_KEYCAP}")


def is_single_emoji(text: str) -> bool:
    """True if a text is exactly one emoji, which may be a sequence of several characters."""
    return _SINGLE.fullmatch(text) is not None
