"""The structure of RichText and of markdown in texts."""

from typing import Any


def parse_markdown(text: str, *, is_rich: bool) -> list[dict[str, Any]]:
    """Return the blocks of a text."""
    return [{"type": "paragraph", "spans": [{"text": text}]}] if text else []
