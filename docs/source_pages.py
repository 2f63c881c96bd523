"""The facts of sources, from `docs/sources/*.toml`: a table for each subject, a section for each heading."""

import tomllib
from pathlib import Path
from typing import Any, Final

from docs.markdown import table

FOLDER: Final = Path(__file__).parent / "sources"
NAMES: Final = ("partner-api", "operator-api", "ledger", "public-pages")
"""Files of facts; each becomes a page of the same name. `heading`, and `text` or `columns` with `rows`, as on the page."""


def source_parts(name: str) -> list[str]:
    """Return the title, the first paragraph and the other parts of a page of facts, one of `NAMES`."""
    file: dict[str, Any] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    parts: list[str] = [file["title"], file["text"]]
    for section in file["sections"]:
        parts.append(f"{'#' * section.get('level', 2)} {section['heading']}")
        own = section.get("parts", ())
        parts += [part["text"] if "text" in part else table(part["columns"], part["rows"]) for part in own]
    return parts
