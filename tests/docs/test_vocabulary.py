"""One standard term for each thing: retired words appear nowhere, and a name says what it names.

`docs/glossary.md` has the terms. A word that is right in one place has a row in a table below, with the reason.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.docs.repository import ROOT

SOURCES: Final = (ROOT / "src" / "waypost", ROOT / "pytest-waypost" / "src" / "pytest_waypost")

WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
PART: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
RETIRED: Final = re.compile(
    r"street|lanes?|journals?|doors?|settle[sd]?|settling|doubt\w*|arrivals?|news|tell(s|ing)?|told|hears?|heard|hearing|"
    r"wish(es|ed)?|sought|refus\w+|complain\w*|musts|remed\w+|mend(s|ed|ing)?|tally|tallies|manners?|habits?|anew|"
    r"ask(s|ed|ing)?|answer(s|ed|ing)?|forget\w*|forgot(ten)?|standings?|whoever|whomever|somebody|grp|takings"
)
RETIRED_PHRASES: Final = re.compile(
    r"\b(order key|whole way|set aside|in hand|put away|takes nothing)\b", re.IGNORECASE
)
PREPOSITIONS: Final = re.compile(
    r"of|as|with|in|at|by|for|from|on|to|into|about|beside|around|after|before|under|over|within|"
    r"without|until|since|between|against|among|per|upon|off|up|down|through"
)
SAYS_NOTHING: Final = re.compile(
    r"anew|whose|told|taken|said|around|asked|found|given|done|seen|shown|kept|held|heard|left|gone|"
    r"sent|one|ones|thing|things|it|them|they|who|whom|which|what|where|when|how|here|there|place|"
    r"places|row|line|lines|part|parts|piece|pieces|word|words|look|looks|act|acts|way|ways|again|more"
    r"|most|first|last|other|others|same|both|each|all|any|some|none|nothing|something|anything|so|then"
    r"|now|only|utils|helpers|common|manager|handler|process|data|info|wish|hand|hear|telling|waiting|"
    r"standing|item|shape|state|result|kind"
)
DOCSTRING_START: Final = re.compile(
    r"(What|Whether|Who|Whom|Whose|How|Where|Which|When|Whoever|As|So|That|There|Of|With|In)\b"
)

# fmt: off
WORDS_ALLOWED: Final[tuple[tuple[str, str, str], ...]] = (
    # path below the root                                    words                                      why
    ("src/waypost/api/templates/check.py",                    "remedy refused",                          "a response of the partner API, which stays as it is"),
    ("src/waypost/domain/templates/violations.py",            "remedy refused",                          "the same"),
    ("src/waypost/console/templates/editor*.py",              "remedy refused",                          "the same, read by the console"),
    ("src/waypost/console/pages/templates/editor_parts.html", "remedy refused",                          "the same"),
    ("docs/reference/template-rules.md",                      "remedy refused",                          "the same"),
    ("src/waypost/wire/calling.py",                           "answer",                                  "a type of session descriptions on the wire"),
    ("src/waypost/simulator/graph/calling/calls.py",          "answer",                                  "the same"),
    ("docs/reference/error-texts.md",                         "news somebody",                           "what the cases send"),
    ("docs/sources/public-pages.md",                          "answer",                                  "the same"),
    ("src/waypost/wire/callbacks/inbound_v2.py",              "street",                                  "a member of an address on the wire"),
    ("src/waypost/wire/prefilled.py",                         "street",                                  "the same"),
    ("src/waypost/api/messages/passthrough.py",               "street",                                  "a sample address"),
    ("docs/reference/routes.md",                              "street",                                  "the same"),
    ("docs/sources/ledger.md",                                "street",                                  "the same"),
    ("tests/wire/cases/*prefilled.toml",                      "street",                                  "the same"),
    ("src/waypost/console/bubbles/items.py",                  "street",                                  "the same"),
    ("src/waypost/simulator/messages/message_kinds.py",       "street",                                  "the same"),
    ("src/waypost/console/templates/sending.py",              "street",                                  "a sample address"),
    ("src/waypost/outbound/failures.py",                      "refused",                                 "connection refused"),
    ("src/waypost/simulator/store.py",                                "journal",                                 "a setting of SQLite"),
    ("src/waypost/store/engines/sqlite.py",                   "journal",                                 "the same"),
    ("docs/explanation/storage.md",                           "journal",                                 "the same"),
    ("src/waypost/assembly/snapshots/size_limits.py",         "tell",                                    "a method of files"),
    ("src/waypost/simulator/templates/library.py",            "answer door tell",                        "texts of businesses to their customers"),
    ("docs/how-to/test-your-integration.md",                  "hear",                                    "a message of a shop to its customer"),
    ("examples/pytest-shop/*/*.py",                           "street",                                  "a message of a shop to its customer"),
    ("docs/reference/compatibility.md",                       "answer answered answers refused settled", "quotes the specification"),
)
NAMES_ALLOWED: Final[dict[str, str]] = {
    "_log": "each module's own logger",
    "info": "a method of loggers",
    "kind": "of the pytest plugin's API",
    "now":  "of the pytest plugin's API",
    **dict.fromkeys(("revision", "down_revision", "works_with"), "of each step, read by this name"),
    **dict.fromkeys((
        "on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete",
        "on_response_complete",
    ), "called by the HTTP parser and server by this name"),
}
CLASSES_ALLOWED: Final[dict[str, str]] = {
    "Callback": "of the pytest plugin, which a test reads beside its own names",
    "Message":  "of the pytest plugin",
    "Partner":  "of the pytest plugin",
    "Template": "of the pytest plugin",
    "ApiResponseError": "of the client in each distribution; they share no code",
    "ApiUnreachable":   "the same",
}
# fmt: on


class Definition(NamedTuple):
    """A class, a function or a constant of a module, with its docstring; or the module itself."""

    place: str
    kind: type[ast.AST]
    name: str
    docstring: str


@cache
def definitions() -> tuple[Definition, ...]:
    """Return every definition in the source."""
    paths = [path for source in SOURCES for path in sorted(source.rglob("*.py"))]
    return tuple(definition for path in paths for definition in definitions_in(path))


def definitions_in(path: Path) -> Iterator[Definition]:
    tree, shown = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT)
    yield Definition(str(shown), ast.Module, path.stem, ast.get_docstring(tree) or "")
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name):
                yield Definition(f"{shown}:{node.lineno}", ast.Name, target.id, "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = ast.ClassDef if isinstance(node, ast.ClassDef) else ast.FunctionDef
            yield Definition(f"{shown}:{node.lineno}", kind, node.name, ast.get_docstring(node) or "")


def texts() -> list[Path]:
    """Return the source with its pages, and the documentation except for what it quotes, old names included."""
    source = [
        path for folder in SOURCES for path in folder.rglob("*") if path.suffix in (".py", ".html", ".js", ".css")
    ]
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "sources" not in path.parts]
    examples = [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".md", ".toml")]
    others = [path for path in (*ROOT.glob("*.md"), *ROOT.glob("*/README.md")) if path.name != "CHANGELOG.md"]
    return sorted([*source, *pages, *examples, *others])


def retired_words(path: Path) -> Iterator[str]:
    """Yield the retired words of a file, with their lines; in names too."""
    shown = path.relative_to(ROOT)
    allowed = {word for pattern, words, _ in WORDS_ALLOWED if shown.match(pattern) for word in words.split()}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = [part.lower() for word in WORD.findall(line) for part in PART.findall(word)]
        found = [part for part in parts if RETIRED.fullmatch(part)]
        found += [match[0].lower() for match in RETIRED_PHRASES.finditer(line)]
        yield from (f"{shown}:{number}: {word}" for word in found if word not in allowed)


def by_name(kind: type[ast.AST]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for definition in definitions():
        if definition.kind is kind:
            places[definition.name].append(definition.place)
    return places


def test_no_text_and_no_name_has_a_retired_word() -> None:
    assert [offender for path in texts() for offender in retired_words(path)] == []


def test_every_allowed_word_is_still_there() -> None:
    idle = [
        (pattern, word)
        for pattern, words, _ in WORDS_ALLOWED
        for word in words.split()
        if not any(word in path.read_text(encoding="utf-8").lower() for path in ROOT.glob(pattern))
    ]

    assert idle == []


def test_class_names_are_unique() -> None:
    twice = {name: places for name, places in by_name(ast.ClassDef).items() if len(places) > 1}

    assert {name: places for name, places in twice.items() if name not in CLASSES_ALLOWED} == {}


@pytest.mark.parametrize("kind", [ast.Module, ast.ClassDef, ast.FunctionDef])
def test_no_name_is_only_a_pronoun_a_participle_or_filler(kind: type[ast.AST]) -> None:
    offenders = {
        name: places for name, places in by_name(kind).items() if SAYS_NOTHING.fullmatch(name.strip("_").lower())
    }

    assert {name: places for name, places in offenders.items() if name not in NAMES_ALLOWED} == {}


def test_no_function_begins_with_a_preposition() -> None:
    offenders = {
        name: places
        for name, places in by_name(ast.FunctionDef).items()
        if not name.startswith("__") and PREPOSITIONS.fullmatch(name.strip("_").split("_")[0])
    }

    assert {name: places for name, places in offenders.items() if name not in NAMES_ALLOWED} == {}


def test_docstrings_begin_with_a_verb_or_the_thing() -> None:
    offenders = [
        f"{each.place}: {each.docstring[:60]}" for each in definitions() if DOCSTRING_START.match(each.docstring)
    ]

    assert offenders == []
