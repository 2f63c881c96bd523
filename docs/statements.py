"""The statements of the specification, and the wire cases and pipeline tests that check them."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "wire" / "cases"
EVENT_SAMPLES = ROOT / "tests" / "pipeline" / "events" / "documented_events.toml"
VERDICTS = ("kept", "differs", "decided")


@dataclass(frozen=True, slots=True)
class Statement:
    """One row of the compatibility page.

    Attributes:
        verdict: `kept`, `differs`, or `decided` if the specification leaves it open.
        says: the statement.
        does: what Waypost does, if that differs or needs an explanation.
    """

    key: str
    section: str
    verdict: str
    says: str
    does: str = ""


def statements() -> list[Statement]:
    """Return every statement, in the order of the specification."""
    text = (ROOT / "docs" / "sources" / "statements.toml").read_text(encoding="utf-8")
    return [
        Statement(key, section, *value) for section, rows in tomllib.loads(text).items() for key, value in rows.items()
    ]


@cache
def holders() -> dict[str, list[str]]:
    """Return for each statement the tests that check it: `file#case` or `file::test`, relative to the root."""
    found: dict[str, list[str]] = {}
    for name, keys in (*_cases(), *_journeys()):
        for key in keys:
            found.setdefault(key, []).append(name)
    return found


def _cases() -> Iterator[tuple[str, list[str]]]:
    for path in (*sorted(CASES.glob("*.toml")), EVENT_SAMPLES):
        text = path.read_text(encoding="utf-8")
        if "holds" in text:  # a quick check: every worker of the test suite reads all files
            for name, case in tomllib.loads(text)["cases"].items():
                yield f"{path.relative_to(ROOT).as_posix()}#{name}", case.get("holds", [])


def _journeys() -> Iterator[tuple[str, list[str]]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.holds(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                keys = [key for mark in node.decorator_list for key in _keys_of(mark)]
                yield f"{path.relative_to(ROOT).as_posix()}::{node.name}", keys


def _keys_of(mark: ast.expr) -> list[str]:
    match mark:
        case ast.Call(func=ast.Attribute(attr="holds"), args=args):
            return [str(one.value) for one in args if isinstance(one, ast.Constant)]
        case _:
            return []
