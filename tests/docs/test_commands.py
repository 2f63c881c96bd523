"""Every make target that a page shows exists."""

import re
from typing import Final

import pytest

from tests.docs.repository import ROOT, name_of, pages

TARGETS: Final = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
SHOWN: Final = sorted(
    {
        (name_of(page), target)
        for page in pages()
        for target in re.findall(
            r"^\s*make (?:[A-Z]+=\S+ )*([a-z-]+)|`make (?:[A-Z]+=\S+ )*([a-z-]+)\b[^`]*`",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
        for target in target
        if target
    }
)


@pytest.mark.parametrize(("page", "target"), SHOWN)
def test_make_target_that_a_page_shows_exists(page: str, target: str) -> None:
    assert target in TARGETS, page


def test_contributing_page_names_every_target_that_is_not_part_of_another() -> None:
    documented = {target for page, target in SHOWN if page == "CONTRIBUTING.md"}

    assert documented == TARGETS - {"lint"}


def test_only_the_first_pages_name_the_folder_of_a_checkout() -> None:
    """The others are read in a terminal that finds the command, as those pages set it up or as a package does."""
    first = {
        "CONTRIBUTING.md",
        "README.md",
        "docs/how-to/use-the-simulator-alone.md",
        "docs/tutorial.md",
        "docs/how-to/point-an-existing-client.md",
    }

    assert {name_of(page) for page in pages() if ".venv" in page.read_text(encoding="utf-8")} == first
