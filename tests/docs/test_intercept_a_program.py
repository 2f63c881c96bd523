"""The page about intercepted programs: its tables are those of the code."""

import re
from typing import Final

from tests.docs.repository import ROOT
from waypost.config import PRODUCTION_SETTINGS
from waypost.interception.child_variables import CHILD_VARIABLES
from waypost.interception.hosts import HOSTS
from waypost.interception.listeners import MAX_CONNECTIONS

PAGE: Final = ROOT / "docs" / "how-to" / "intercept-a-program.md"


def test_page_has_each_host_of_the_table() -> None:
    assert rows_below("The hosts") == [(f"`{host.name}`", str(host.side), host.purpose) for host in HOSTS]


def test_page_has_each_variable_of_the_table() -> None:
    shown = [(f"`{row.name}`", row.readers, "proxy" if row.for_proxy else "both") for row in CHILD_VARIABLES]

    assert rows_below("The variables") == shown


def test_page_names_each_setting_of_production_and_the_limit() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert set(re.findall(r"`WAYPOST_([A-Z_]+)`", text)) == {name.upper() for name in PRODUCTION_SETTINGS}
    assert f"At most {MAX_CONNECTIONS} connections" in text


def rows_below(heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the first table below a heading."""
    below = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", below, re.MULTILINE)
    assert table is not None
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in table[0].splitlines()[2:]]
