"""Ids of objects: of each kind from its own range, whoever makes them."""

import re
from itertools import permutations
from pathlib import Path

import pytest

import waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import Ids, RandomIds, SeededIds
from waypost.base.object_ids import ID_RANGES, derive_id, describe_other_kind, kind_of_id, make_id

_CLOCK = SystemClock()


@pytest.mark.parametrize("ids", [RandomIds(_CLOCK), SeededIds(_CLOCK, "kinds")], ids=["random", "seeded"])
@pytest.mark.parametrize("kind", ID_RANGES)
def test_id_of_a_kind_is_in_the_range_of_that_kind_alone(kind: str, ids: Ids) -> None:
    made = [make_id(ids, kind) for _ in range(500)] + [derive_id(kind, str(number)) for number in range(500)]

    assert {kind_of_id(one) for one in made} == {kind}
    assert {len(one) for one in made} == {16}
    assert max(int(one) for one in made) < 2**53


def test_ranges_of_ids_never_overlap() -> None:
    assert [(a, b) for a, b in permutations(ID_RANGES.values(), 2) if b.startswith(a)] == []


def test_mistaken_id_is_described() -> None:
    assert describe_other_kind("2500000000000001", "phone_number_id") == "it is the id of an account, not of a number"
    assert describe_other_kind("2500000000000001", "waba_id") == ""
    assert describe_other_kind("x", "waba_id") == ""


def test_no_other_module_makes_ids_of_sixteen_digits() -> None:
    sources = [path.read_text() for path in Path(waypost.__file__).parent.rglob("*.py") if path.name != "object_ids.py"]
    constants = dict(pair for source in sources for pair in re.findall(r"(\w+_DIGITS): Final = (\d+)", source))
    counts = [count for source in sources for count in re.findall(r"\bids\.digits\((\w+)\)", source)]

    assert len(counts) > 5, "the pattern finds the calls"
    assert [count for count in counts if constants.get(count, count) == "16"] == []
