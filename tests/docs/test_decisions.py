"""Decision pages are numbered, complete, and listed."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.repository import ROOT, links_of, name_of

FOLDER: Final = ROOT / "docs" / "decisions"
TEMPLATE: Final = FOLDER / "0000-template.md"
DECISIONS: Final = sorted(path for path in FOLDER.glob("[0-9]*.md") if path != TEMPLATE)


def test_decisions_are_numbered_from_one_without_gaps() -> None:
    numbers = [int(page.name[:4]) for page in DECISIONS]

    assert numbers == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_decision_has_the_headings_of_the_template(page: Path) -> None:
    assert headings_of(page) == headings_of(TEMPLATE)


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_decision_title_begins_with_its_number(page: Path) -> None:
    first_line = page.read_text(encoding="utf-8").splitlines()[0]

    assert first_line.startswith(f"# {page.name[:4]}: ")


def test_every_decision_is_listed_in_order() -> None:
    listed = [link for link in links_of(FOLDER / "README.md") if link != TEMPLATE.name]

    assert listed == [page.name for page in DECISIONS]


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_decision_is_listed_under_its_own_title(page: Path) -> None:
    number, title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split(": ")

    index = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert f"| [{number}]({page.name}) | {title} |" in index


def headings_of(page: Path) -> list[str]:
    """Return the headings below the title."""
    return re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
