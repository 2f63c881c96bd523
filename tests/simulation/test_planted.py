"""The planted faults fit the source as it is now: a change of the source changes its fault too."""

import json
from collections import Counter

import pytest

from simulation.planted import RANDOM_NAME, SOURCE, TABLE, PlantedFault, read_faults

FAULTS = read_faults()


def test_there_are_sixty_faults_of_different_names() -> None:
    assert len(FAULTS) >= 60
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


def test_nineteen_of_twenty_faults_that_were_looked_for_are_found() -> None:
    rows = json.loads(TABLE.with_suffix(".json").read_text(encoding="utf-8"))["faults"]

    assert sum(row["seed"] is not None for row in rows) >= 0.95 * len(rows)


def test_fault_that_no_seed_found_is_explained_in_its_row() -> None:
    result = json.loads(TABLE.with_suffix(".json").read_text(encoding="utf-8"))
    missed = {row["name"]: row["message"] for row in result["faults"] if row["seed"] is None}

    assert missed == {fault.name: fault.not_found_because for fault in FAULTS if fault.name in missed}
    assert "" not in missed.values()


def test_messages_of_found_faults_have_no_random_names() -> None:
    """A fault that is counted again gets the same row."""
    rows = json.loads(TABLE.with_suffix(".json").read_text(encoding="utf-8"))["faults"]

    assert [row["name"] for row in rows if RANDOM_NAME.search(row["message"])] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_changes_one_place_and_compiles(fault: PlantedFault) -> None:
    """Otherwise a fault that nothing finds may be one that was not there."""
    source = (SOURCE / fault.file).read_text(encoding="utf-8")

    changed = fault.apply(source)

    assert changed != source
    compile(changed, fault.file, "exec", dont_inherit=True)
