"""Text as handsets show it: a few marks become bold, lists and links; all else is text, and escaped.

The marks are those of the channel: they touch the text they mark, stand at the edges of words, end on
their line, and mean nothing inside fixed-width text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import groupby
from typing import Final
from urllib.parse import urlsplit

from markupsafe import Markup, escape

LONG_CHARS: Final = 768
LONG_LINES: Final = 18
"""Of a text that is longer, a handset shows the beginning, and the words "Read more"."""

_EDGE: Final = r"[^\W_]"
"""What a mark may not touch on its outer side: a letter or a digit."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of `MARKS`.

    Attributes:
        sign: what stands on both sides.
        whole: what it becomes, around what it marks.
        nests: whether other marks mean something inside.
    """

    sign: str
    whole: Markup
    nests: bool = True


# fmt: off
MARKS: Final = (  # Source: the channel's help page "How to format your messages"; the longest sign first
    #    sign   whole                              nests
    Mark("```", Markup("<code>{}</code>"),         False),
    Mark("`",   Markup("<code>{}</code>"),         False),
    Mark("*",   Markup("<strong>{}</strong>")),
    Mark("_",   Markup("<em>{}</em>")),
    Mark("~",   Markup("<s>{}</s>")),
)
_BLOCKS: Final = (  # how a line begins, and what the lines that begin so become
    ("quote",  re.compile(r"> (.*)", re.DOTALL)),
    ("bullet", re.compile(r"[*-] +(\S.*)", re.DOTALL)),
    ("number", re.compile(r"([0-9]{1,3})\. +(\S.*)", re.DOTALL)),
    ("plain",  re.compile(r"(.*)", re.DOTALL)),
)
_EMOJI: Final = (  # Source: Unicode, emoji-data.txt, Emoji_Presentation and what VS16 makes one; whole blocks
    (0x1F000, 0x1FAFF), (0x2190, 0x21FF), (0x2300, 0x23FF), (0x2460, 0x24FF), (0x25A0, 0x27BF),
    (0x2900, 0x297F), (0x2B00, 0x2BFF), (0x3030, 0x303D), (0x3297, 0x3299), (0x203C, 0x2049), (0x2122, 0x2139),
)
# fmt: on
_JOINER: Final = "\u200d"
_MODIFIERS: Final = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f\u20e3\U000e0020-\U000e007f]")
_MONO: Final = re.compile("```.+?```", re.DOTALL)
_LINK: Final = re.compile(r"https?://[^\s<>\"'`\x00-\x20\x7f]+", re.IGNORECASE)
_TRAILING: Final = ".,;:!?)]}*_~"
_VARIABLE: Final = re.compile(r"\{\{[^{}]*\}\}")
_CLOSERS: Final = {
    "```": re.compile("```"),
    "`": re.compile("(?<!`)`(?!`)"),
    **{
        mark.sign: re.compile(rf"(?<![\s{re.escape(mark.sign)}]){re.escape(mark.sign)}(?!{_EDGE})")
        for mark in MARKS
        if mark.nests
    },
}
_WITHIN_LINES: Final = ("strong", "em", "s", "code", "a")
_TAG: Final = re.compile("<[^>]*>")  # of our markup: what a text brings is escaped
_START: Final = re.compile(r"```|[`*_~]|https?://|\{\{", re.IGNORECASE)


def formatted(text: str, *, marks_variables: bool = False) -> Markup:
    """A text as markup.

    Args:
        text: anything.
        marks_variables: whether what is left of `{{1}}` is shown as a gap, as in a draft.
    """
    blocks: list[Markup] = []
    for kind, lines in groupby(_lines(text), key=_kind):
        blocks.append(_MAKERS[kind]([*lines], marks_variables))
    return Markup("").join(blocks)


def plain_text(text: str) -> str:
    """A text in one line, without its marks: for a list of chats, and for what a reply quotes."""
    return " ".join(unescape(_TAG.sub(_gap, formatted(text))).split())


def _gap(tag: re.Match[str]) -> str:
    return "" if tag[0].strip("</>").partition(" ")[0] in _WITHIN_LINES else " "


def emoji_count(text: str) -> int:
    """How many emoji a text consists of, 1 to 3; 0 where there is anything else in it, or more of them."""
    bare = _MODIFIERS.sub("", text.strip())
    if not bare or len(bare) > 24:
        return 0
    signs = [one for one in bare if one != _JOINER]
    if not all(any(low <= ord(one) <= high for low, high in _EMOJI) for one in signs):
        return 0
    flags = sum(0x1F1E6 <= ord(one) <= 0x1F1FF for one in signs)  # two make one
    count = len(signs) - bare.count(_JOINER) - flags // 2
    return count if 1 <= count <= 3 else 0


def is_long(text: str) -> bool:
    """Whether a handset shows only the beginning."""
    return len(text) > LONG_CHARS or text.count("\n") >= LONG_LINES


@dataclass(frozen=True, slots=True)
class Link:
    """An address in a text."""

    url: str
    host: str
    path: str


def first_link(text: str) -> Link | None:
    """The first address in a text, for its preview."""
    for found in _LINK.finditer(text):
        link = safe_link(found[0].rstrip(_TRAILING))
        if link is not None:
            return link
    return None


def safe_link(url: str) -> Link | None:
    """An address that a page may lead to: http or https, with a host; None for every other."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host or _is_odd(url):
        return None
    rest = parts.path + (f"?{parts.query}" if parts.query else "")
    return Link(url, host, "" if rest == "/" else rest)


def _is_odd(url: str) -> bool:
    return any(one <= " " or one == "\x7f" for one in url)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text; what is fixed-width stays in one."""
    within = {at for mono in _MONO.finditer(text) for at in range(*mono.span())}
    start = 0
    for end in [found.start() for found in re.finditer("\n", text)]:
        if end not in within:
            yield text[start:end]
            start = end + 1
    yield text[start:]


def _kind(line: str) -> str:
    return next(kind for kind, begins in _BLOCKS if begins.fullmatch(line))


def _content(line: str, kind: str) -> str:
    found = dict(_BLOCKS)[kind].fullmatch(line)
    return found[found.re.groups] if found else line


def _plain(lines: list[str], gaps: bool) -> Markup:
    inner = Markup("<br>").join(_inline(line, MARKS, gaps) for line in lines)
    return Markup("<p>{}</p>").format(inner)


def _quote(lines: list[str], gaps: bool) -> Markup:
    inner = Markup("<br>").join(_inline(_content(line, "quote"), MARKS, gaps) for line in lines)
    return Markup("<blockquote>{}</blockquote>").format(inner)


def _bullets(lines: list[str], gaps: bool) -> Markup:
    return Markup("<ul>{}</ul>").format(_items(lines, "bullet", gaps))


def _numbers(lines: list[str], gaps: bool) -> Markup:
    first = int(lines[0].partition(".")[0])
    return Markup('<ol start="{}">{}</ol>').format(first, _items(lines, "number", gaps))


def _items(lines: list[str], kind: str, gaps: bool) -> Markup:
    return Markup("").join(Markup("<li>{}</li>").format(_inline(_content(line, kind), MARKS, gaps)) for line in lines)


_MAKERS: Final[dict[str, Callable[[list[str], bool], Markup]]] = {
    "quote": _quote,
    "bullet": _bullets,
    "number": _numbers,
    "plain": _plain,
}


def _inline(text: str, marks: tuple[Mark, ...], gaps: bool) -> Markup:
    """One line, or what stands between two marks; `marks` are those that still mean something."""
    made: list[Markup] = []
    dead: set[str] = set()  # signs that nothing closes any more
    at = written = 0
    while (start := _START.search(text, at)) is not None:
        found = _piece(text, start, marks, dead, gaps)
        if found is None:
            at = start.end()
            continue
        markup, end = found
        made += [escape(text[written : start.start()]), markup]
        at = written = end
    return Markup("").join([*made, escape(text[written:])])


def _piece(
    text: str, start: re.Match[str], marks: tuple[Mark, ...], dead: set[str], gaps: bool
) -> tuple[Markup, int] | None:
    """What begins at a place, and where it ends; None where nothing does."""
    sign, at = start[0], start.start()
    if sign == "{{":
        found = _VARIABLE.match(text, at) if gaps else None
        return found and (Markup('<span class="gap">{}</span>').format(found[0]), found.end())
    if "://" in sign:
        found = _LINK.match(text, at)
        link = safe_link(found[0].rstrip(_TRAILING)) if found else None
        return link and (_anchor(link), at + len(link.url))
    for mark in marks:
        if text.startswith(mark.sign, at) and mark.sign not in dead:
            end = _end(text, at, mark, dead)
            if end is not None:
                inner = text[at + len(mark.sign) : end]
                within = tuple(one for one in marks if one is not mark) if mark.nests else ()
                shown = _inline(inner, within, gaps) if mark.nests else escape(inner.strip("\n"))
                return mark.whole.format(shown), end + len(mark.sign)
    return None


def _end(text: str, at: int, mark: Mark, dead: set[str]) -> int | None:
    """Where the mark that opens here closes."""
    inner = at + len(mark.sign)
    if mark.nests and at and re.match(_EDGE, text[at - 1]):
        return None
    if mark.nests and (inner >= len(text) or text[inner].isspace() or text[inner] == mark.sign):
        return None
    if mark.sign == "`" and "`" in (text[at - 1 : at], text[inner : inner + 1]):
        return None
    found = _CLOSERS[mark.sign].search(text, inner + 1)
    if found is None:
        dead.add(mark.sign)
        return None
    return found.start() if text[inner : found.start()].strip() else None


def _anchor(link: Link) -> Markup:
    return Markup('<a href="{}" target="_blank" rel="noopener noreferrer nofollow">{}</a>').format(link.url, link.url)
