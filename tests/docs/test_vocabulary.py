"""One standard term for each thing: no name has a retired word of our own dialect, and a name says what it names.

`docs/glossary.md` has the terms. Prose is plain English: only words that mean something else here are retired in it.
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

PART: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
RETIRED_NAMES: Final = re.compile(
    r"street|lanes?|journals?|doors?|settle[sd]?|settling|doubt\w*|arrivals?|news|tell(s|ing)?|told|hears?|heard|hearing|"
    r"wish(es|ed)?|sought|refus\w+|complain\w*|musts|remed\w+|mend(s|ed|ing)?|tally|tallies|manners?|habits?|anew|"
    r"ask(s|ed|ing)?|answer(s|ed|ing)?|forget\w*|forgot(ten)?|standings?|whoever|whomever|somebody|grp|takings"
)
RETIRED_TERMS: Final = re.compile(
    r"\b(order key|whole way|takes nothing|grp|lanes?|musts|takings|standings|tally|tallies)\b", re.IGNORECASE
)
"""In code, pages and templates: our own terms of earlier days, not words of English."""
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
NAMES_ALLOWED: Final[dict[str, str]] = {
    "_log": "each module's own logger",
    "info": "a method of loggers",
    "kind": "of the pytest plugin's API",
    "remedy":     "a member of a response of the partner API",
    "refused_by": "the same",
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


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the names that a module gives: to itself, classes, functions, parameters, fields and variables."""
    yield 1, path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def by_name(kind: type[ast.AST]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for definition in definitions():
        if definition.kind is kind:
            places[definition.name].append(definition.place)
    return places


def test_no_name_has_a_retired_word() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        for line, name in names_in(path)
        if name not in NAMES_ALLOWED and any(RETIRED_NAMES.fullmatch(part.lower()) for part in PART.findall(name))
    ]

    assert offenders == []


def test_no_text_has_a_retired_term() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{line}: {term[0]}"
        for path in texts()
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for term in RETIRED_TERMS.finditer(text)
    ]

    assert offenders == []


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
