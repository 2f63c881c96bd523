"""Every citation of a source leads to a page of ours, and every section of those pages is cited."""

import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from docs.citations import PAGES, SOURCES, Citation, CitedText, UnreadableCitation, citations, cited_texts, resolved
from docs.make_reference import PAGES_ELSEWHERE
from docs.source_pages import NAMES
from tests.docs.repository import links_of, name_of, pages
from waypost.wire.errors import ERRORS

CONTRIBUTING = SOURCES.with_name("contributing")
LEAST_SOURCES = 3_000


def test_every_citation_leads_to_a_heading_or_a_decision() -> None:
    found, problems = read_citations()
    sources = {cited for cited, _ in found if cited.is_source}

    assert problems == []
    assert len(sources) >= LEAST_SOURCES


def test_every_section_of_the_facts_is_cited() -> None:
    cited = {(citation.page, citation.name) for _, citation in read_citations()[0]}
    below = {(page, name.partition(".")[0]) for page, name in cited}

    uncited = [
        (page, number)
        for page in ("facts", "operator", "ledger")
        for number in re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", text_of(PAGES[page]), re.MULTILINE)
        if (page, number) not in cited | below and (page, number.partition(".")[0]) not in cited
    ]

    assert uncited == [("ledger", "2"), ("ledger", "4"), ("ledger", "5")]  # cited by their rows


def test_every_public_page_and_standard_is_cited() -> None:
    cited = {citation.name for _, citation in read_citations()[0] if citation.page == "named"}

    named = re.findall(r"^(?:### |\| (?=RFC \d))([^|\n]+?)(?: \||$)", text_of(PAGES["named"]), re.MULTILINE)

    assert len(named) > 40
    assert set(named) - cited == set()


def test_every_documented_text_of_an_error_is_on_a_page() -> None:
    known = "".join(text_of(page) for page in PAGES.values())

    assert [error_code for error_code, row in ERRORS.items() if row.text and row.text not in known] == []


@pytest.mark.parametrize("path", [path for path in PAGES_ELSEWHERE if path.parent == SOURCES], ids=name_of)
def test_page_of_sources_is_generated_from_data(path: Path) -> None:
    stored = path.read_text(encoding="utf-8")

    assert stored == PAGES_ELSEWHERE[path](), f"{name_of(path)} is out of date: run `make reference`"


def test_every_fact_stands_once() -> None:
    files = [tomllib.loads((SOURCES / f"{name}.toml").read_text(encoding="utf-8")) for name in NAMES]
    parts = [part for file in files for section in file["sections"] for part in section.get("parts", ())]
    rows = Counter(tuple(row) for part in parts for row in part.get("rows", ()))

    assert rows.total() > 1_000
    assert [row for row, count in rows.items() if count > 1] == []


def test_pages_of_sources_are_linked_for_contributors_only() -> None:
    linking = {
        name_of(page)
        for page in pages()
        if page.parent not in (SOURCES, CONTRIBUTING) and any("sources/" in link for link in links_of(page))
    }

    assert linking == {"CONTRIBUTING.md"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("facts 4.1, 11", [("facts", "4.1"), ("facts", "11")]),
        ("facts 2, `app/list`; decision 0024", [("facts", "2"), ("decision", "0024")]),
        ("operator's facts 5.1 to 5.3; ours", [("operator", "5.1"), ("operator", "5.3"), ("own", "Ours")]),
        ("ledger 1.4, row 76", [("ledger", "1.4"), ("ledger", "row 76")]),
        ("spec, Create template, rule 3", [("spec", "Create template, rule 3")]),
        ('spec, "Create template", footer; the shape is ours', [("spec", "Create template"), ("own", "Ours")]),
        ('the operator\'s pages "Flow JSON" and "Flows API"', [("named", "Flow JSON"), ("named", "Flows API")]),
        ("RFC 4291, 6052", [("named", "RFC 4291"), ("named", "RFC 6052")]),
        ("docs/how-to/receive-callbacks.md", [("file", "docs/how-to/receive-callbacks.md")]),
    ],
)
def test_citation_is_parsed(text: str, expected: list[tuple[str, str]]) -> None:
    found = citations(CitedText("tests/wire/cases/one.toml#a_case", text, is_source=True))

    assert [(citation.page, citation.name) for citation in found] == expected
    assert None not in map(resolved, found)


@pytest.mark.parametrize(
    "text",
    [
        "facts 3.8",
        "facts 3.6, no such word",
        "facts 3.6, 9.9",
        "facts 8, 99",
        "facts 8, 499",
        "operator's facts 9.9",
        "ledger row 1",
        "spec, Nothing",
        "spec, Limits, no such limit",
        "decision 9999",
        'public page "Nothing"',
        "docs/nothing.md",
        "design, section 5",
        "hearsay",
        "",
    ],
)
def test_citation_of_a_missing_source_is_a_problem(text: str) -> None:
    assert parse_citations(CitedText("tests/wire/cases/one.toml#a_case", text, is_source=True))[1] != []


def test_facts_in_files_of_the_operator_are_the_operators() -> None:
    for place, page in (("src/waypost/simulator/one.py:1", "operator"), ("src/waypost/wire/one.py:1", "facts")):
        assert [citation.page for citation in citations(CitedText(place, "facts 6.1", is_source=True))] == [page]


@cache
def read_citations() -> tuple[list[tuple[CitedText, Citation]], list[str]]:
    """Return all citations with their texts, and the problems with them."""
    found: list[tuple[CitedText, Citation]] = []
    problems: list[str] = []
    for cited in cited_texts():
        parsed, text_problems = parse_citations(cited)
        found += [(cited, citation) for citation in parsed]
        problems += text_problems
    return found, problems


def parse_citations(cited: CitedText) -> tuple[list[Citation], list[str]]:
    """Return the citations of a text, and the problems with them."""
    try:
        parsed = citations(cited)
    except UnreadableCitation as error:
        return [], [f"{cited.place}: {error}"]
    return parsed, [f"{cited.place}: {citation} leads nowhere" for citation in parsed if resolved(citation) is None]


def text_of(page: str) -> str:
    """Return a page of sources."""
    return (SOURCES / page).read_text(encoding="utf-8")
