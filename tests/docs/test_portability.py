"""The repository is the same on every machine: it names no package index, home folder or checkout."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.repository import ROOT, name_of, repository_files

# fmt: off
FORBIDDEN: Final = {  # written so that this file does not match itself
    "the host of a package index": re.compile(
        r"\bpypi\.(python\.)?org|pythonhosted\.org|\bregistry\.(npmjs|yarnpkg)\."),
    "the address of an index":     re.compile(
        r"https?:[/]{2}[^\s/]+/(simple|packages/[0-9a-f]{2})/|--(extra-)?index-url|--find[-]links"),
    "a home path":                 re.compile(
        r"(?<![\w.])/(home|Users)[/][\w.-]+/|(?<![\w.])/root[/]|[A-Z]:\\Users[\\]"),
    "the path of this checkout":   re.compile(rf"(?<![\w.]){re.escape(str(ROOT))}/"),
}
# fmt: on


@pytest.mark.parametrize("forbidden", FORBIDDEN)
def test_no_file_contains(forbidden: str) -> None:
    occurrences = [
        f"{name_of(path)}: {match.group()}"
        for path in repository_files()
        if (text := text_of(path)) and (match := FORBIDDEN[forbidden].search(text))
    ]

    assert occurrences == []


def test_constraints_pin_exact_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    pins = [line for line in lines if line and not line.startswith("#")]

    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][\w.+!-]*", pin)] == []


def text_of(path: Path) -> str:
    """Return the file's text; empty if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
