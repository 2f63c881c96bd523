"""The reference pages are made from the tables, and from nothing else."""

import pytest

from docs.make_reference import FOLDER, PAGES
from waypost.api.routes import ROUTES
from waypost.config import Settings
from waypost.domain.errors import ErrorCode
from waypost.wire.errors import ERRORS


@pytest.mark.parametrize("name", PAGES)
def test_page_is_what_the_tables_make(name: str) -> None:
    stored = (FOLDER / name).read_text(encoding="utf-8")

    made = PAGES[name]()

    assert stored == made, f"docs/reference/{name} is old: run `make reference`"


def test_every_reason_has_a_row_in_the_table_of_refusals() -> None:
    assert set(ERRORS) == set(ErrorCode)


def test_every_setting_says_what_it_means() -> None:
    silent = [name for name, field in Settings.model_fields.items() if not field.description]

    assert silent == []


def test_every_reference_page_is_made() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES)


def test_no_two_routes_share_method_and_path() -> None:
    places = [(row.method, row.path) for row in ROUTES]

    assert len(places) == len(set(places))
