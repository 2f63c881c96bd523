"""The structure of RichText and of markdown in texts: blocks, and within them spans. No HTML comes of it.

Source: public page "Components", RichText: headings of two levels, lists of one level, tables, pictures as data; texts
with markdown have lists and spans only.
"""

import re
from typing import Any, Final

MAX_BLOCKS: Final = 500
MAX_SPANS: Final = 2_000
"""Of a whole text; what follows is plain."""
MAX_SPAN_CHARS: Final = 50_000
"""Of a whole text; what follows is left out."""
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")
_BULLET: Final = re.compile(r"\s*[-*+]\s+(.*)")
_NUMBER: Final = re.compile(r"\s*\d{1,9}[.)]\s+(.*)")
_PICTURE: Final = re.compile(r"!\[([^\]]*)\]\(\s*(data:image/(?:png|jpe?g|webp);base64,[A-Za-z0-9+/=]+)\s*\)")
_RULE: Final = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_SPAN: Final = re.compile(
    r"\[(?P<label>[^\]\[]{0,500})\]\((?P<url>(?:https?|mailto|tel):[^\s()]{1,2000})\)"
    r"|(?P<both>\*\*\*)(?=\S)|(?P<bold>\*\*)|(?P<strike>~~)|(?P<italic>[*_])"
)
_LEVELS: Final = 2
_MAX_COLUMNS: Final = 20


def parse_markdown(text: str, *, is_rich: bool) -> list[dict[str, Any]]:
    """Return the blocks of a text.

    A block has a `type`: `heading` (with `level` 1 or 2), `paragraph`, `list` (with `is_ordered` and `items`), and of
    RichText `table` (with `header` and `rows` of cells) and `image` (with `src`, a data URL, and `alt_text`). Headings,
    paragraphs, items and cells have spans: `text`, and what is true of `bold`, `italic` and `strikethrough`, and `url`.
    """
    reader = _BlockReader(text.split("\n"), is_rich)
    return reader.read()


class _BlockReader:
    """Reads lines from top to bottom."""

    def __init__(self, lines: list[str], is_rich: bool) -> None:
        self._lines = lines
        self._is_rich = is_rich
        self._at = 0
        self._spans = SpanReader()

    def read(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        while self._at < len(self._lines) and len(blocks) < MAX_BLOCKS:
            line = self._lines[self._at]
            if not line.strip():
                self._at += 1
                continue
            blocks.append(self._read_rich(line) or self._read_list(line) or self._read_paragraph())
        return blocks

    def _read_rich(self, line: str) -> dict[str, Any] | None:
        """Return a block that only RichText has."""
        if not self._is_rich:
            return None
        heading, picture = _HEADING.fullmatch(line), _PICTURE.fullmatch(line.strip())
        if heading is not None:
            self._at += 1
            level = len(heading[1])
            kind = {"type": "heading", "level": level} if level <= _LEVELS else {"type": "paragraph"}
            return {**kind, "spans": self._spans.read(heading[2])}
        if picture is not None:
            self._at += 1
            return {"type": "image", "src": picture[2], "alt_text": picture[1]}
        following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        if "|" in line and "-" in following and _RULE.fullmatch(following.strip()):
            header = self._read_cells(line)
            self._at += 2
            rows: list[list[list[dict[str, Any]]]] = []
            while self._at < len(self._lines) and "|" in self._lines[self._at]:
                rows.append(self._read_cells(self._lines[self._at]))
                self._at += 1
            return {"type": "table", "header": header, "rows": rows[:MAX_BLOCKS]}
        return None

    def _read_cells(self, line: str) -> list[list[dict[str, Any]]]:
        return [self._spans.read(cell.strip()) for cell in line.strip().strip("|").split("|")[:_MAX_COLUMNS]]

    def _read_list(self, line: str) -> dict[str, Any] | None:
        kind = next((kind for kind in (_BULLET, _NUMBER) if kind.fullmatch(line)), None)
        if kind is None:
            return None
        items: list[list[dict[str, Any]]] = []
        while self._at < len(self._lines) and (match := kind.fullmatch(self._lines[self._at])):
            items.append(self._spans.read(match[1]))
            self._at += 1
        return {"type": "list", "is_ordered": kind is _NUMBER, "items": items[:MAX_BLOCKS]}

    def _read_paragraph(self) -> dict[str, Any]:
        lines = [self._lines[self._at]]
        self._at += 1
        return {"type": "paragraph", "spans": self._spans.read(lines[0])}


class SpanReader:
    """Reads the spans of texts, up to a number for all of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._left = MAX_SPANS
        self._left_chars = MAX_SPAN_CHARS

    def read(self, text: str) -> list[dict[str, Any]]:
        """Return the spans of a text; a mark without its end is text."""
        text = text[: self._left_chars]
        self._left_chars -= len(text)
        pairs = _find_pairs(text)
        spans: list[dict[str, Any]] = []
        styles: dict[str, bool] = {}
        at = 0
        for match in _SPAN.finditer(text):
            is_mark = match["label"] is None
            if self._left <= 0 or (is_mark and match.start() not in pairs):
                continue
            self._add(spans, text[at : match.start()], styles)
            at = match.end()
            if match["label"] is not None:
                self._add(spans, match["label"], {**styles, "url": match["url"]})
                continue
            for style in ("bold", "italic") if match["both"] else (_style_of(match),):
                if styles.pop(style, None) is None:
                    styles[style] = True
        self._add(spans, text[at:], styles)
        return spans

    def _add(self, spans: list[dict[str, Any]], text: str, styles: dict[str, Any]) -> None:
        if text:
            self._left -= 1
            spans.append({"text": text, **styles})


def _style_of(match: re.Match[str]) -> str:
    return "bold" if match["bold"] else "strikethrough" if match["strike"] else "italic"


def _find_pairs(text: str) -> set[int]:
    """Return where marks stand that have their other end."""
    opened: dict[str, int] = {}
    pairs: set[int] = set()
    for match in _SPAN.finditer(text):
        if match["label"] is not None:
            continue
        mark = match[0]
        if mark in opened:
            pairs |= {opened.pop(mark), match.start()}
        elif not text[match.end() : match.end() + 1].isspace():
            opened[mark] = match.start()
    return pairs
