"""Pages that hold statements, promises and decisions against their tests."""

from collections import Counter

from docs.coverage import CoverageRow, coverage, coverage_parts
from docs.decision_pages import decisions
from docs.markdown import page, table, test_links
from docs.promises import promise_parts
from docs.source_pages import source_parts
from docs.specification import ALIASES, grouped, rows
from docs.statements import holders, statements
from docs.testing_page import testing_parts


def compatibility_page() -> str:
    """Return the page of the specification's statements and their tests."""
    tests = holders()
    parts: list[str] = []
    rows: list[tuple[str, ...]] = []
    everything = statements()
    for at, one in enumerate(everything):
        if at == 0 or everything[at - 1].section != one.section:
            parts.append(f"## {one.section}")
            rows = []
        does = f" *{one.does}*" if one.does else ""
        rows.append((f"{one.says}{does}", one.verdict, test_links(tests.get(one.key, []))))
        if at + 1 == len(everything) or everything[at + 1].section != one.section:
            parts.append(table(("Statement", "Verdict", "Tests"), rows))
    counts = Counter(one.verdict for one in everything)
    cases = sum("#" in name for one in everything for name in tests.get(one.key, []))
    return page(
        "Compatibility",
        f"The specification has {len(everything)} statements. Waypost does what {counts['kept']} of them say (`kept`), and "
        f"something else for {counts['differs']} (`differs`). {counts['decided']} leave something open, and Waypost "
        f"decides (`decided`). Text in italics says what Waypost does. The wire cases in `tests/wire/cases` check "
        f"statements {cases} times.",
        *parts,
    )


def differences_page() -> str:
    """Return the page of what a client of the partner API finds different, from the same rows as the pages with tests."""
    rows = coverage()

    def noted(*, state: str, is_event: bool) -> list[CoverageRow]:
        return [row for row in rows if row.note and (row.state, row.is_event) == (state, is_event)]

    return page(
        "Differences",
        "What a client of the partner API or the messaging API finds different with Waypost. Everything else is as the "
        "API's documents say; [API coverage](api-coverage.md) and [compatibility](compatibility.md) list all of it with "
        "its tests. `A` stands for `/partner/app/{appId}`.",
        "## Calls that return an error",
        table(("Call", "Why"), ((row.subject, row.note) for row in noted(state="declined", is_event=False))),
        "## Calls that differ",
        table(("Call", "What differs"), ((row.subject, row.note) for row in noted(state="served", is_event=False))),
        "## Callbacks that differ",
        table(("Callback", "What differs"), ((row.subject, row.note) for row in noted(state="served", is_event=True))),
        "## Rules that differ",
        table(("Documented", "Waypost"), ((one.says, one.does) for one in statements() if one.verdict == "differs")),
    )


def coverage_page() -> str:
    """Return the page of the documented operations and events and their tests."""
    return page(
        "API coverage",
        "Every operation and event of the public partner API that its documents describe, and what Waypost does with it. "
        "Where the documents and the [specification](compatibility.md) differ, the specification decides. Tests are made "
        "from the documented requests, responses and events. `A` stands for `/partner/app/{appId}`.",
        *coverage_parts(),
    )


def promises_page() -> str:
    """Return the page of the promises about packaging and operations, and their tests."""
    return page(
        "Promises and their tests",
        "What pages promise about packaging and operations, and the tests that hold it. A change of such a page comes "
        "with its row in `docs/sources/promises.toml` and a test. Tests in `tests/deployment` and `tests/operations/in_prometheus.py` "
        "are run by `make` targets of their own.",
        *promise_parts(),
        source="`docs/sources/promises.toml`",
    )


def decisions_page() -> str:
    """Return the index of the decisions, by number and by subject."""
    found = decisions()
    pages = {decision.page: decision.subject for decision in found.values()}
    rows = [
        (f"[{number}]({found[number].link})", found[number].title, found[number].subject) for number in sorted(found)
    ]
    return page(
        "Decisions",
        "The choices that a reader would question, above all where the specification is silent or contradicts itself: a page "
        "for each subject, a section for each decision. Code and pages cite a section by its number.",
        "A section has three to eight sentences: the choice and its reason, what was rejected (`Rejected:`), and how we would "
        "notice that it was wrong (`Wrong if:`). A new one gets the next free number, on the page of its subject; a changed "
        "choice is written over the old one. One that is replaced stays, and says by which. `make reference` writes this "
        "page.",
        "Subjects: " + ", ".join(f"[{subject}]({name})" for name, subject in pages.items()) + ".",
        table(("Number", "Decision", "Subject"), rows),
        source="the pages of this folder",
    )


def specification_page() -> str:
    """Return the page of the statements, by the names under which code and wire cases cite them."""
    parts: list[str] = []
    for level, heading, part in grouped():
        also = ", ".join(f'"{name}"' for name in ALIASES.get(heading, ()))
        parts += [f"{'#' * level} {heading}", *([f"Also cited as {also}."] if also else [])]
        parts.append(table(("Statement", "Waypost"), rows(part)))
    return page(
        "Specification",
        "The statements of the specification, in our words, cited as `spec, Limits`. "
        "[Compatibility](../reference/compatibility.md) lists the tests of each.",
        *parts,
        source="`statements.toml`",
    )


def source_page(name: str) -> str:
    """Return a page of facts."""
    return page(*source_parts(name), source=f"`{name}.toml`")


def testing_page() -> str:
    """Return the page of the pytest plugin."""
    return page("Testing", *testing_parts())
