"""Find the citations of sources in code and wire cases, and resolve them to a heading or a decision.

A citation names a page of `docs/sources` and a section or row of it, such as `facts 9.2`, `operator's facts 5.1`,
`ledger row 63`, `spec, Limits` or `decision 0026`, or a name on a page, such as `public page "Flow JSON"` or
`RFC 9110`. `docs/sources/README.md` lists the forms. Text in quotes or between commas after it must be in that
section.
"""

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from docs.decision_pages import decisions
from docs.specification import ALIASES
from waypost.api.limits import RATES
from waypost.api.routes import ROUTES
from waypost.domain.templates.rules import OPERATOR_RULES, SPEC_RULES
from waypost.simulator.faults.fault_kinds import FAULT_KINDS as FAULTS
from waypost.wire.callbacks.kinds import CALLBACK_KINDS
from waypost.wire.errors import ERRORS

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = ROOT / "docs" / "sources"
OPERATORS: Final = (  # in these files `facts` are the operator's; the others are `partner's facts`
    "src/waypost/simulator/", "src/waypost/operators/", "tests/simulator/", "tests/operators/", "tests/referee/",
)  # fmt: skip
PAGES: Final = {
    "facts": "partner-api.md",
    "operator": "operator-api.md",
    "ledger": "ledger.md",
    "spec": "specification.md",
    "named": "public-pages.md",
    "own": "README.md",
}
NAMES: Final = {  # cited without a number or quotes: the page and the heading
    "client": ("named", "Public clients"),
    "older messaging api": ("named", "Older messaging API"),
    "ours": ("own", "Ours"),
    **dict.fromkeys(
        (
            "appnote.txt", "clock_gettime", "header's standard", "iana", "libpq", "owasp", "postgresql", "sqlite.org",
            "standard webhooks", "unicode", "w3c trace context", "webp container",
        ),
        ("named", "Standards and manuals"),
    ),
}  # fmt: skip
OWN_TEST: Final = "test_sources.py"
"""The test of this module; it contains citations that do not exist."""

_HINT: Final = re.compile(r'Source|acts \d|operator \d|ledger|spec[,\']|decision|page "|RFC|design|issue')
_HEAD: Final = re.compile(
    r"""(?P<operator>\b(?:operator's|Cloud\ API)\ (?:own\ )?facts\ (?=\d)|\boperator\ (?=\d))
    |(?P<partner>\bpartner's\ facts\ (?=\d))
    |(?P<facts>\b[Ff]acts\ (?=\d))
    |(?P<ledger>\bledger(?:,\ contradiction)?(?:\ rows?)?\ (?=[\dCS]))
    |(?P<spec>\bspec(?:,|'s)\ (?=["`A-Zm]))
    |(?P<decision>\bdecisions?\ (?=\d{4}))
    |(?P<pages>\bpages?\ (?="))
    |(?P<design>\b(?:design,?\ (?:section\ )?\d|issue:))
    |(?P<named>\bRFC\ (?=\d))""",
    re.VERBOSE,
)
_NUMBER: Final = re.compile(r"(?:,| and|, and| to)? ?(?:row )?([CS]?\d+(?:\.\d+)?)(?![\w`])")
_QUOTED: Final = re.compile(r'(?:,| and|, and)? ?(?:"([^"]*)"|`([^`]*)`)')
_BARE: Final = re.compile(r"(?:, and|,| and) ([A-Za-z_][^,;:.()\"`]*)")
_FILE: Final = re.compile(r"\b[\w/-]+\.(?:py|md|toml)\b")
_QUOTES: Final = re.compile(r"""^[A-Za-z]*(\"{3}|\"|')|(\"{3}|\"|')$""")
_PHRASE: Final = re.compile(r"[\w/]{3,}")


@dataclass(frozen=True, slots=True)
class CitedText:
    """A text that may contain citations.

    Attributes:
        place: `file:line`, `file#case` or the row of a table.
        is_source: the text is only a source, so it must contain a citation.
    """

    place: str
    text: str
    is_source: bool


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation.

    Attributes:
        page: a key of `PAGES`, `decision` or `file`.
        name: a number, a heading, or a file's path.
        quotes: text that must be in that section.
    """

    page: str
    name: str
    quotes: tuple[str, ...] = ()


class UnreadableCitation(ValueError):
    """A text that looks like a citation and cannot be parsed."""


def citations(cited: CitedText) -> list[Citation]:
    """Return the citations in a text, in order.

    Raises:
        UnreadableCitation: a source contains no citation, or the page has no such section.
    """
    text = re.sub(r"\s+#?\s*", " ", cited.text).strip()
    is_case = ".toml#" in cited.place
    found: list[Citation] = []
    for number, clause in enumerate(_clauses(text)):
        in_clause = list(_clause_citations(clause, is_operators=cited.place.startswith(OPERATORS), is_case=is_case))
        if cited.is_source and not in_clause:
            in_clause = list(_named_citations(clause))
            if number == 0 and not in_clause:
                raise UnreadableCitation(f"names no source: {clause}")
        found += in_clause
    return found


def resolved(citation: Citation) -> str | None:
    """Return the target of a citation as a path from the root with an anchor; None if it does not exist."""
    if citation.page == "decision":
        decision = decisions().get(citation.name)
        return f"docs/decisions/{decision.link}" if decision else None
    if citation.page == "file":
        homes = (ROOT, ROOT / "src" / "waypost")
        return next((citation.name for home in homes if (home / citation.name).is_file()), None)
    section = sections(PAGES[citation.page]).get(citation.name)
    if section is None or not all(_contains(section.text, quote) for quote in citation.quotes):
        return None
    return f"docs/sources/{PAGES[citation.page]}#{section.anchor}"


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading of a page, with the text below it."""

    anchor: str
    text: str


@cache
def sections(page: str) -> dict[str, PageSection]:
    """Return the sections of a page by number and by name, and the rows of its numbered tables."""
    text = (SOURCES / page).read_text(encoding="utf-8")
    heads = list(re.finditer(r"^(#+) (?:(\d+(?:\.\d+)?)\.? )?(.+)$", text, re.MULTILINE))
    found: dict[str, PageSection] = {}
    for at, head in enumerate(heads):
        end = next((one.start() for one in heads[at + 1 :] if len(one[1]) <= len(head[1])), len(text))
        title = head[0].removeprefix(head[1]).strip()
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        section = PageSection(anchor, _plain(text[head.start() : end]))
        for name in (head[2], head[3], *ALIASES.get(head[3], ())):
            if name:
                found.setdefault(name, section)
        for row in re.finditer(r"^\| ([CS]?\d+|RFC \d+) \|.*$", text[head.start() : end], re.MULTILINE):
            name = f"row {row[1]}" if row[1].isdigit() else row[1]
            found.setdefault(name, PageSection(anchor, _plain(row[0])))
    return found


def cited_texts() -> Iterator[CitedText]:
    """Yield every text in the code and the wire cases that may contain citations, and the sources of the tables."""
    yield from (CitedText(f"{table} {key}", source, is_source=True) for table, key, source in _cited_in_tables())
    for folder in ("src", "tests", "benchmarks", "crashes"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name != OWN_TEST and _HINT.search(path.read_text(encoding="utf-8")):
                yield from _cited_in_python(path)
    for path in (*sorted((ROOT / "tests" / "wire" / "cases").glob("*.toml")), ROOT / "tests" / "wire" / "common.toml"):
        yield from _cited_in_cases(path)


def _cited_in_tables() -> Iterator[tuple[str, str, str]]:
    yield from (("wire/errors.py", reason.name, row.source) for reason, row in ERRORS.items())
    yield from (("domain/rates.py", name, row.source) for name, row in RATES.items())
    yield from (("api/routes.py", f"{row.method} {row.path}", row.source) for row in ROUTES)
    yield from (("domain/templates/rules.py", row.id, row.source) for row in (*SPEC_RULES, *OPERATOR_RULES))
    yield from (("wire/callbacks/kinds.py", row.occasion, row.source) for row in CALLBACK_KINDS)
    yield from (("src/waypost/simulator/faults/fault_kinds.py", row.name, row.source) for row in FAULTS)


def _cited_in_cases(path: Path) -> Iterator[CitedText]:
    file = tomllib.loads(path.read_text(encoding="utf-8"))
    groups: list[dict[str, dict[str, Any]]] = [file["cases"]] if "cases" in file else list(file.values())
    for name, case in (one for group in groups for one in group.items()):
        source = case.get("source", file.get("source", ""))
        yield CitedText(f"{path.relative_to(ROOT).as_posix()}#{name}", source, is_source=True)


def _cited_in_python(path: Path) -> Iterator[CitedText]:
    place = path.relative_to(ROOT).as_posix()
    for line, text in _prose(path):
        before, *sources = re.split(r"\bSources?: ", text)
        yield CitedText(f"{place}:{line}", before, is_source=False)
        for source in sources:
            clause, rest = _first_sentence(source)
            yield CitedText(f"{place}:{line}", clause, is_source=True)
            yield CitedText(f"{place}:{line}", rest, is_source=False)


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings and comments of a file with their line numbers; consecutive comment lines are joined."""
    comment: list[str] = []
    begins = last = 0
    is_alone = False
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            continues = is_alone and token.start[0] == last + 1 and token.line.strip() == token.string
            if comment and not continues:
                yield begins, " ".join(comment)
                comment = []
            begins = begins if comment else token.start[0]
            last = token.start[0]
            is_alone = token.line.strip() == token.string
            comment.append(token.string.lstrip("# "))
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield token.start[0], _QUOTES.sub("", token.string)
    if comment:
        yield begins, " ".join(comment)


def _first_sentence(text: str) -> tuple[str, str]:
    """Split a text after its first sentence or paragraph."""
    first, *rest = re.split(r'\.(?=\s|"""|$)(?=(?:[^"]*"[^"]*")*[^"]*$)|\n\s*\n', text, maxsplit=1)
    return first, "".join(rest)


def _clauses(text: str) -> list[str]:
    return [one.strip() for one in re.split(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", text)]


def _clause_citations(clause: str, *, is_operators: bool, is_case: bool) -> Iterator[Citation]:
    heads = list(_HEAD.finditer(clause))
    for head, end in zip(heads, [*(one.start() for one in heads[1:]), len(clause)], strict=False):
        page = str(head.lastgroup)
        tail = clause[head.end() : end]
        match page:
            case "design":
                raise UnreadableCitation(f"the page is not in this repository: {clause}")
            case "decision":
                yield from (Citation("decision", number) for number in re.findall(r"\b\d{4}\b", tail))
            case "pages":
                names = re.findall(r'"([^"]*)"', tail)
                yield from (Citation("named", name) for name in names)
            case "named":
                yield from (Citation("named", f"RFC {number}") for number in re.findall(r"\b\d{4}\b", tail))
            case "spec":
                yield from _specification_citations(tail, is_case=is_case)
            case _:
                page = {"facts": "operator" if is_operators else "facts", "partner": "facts"}.get(page, page)
                yield from _numbered_citations(page, tail, is_case=is_case, is_row="row" in head[0])


def _numbered_citations(page: str, tail: str, *, is_case: bool, is_row: bool) -> Iterator[Citation]:
    """Yield the numbered sections that a text begins with, each with the text that must be in it."""
    known = sections(PAGES[page])
    names = list[str]()
    quotes: dict[str, list[str]] = {}
    at = 0
    while found := (_NUMBER.match(tail, at) or _QUOTED.match(tail, at) or (_BARE.match(tail, at) if is_case else None)):
        at = found.end()
        [quote] = [one for one in found.groups() if one is not None]
        name = f"row {quote}" if is_row or "row" in found[0].split() else quote
        if found.re is _NUMBER and (name in known or not names or len(quote) < len("100") or "." in quote):
            names.append(name)
        else:  # a code or a status, not a section number
            quotes.setdefault(names[-1], []).append(quote)
    yield from (Citation(page, name, tuple(quotes.get(name, ()))) for name in names)


def _specification_citations(tail: str, *, is_case: bool) -> Iterator[Citation]:
    """Yield the headings that a text begins with, each with the text that must be in its section."""
    names = sorted(sections(PAGES["spec"]), key=len, reverse=True)
    plain = re.sub(r'^["`]|(?<=\w|\))["`](?=[,;. ]|$)|(?<=[,d] )["`](?=[A-Z])', "", tail)
    name = next((one for one in names if re.match(rf"{re.escape(one)}(?!\w)", plain)), None)
    if name is None:
        raise UnreadableCitation(f"no section of the specification: {tail}")
    rest = plain[len(name) :]
    quotes: list[str] = []
    others: list[Citation] = []
    for part in re.split(r", | and ", rest.partition(":")[0].partition(".")[0]):
        if part in names:
            others.append(Citation("spec", part))
        elif part and is_case and not others and not part.isdigit():
            quotes.append(part)
    yield Citation("spec", name, tuple(quotes))
    yield from others


def _named_citations(clause: str) -> Iterator[Citation]:
    """Yield the sources without a number: clients, manuals, `ours`, and files of the repository."""
    yield from (Citation(page, name) for word, (page, name) in NAMES.items() if word in clause.lower())
    yield from (Citation("file", path) for path in _FILE.findall(clause))


def _contains(text: str, quote: str) -> bool:
    return all(word in text for word in _PHRASE.findall(_plain(quote)))


def _plain(text: str) -> str:
    return re.sub(r"[`\\]", "", text).lower()
