"""The texts in a stored message content: for searches, and for a line in a list."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

NON_TEXT_MEMBERS: Final = frozenset({  # members of a content that identify or classify something, and hold no text
    "template_id", "kind", "media_kind", "card_media_kind", "type", "sub_type", "reply_to", "sender_id",
    "catalog_id", "product_id", "product_ids", "product_retailer_id", "thumbnail_id", "media", "id",
    "messaging_product", "recipient_type", "message_id", "code", "policy", "format", "index",
})  # fmt: skip
_LEADING_MEMBERS: Final = ("text", "body", "caption", "params", "title", "name", "file_name", "emoji")
_decode_content = msgspec.json.Decoder().decode


def content_texts(content: bytes) -> list[str]:
    """Return every text of a content that people read: texts, captions, titles, values of template variables.

    Args:
        content: as stored; empty once retention has cleared it.
    """
    return list(_texts(_decode_content(content))) if content else []


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
