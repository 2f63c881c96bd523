"""The tables of the page about peers are those of the kept run."""

import json
from typing import Final

import pytest

from benchmarks.peers.tables import all_tables
from tests.docs.repository import ROOT

PAGE: Final = ROOT / "docs" / "explanation" / "compared-with-peers.md"
RESULT: Final = ROOT / "benchmarks" / "results" / "peers-2-cores.json"
TABLES: Final = all_tables(json.loads(RESULT.read_text(encoding="utf-8")))


@pytest.mark.parametrize("subject", TABLES)
def test_table_of_the_page_is_that_of_the_kept_run(subject: str) -> None:
    assert TABLES[subject] in PAGE.read_text(encoding="utf-8")
