"""The reference pages are generated from the tables."""

import pytest

from docs.make_reference import FOLDER, PAGES
from docs.operation_table import operation_table
from tests.support.library_texts import LIBRARY_TEXTS
from waypost.api.routes import ROUTES
from waypost.client.operations import TABLE
from waypost.config import SETTINGS
from waypost.domain.errors import ErrorCode
from waypost.wire.errors import ERRORS


@pytest.mark.parametrize("name", PAGES)
def test_page_is_generated_from_the_tables(name: str) -> None:
    stored = (FOLDER / name).read_text(encoding="utf-8")

    generated = PAGES[name]()

    assert stored == generated, f"docs/reference/{name} is out of date: run `make reference`"


def test_table_of_operations_is_that_of_the_declarations() -> None:
    assert TABLE.read_text(encoding="utf-8") == operation_table(), f"{TABLE.name} is out of date: run `make reference`"


def test_every_error_code_has_a_row_in_the_error_table() -> None:
    assert set(ERRORS) == set(ErrorCode)


def test_every_setting_has_a_description() -> None:
    undescribed = [name for name, field in SETTINGS.items() if not field.metadata["meaning"]]

    assert undescribed == []


def test_every_reference_page_is_generated() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES)


def test_no_two_routes_share_method_and_path() -> None:
    pairs = [(row.method, row.path) for row in ROUTES]

    assert len(pairs) == len(set(pairs))


def test_no_error_text_is_that_of_a_library() -> None:
    lines = PAGES["error-texts.md"]().splitlines()

    assert [line for line in lines if LIBRARY_TEXTS.search(line)] == []
