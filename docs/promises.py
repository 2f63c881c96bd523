"""Promises of the pages about packaging and operations, from `docs/sources/promises.toml`, and their page."""

import tomllib
from dataclasses import dataclass

from docs.markdown import table, test_links
from docs.statements import ROOT


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise.

    Attributes:
        page: the page that makes it, from the root of the repository.
        tests: that hold it: `file::name`, or a file that is run by name.
    """

    section: str
    page: str
    text: str
    tests: list[str]


def promises() -> list[Promise]:
    """Return every promise, by section and page."""
    sections = tomllib.loads((ROOT / "docs" / "sources" / "promises.toml").read_text(encoding="utf-8"))
    return [
        Promise(section, page, text, tests)
        for section, pages in sections.items()
        for page, rows in pages.items()
        for text, tests in rows.items()
    ]


def promise_parts() -> list[str]:
    """Return the parts of the page: a table for each section."""
    parts: list[str] = []
    every = promises()
    for section in dict.fromkeys(promise.section for promise in every):
        rows = [
            (promise.text, f"[{promise.page.rpartition('/')[2]}](../../{promise.page})", test_links(promise.tests))
            for promise in every
            if promise.section == section
        ]
        parts += [f"## {section}", table(("Promise", "Page", "Tests"), rows)]
    return parts
