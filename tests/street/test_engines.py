"""Which journeys are made on which engine: the table is about journeys that there are."""

from pathlib import Path

from tests.street.conftest import IN_WORDS_ONLY

FOLDER = Path(__file__).parent


def test_every_journey_named_for_both_engines_is_there() -> None:
    named = [(file, name) for file, names in IN_WORDS_ONLY.items() for name in names]

    missing = [one for one in named if f"def {one[1]}(" not in (FOLDER / one[0]).read_text()]

    assert not missing


def test_every_file_of_journeys_has_one_on_both_engines() -> None:
    assert all(IN_WORDS_ONLY.values())
