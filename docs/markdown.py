"""Markdown of the generated pages: tables, code, and whole pages with the note that says from what they are made."""

import textwrap
from collections.abc import Iterable
from functools import partial
from pathlib import Path

GENERATED = "<!-- Generated from {} by `make reference`. Do not edit. -->"


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def cell(value: object) -> str:
    """Return a value as the text of a table cell."""
    return str(value).replace("|", "\\|").replace("\n", " ").strip() or "-"


def as_code(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as code of Markdown, in which nothing is markup."""
    return tuple(f"`` {text} ``" if "`" in text else f"`{text}`" for text in texts)


def page(title: str, first: str, *parts: str, source: str = "the tables in the code") -> str:
    """Return the text of one page, which says from what it is generated."""
    return "\n\n".join((f"# {title}", GENERATED.format(source), *map(wrapped, (first, *parts)))) + "\n"


def wrapped(part: str) -> str:
    """Return prose and items of lists in lines of at most 118 characters; tables, headings and code unchanged."""
    if part.startswith(("|", "#", "```")):
        return part
    fill = partial(textwrap.fill, width=118, break_long_words=False, break_on_hyphens=False)
    if part.startswith("- "):
        return "\n".join(fill(item, subsequent_indent="  ") for item in part.splitlines())
    return fill(part)


def default_text(value: object) -> str:
    """Return the default of a setting as the text of a table cell."""
    if value is None:
        return "not set"
    if value == ():
        return "empty"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_links(names: list[str]) -> str:
    """Return links to at most three tests, and the number of the others."""
    parts = [name.partition("#" if "#" in name else "::") for name in names[:3]]
    shown = [f"[{case or Path(file).name}](../../{file})" for file, _, case in parts]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
