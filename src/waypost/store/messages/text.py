"""The words of a message as it is kept: for whoever searches in them, and for a line in a list."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

NO_WORDS: Final = frozenset({  # members of a content that name or classify something, and say nothing
    "template_id", "kind", "media_kind", "card_media_kind", "type", "sub_type", "reply_to", "sender_id",
    "catalog_id", "product_id", "product_ids", "product_retailer_id", "thumbnail_id", "media", "id",
    "messaging_product", "recipient_type", "message_id", "code", "policy", "format", "index",
})  # fmt: skip
_FIRST: Final = ("text", "body", "caption", "params", "title", "name", "file_name", "emoji")
_decode = msgspec.json.Decoder().decode


def words_of(content: bytes) -> list[str]:
    """Every text of a content that somebody reads: texts, captions, titles, the values of a template's variables.

    Args:
        content: as the column has it; empty where retention has cleared it.
    """
    return list(_texts(_decode(content))) if content else []


def short_text(content: bytes, at_most: int = 120) -> str:
    """One line of what a message says; empty where it says nothing, or nothing any more."""
    line = " · ".join(text for one in words_of(content) if (text := " ".join(one[: at_most * 2].split())))
    return line if len(line) <= at_most else line[: at_most - 1].rstrip() + "…"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        first = [name for name in _FIRST if name in members]
        for name in (*first, *(one for one in members if one not in first)):
            if name not in NO_WORDS:
                yield from _texts(members[name])
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _texts(one)
