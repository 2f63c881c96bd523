"""Links and source paths in pages lead to existing files and headings."""

import re
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest

from tests.docs.repository import ROOT, anchors_of, links_of, name_of, pages

HOMES: Final = (ROOT, ROOT / "src" / "waypost")
"""Paths in pages begin in one of these."""
ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_internal_links_of_the_page_resolve(page: Path) -> None:
    internal = [link for link in links_of(page) if not ELSEWHERE.match(link)]

    dead = [link for link in internal if not resolves(page, link)]

    assert dead == []


def test_every_path_on_the_architecture_map_exists() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    map_text = architecture.split("## The map", 1)[1].split("```text\n", 1)[1].split("```", 1)[0]
    named = [line.split()[0] for line in map_text.splitlines() if line.strip()]

    missing = [name for name in named if not path_exists(name)]

    assert len(named) > 20
    assert missing == []


def test_every_package_is_on_the_architecture_map() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = sorted(path.parent for path in (ROOT / "src" / "waypost").glob("*/__init__.py"))

    unlisted = [name for path in packages if f"\n{(name := name_of(path))}/ " not in architecture]

    assert unlisted == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_source_paths_named_in_the_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]+|[\w./-]+/[\w-]+\.(?:py|html|js))`", text))

    missing = sorted(name for name in named if not any((home / name).exists() for home in (*HOMES, page.parent)))

    assert missing == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "contributing").glob("add-*.md")), ids=name_of)
def test_names_of_code_in_the_page_are_in_the_source(page: Path) -> None:
    """A page about a common change is followed step by step: a renamed table or class would end it."""
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`([A-Z][A-Za-z]*[a-z][A-Z]\w*|[A-Z]+_[A-Z_]+)`", prose))

    assert named - names_in_the_source() == set()


@cache
def names_in_the_source() -> set[str]:
    """Return every word of the Python files that pages about changes name."""
    paths = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")]
    return {word for path in paths for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


def resolves(page: Path, link: str) -> bool:
    """True if the file exists and, if the link has a fragment, the heading too."""
    path, _, fragment = unquote(link).partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not fragment or (target.suffix == ".md" and fragment in anchors_of(target))


def path_exists(name: str) -> bool:
    """True if a path from the root exists; one that ends in a slash must be a folder."""
    path = ROOT / name
    return path.is_dir() if name.endswith("/") else path.exists()
