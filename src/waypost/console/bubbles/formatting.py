"""Formatting of message texts as on a handset: bold, lists, links and so on; everything else is escaped.

The markers are the channel's: they touch the text they format, are at word boundaries, end on their line,
and have no effect inside fixed-width text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import groupby
from typing import Final
from urllib.parse import urlsplit

from markupsafe import Markup, escape

LONG_CHARS: Final = 768
LONG_LINES: Final = 18
"""Of a longer text, a handset shows the beginning and "Read more"."""

_EDGE: Final = r"[^\W_]"
"""A letter or digit, which must not touch a marker on its outer side."""


@dataclass(frozen=True, slots=True)
class TextMarker:
    """One marker of the channel's text formatting."""

    sign: str  # characters on both sides
    whole: Markup  # markup around the formatted text
    nests: bool = True  # True if other markers apply inside


# fmt: off
TEXT_MARKERS: Final = (  # Source: the channel's help page "How to format your messages"; the longest sign first
    #    sign   whole                              nests
    TextMarker("```", Markup("<code>{}</code>"), False),
    TextMarker("`",   Markup("<code>{}</code>"), False),
    TextMarker("*",   Markup("<strong>{}</strong>")),
    TextMarker("_",   Markup("<em>{}</em>")),
    TextMarker("~",   Markup("<s>{}</s>")),
)
_BLOCKS: Final = {  # the pattern of the lines of each kind of block; the first that matches
    "quote":  re.compile(r"> (.*)", re.DOTALL),
    "bullet": re.compile(r"[*-] +(\S.*)", re.DOTALL),
    "number": re.compile(r"([0-9]{1,3})\. +(\S.*)", re.DOTALL),
    "plain":  re.compile(r"(.*)", re.DOTALL),
}
_EMOJI: Final = (  # Source: Unicode, emoji-data.txt, Emoji_Presentation and VS16 sequences; whole blocks
    (0x1F000, 0x1FAFF), (0x2190, 0x21FF), (0x2300, 0x23FF), (0x2460, 0x24FF), (0x25A0, 0x27BF),
    (0x2900, 0x297F), (0x2B00, 0x2BFF), (0x3030, 0x303D), (0x3297, 0x3299), (0x203C, 0x2049), (0x2122, 0x2139),
)
# fmt: on
_JOINER: Final = "\u200d"
_MODIFIERS: Final = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f\u20e3\U000e0020-\U000e007f]")
_MONO: Final = re.compile("```.+?```", re.DOTALL)
_LINK: Final = re.compile(r"https?://[^\s<>\"'`\x00-\x20\x7f]+", re.IGNORECASE)
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f]")
_TRAILING: Final = ".,;:!?)]}*_~"
_VARIABLE_PATTERN: Final = re.compile(r"\{\{[^{}]*\}\}")
_CLOSERS: Final = {
    "```": re.compile("```"),
    "`": re.compile("(?<!`)`(?!`)"),
    **{
        mark.sign: re.compile(rf"(?<![\s{re.escape(mark.sign)}]){re.escape(mark.sign)}(?!{_EDGE})")
        for mark in TEXT_MARKERS
        if mark.nests
    },
}
_INLINE_TAGS: Final = ("strong", "em", "s", "code", "a")
_TAG: Final = re.compile("<[^>]*>")  # of our own markup: tags in the text are escaped
_START: Final = re.compile(r"```|[`*_~]|https?://|\{\{", re.IGNORECASE)


def format_text(text: str, *, marks_variables: bool = False) -> Markup:
    """Return a text as HTML.

    Args:
        marks_variables: True to highlight unfilled variables such as `{{1}}`, as in a draft.
    """
    blocks = groupby(
        _split_lines(text), key=lambda line: next(kind for kind, begins in _BLOCKS.items() if begins.fullmatch(line))
    )
    return Markup("").join(_block(kind, [*lines], marks_variables) for kind, lines in blocks)


def plain_text(text: str) -> str:
    """Return a text in one line without its markers, for lists of chats and quotes."""
    bare = _TAG.sub(lambda tag: "" if tag[0].strip("</>").partition(" ")[0] in _INLINE_TAGS else " ", format_text(text))
    return " ".join(unescape(bare).split())


def emoji_count(text: str) -> int:
    """Return the number of emoji, 1 to 3, if the text has nothing else, or else 0."""
    bare = _MODIFIERS.sub("", text.strip())
    if not bare or len(bare) > 24:
        return 0
    signs = [sign for sign in bare if sign != _JOINER]
    if not all(any(low <= ord(sign) <= high for low, high in _EMOJI) for sign in signs):
        return 0
    flags = sum(0x1F1E6 <= ord(sign) <= 0x1F1FF for sign in signs)  # two characters make one flag
    count = len(signs) - bare.count(_JOINER) - flags // 2
    return count if 1 <= count <= 3 else 0


def is_long(text: str) -> bool:
    """True if a handset shows only the beginning."""
    return len(text) > LONG_CHARS or text.count("\n") >= LONG_LINES


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a text."""

    url: str
    host: str
    path: str


def first_link(text: str) -> Link | None:
    """Return the first link in a text, for its preview."""
    for match in _LINK.finditer(text):
        link = safe_link(match[0].rstrip(_TRAILING))
        if link is not None:
            return link
    return None


def safe_link(url: str) -> Link | None:
    """Return a link that a page may contain (http or https, with a host), or else None."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host or _UNSAFE.search(url):
        return None
    rest = parts.path + (f"?{parts.query}" if parts.query else "")
    return Link(url, host, "" if rest == "/" else rest)


def _split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text; fixed-width text stays on one line."""
    within = {at for mono in _MONO.finditer(text) for at in range(*mono.span())}
    start = 0
    for end in [match.start() for match in re.finditer("\n", text)]:
        if end not in within:
            yield text[start:end]
            start = end + 1
    yield text[start:]


def _block(kind: str, lines: list[str], gaps: bool) -> Markup:
    """Return the lines of one block of `_BLOCKS`."""
    contents = [match[match.re.groups] for line in lines if (match := _BLOCKS[kind].fullmatch(line))]
    inner = [_inline(content, TEXT_MARKERS, gaps) for content in contents]
    if kind in ("plain", "quote"):
        whole = Markup("<p>{}</p>") if kind == "plain" else Markup("<blockquote>{}</blockquote>")
        return whole.format(Markup("<br>").join(inner))
    items = Markup("").join(Markup("<li>{}</li>").format(item) for item in inner)
    if kind == "bullet":
        return Markup("<ul>{}</ul>").format(items)
    return Markup('<ol start="{}">{}</ol>').format(int(lines[0].partition(".")[0]), items)


def _inline(text: str, marks: tuple[TextMarker, ...], gaps: bool) -> Markup:
    """Return a line, or the text between two markers, as HTML; `scope_members` are the markers that apply there."""
    made: list[Markup] = []
    dead: set[str] = set()  # signs without a closing marker after this point
    at = written = 0
    while (start := _START.search(text, at)) is not None:
        element = _inline_element(text, start, marks, dead, gaps)
        if element is None:
            at = start.end()
            continue
        markup, end = element
        made += [escape(text[written : start.start()]), markup]
        at = written = end
    return Markup("").join([*made, escape(text[written:])])


def _inline_element(
    text: str, start: re.Match[str], marks: tuple[TextMarker, ...], dead: set[str], gaps: bool
) -> tuple[Markup, int] | None:
    """Return the HTML of the element that begins at `start` and its end; None if none begins there."""
    sign, at = start[0], start.start()
    if sign == "{{":
        variable = _VARIABLE_PATTERN.match(text, at) if gaps else None
        return variable and (Markup('<span class="gap">{}</span>').format(variable[0]), variable.end())
    if "://" in sign:
        url = _LINK.match(text, at)
        link = safe_link(url[0].rstrip(_TRAILING)) if url else None
        anchor = Markup('<a href="{0}" target="_blank" rel="noopener noreferrer nofollow">{0}</a>')
        return link and (anchor.format(link.url), at + len(link.url))
    for mark in marks:
        if text.startswith(mark.sign, at) and mark.sign not in dead:
            end = _find_closer(text, at, mark, dead)
            if end is not None:
                inner = text[at + len(mark.sign) : end]
                inner_marks = tuple(other for other in marks if other is not mark) if mark.nests else ()
                shown = _inline(inner, inner_marks, gaps) if mark.nests else escape(inner.strip("\n"))
                return mark.whole.format(shown), end + len(mark.sign)
    return None


def _find_closer(text: str, at: int, mark: TextMarker, dead: set[str]) -> int | None:
    """Return the position of the closing marker; None if there is none."""
    inner = at + len(mark.sign)
    if mark.nests and at and re.match(_EDGE, text[at - 1]):
        return None
    if mark.nests and (inner >= len(text) or text[inner].isspace() or text[inner] == mark.sign):
        return None
    if mark.sign == "`" and "`" in (text[at - 1 : at], text[inner : inner + 1]):
        return None
    closer = _CLOSERS[mark.sign].search(text, inner + 1)
    if closer is None:
        dead.add(mark.sign)
        return None
    return closer.start() if text[inner : closer.start()].strip() else None
