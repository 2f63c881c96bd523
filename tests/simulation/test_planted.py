"""The planted faults fit the source as it is now: a change of the source changes its fault too."""

from collections import Counter

import pytest

from simulation.planted import SOURCE, PlantedFault, read_faults

FAULTS = read_faults()


def test_there_are_forty_faults_of_different_names() -> None:
    assert len(FAULTS) >= 40
    assert [name for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_changes_one_place_and_compiles(fault: PlantedFault) -> None:
    """Otherwise a fault that nothing finds may be one that was not there."""
    source = (SOURCE / fault.file).read_text(encoding="utf-8")

    changed = fault.apply(source)

    assert changed != source
    compile(changed, fault.file, "exec", dont_inherit=True)
