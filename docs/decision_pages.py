"""The sections of the decision pages: a page by subject, a section for each decision under its number."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "decisions"
INDEX: Final = FOLDER / "README.md"
"""Generated from the sections of the other pages."""

_SECTION: Final = re.compile(r"^## (.*)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_TITLE: Final = re.compile(r"(\d{4}): (.+)")


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Attributes:
        number: four digits, by which code and pages cite it.
        page: the file's name in the folder.
        subject: the title of the page.
        text: the section below its heading.
    """

    number: str
    title: str
    page: str
    subject: str
    text: str

    @property
    def anchor(self) -> str:
        """Return the anchor of the section's heading."""
        return re.sub(r"[^\w\- ]", "", f"{self.number}: {self.title}".lower()).replace(" ", "-")

    @property
    def link(self) -> str:
        """Return the target of a link from a page in the folder."""
        return f"{self.page}#{self.anchor}"


@cache
def decisions() -> dict[str, Decision]:
    """Return every decision by its number, page by page.

    Raises:
        ValueError: a heading has no number, or two have the same.
    """
    found: dict[str, Decision] = {}
    for path in sorted(set(FOLDER.glob("*.md")) - {INDEX}):
        text = path.read_text(encoding="utf-8")
        subject = text.partition("\n")[0].removeprefix("# ")
        for heading, body in _SECTION.findall(text):
            title = _TITLE.fullmatch(heading)
            if title is None:
                raise ValueError(f"{path.name}: a heading is `## 0042: Title`, not `## {heading}`")
            if title[1] in found:
                raise ValueError(f"{path.name} and {found[title[1]].page} both have decision {title[1]}")
            found[title[1]] = Decision(title[1], title[2], path.name, subject, body.strip())
    return found
