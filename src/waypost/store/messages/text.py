"""The texts in a stored message content: for searches, and for a line in a list."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

NON_TEXT_MEMBERS: Final = frozenset({  # members of a content that identify or classify something, and hold no text
    "template_id", "kind", "media_kind", "card_media_kind", "type", "sub_type", "reply_to", "sender_id",
    "catalog_id", "product_id", "product_ids", "product_retailer_id", "thumbnail_id", "media", "id",
    "messaging_product", "recipient_type", "message_id", "code", "policy", "format", "index",
})  # fmt: skip
_LEADING_MEMBERS: Final = ("text", "body", "caption", "params", "title", "name", "file_name", "emoji")
MIN_WORD_CHARS: Final = 4
"""Shorter words are not searched for in hidden texts: a phrase would be read word by word, an amount digit by digit."""
_WORD: Final = re.compile(r"[^\W_](?:\S*[^\W_])?")
"""What stands between spaces, without punctuation around it: an amount, an address and a link are one word each."""
_decode_content = msgspec.json.Decoder().decode


def content_texts(content: bytes) -> list[str]:
    """Return every text of a content that people read: texts, captions, titles, values of template variables.

    Args:
        content: as stored; empty once retention has cleared it.
    """
    return list(_texts(_decode_content(content))) if content else []


def has_part(text: str, part: str, *, whole_words: bool) -> bool:
    """Return True if a text has this part, in any case; with `whole_words` only as consecutive whole words."""
    text, part = text.casefold(), part.casefold()
    if not whole_words:
        return part in text
    words = _WORD.findall(part)
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(_WORD.findall(text))} "


def can_be_searched_hidden(text: str) -> bool:
    """Return True if each word of a text is long enough to be searched for in hidden texts."""
    words = _WORD.findall(text)
    return bool(words) and all(len(word) >= MIN_WORD_CHARS for word in words)


def short_text(content: bytes, at_most: int = 120) -> str:
    """Return a message's texts as one line; empty if it has none, or retention has cleared them."""
    line = " · ".join(
        text for content_text in content_texts(content) if (text := " ".join(content_text[: at_most * 2].split()))
    )
    return line if len(line) <= at_most else line[: at_most - 1].rstrip() + "…"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        leading = [name for name in _LEADING_MEMBERS if name in members]
        for name in (*leading, *(member for member in members if member not in leading)):
            if name not in NON_TEXT_MEMBERS:
                yield from _texts(members[name])
    elif isinstance(value, list):
        for member in cast("list[Any]", value):
            yield from _texts(member)
