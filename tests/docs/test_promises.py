"""The page of the promises about packaging and operations names tests and pages that exist."""

import ast
from collections import Counter
from functools import cache

from docs.evidence_pages import promises_page
from docs.make_reference import PROMISES
from docs.promises import promises
from tests.docs.repository import ROOT


@cache
def read_test_names(file: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions) and node.name.startswith("test_"))


def find_problem(test: str) -> str:
    """Return why a named test holds nothing; empty if it exists."""
    file, _, name = test.partition("::")
    if not (ROOT / file).is_file():
        return "no such file"
    if name:
        return "" if name in read_test_names(file) else "no such test"
    is_collected = file.rpartition("/")[2].startswith("test_")
    module = file.removesuffix(".py").replace("/", ".")
    is_run_by_make = module in (ROOT / "Makefile").read_text(encoding="utf-8")
    return "" if is_collected or is_run_by_make else "neither collected nor run by a target of the Makefile"


def test_every_promise_has_a_test_that_exists() -> None:
    rows = promises()

    problems = {test: problem for row in rows for test in row.tests if (problem := find_problem(test))}
    without = [row.text for row in rows if not row.tests]
    assert (problems, without) == ({}, [])


def test_every_promise_is_made_once_on_a_page_that_exists() -> None:
    rows = promises()

    missing = {row.page for row in rows if not (ROOT / row.page).is_file()}
    repeated = [text for text, count in Counter(row.text for row in rows).items() if count > 1]
    assert (missing, repeated) == (set(), [])


def test_page_of_promises_is_generated() -> None:
    stored = PROMISES.read_text(encoding="utf-8")

    assert stored == promises_page(), "docs/contributing/promises.md is out of date: run `make reference`"
