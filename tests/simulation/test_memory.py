"""Every collection of the service is measured, and one that grows with each message is seen."""

from collections import Counter
from pathlib import Path
from typing import Any

from simulation.memory import CACHES, COUNTED, MAX_GROWTH, SMALL, find_growth, measure
from tests.support.manual_clock import ManualClock
from tests.support.pipeline import ADMIN_TOKEN, INSTANCE_KEY
from waypost.assembly.service import Waypost
from waypost.base.ids import SeededIds
from waypost.config import Settings


def make_service(folder: Path) -> Waypost:
    clock = ManualClock()
    settings = Settings(data=folder, secret_key=INSTANCE_KEY, admin_token=ADMIN_TOKEN)
    return Waypost(settings, clock, SeededIds(clock, "1"))


def test_every_cache_of_the_table_is_one_of_the_service(tmp_path: Path) -> None:
    assert measure(make_service(tmp_path)).keys() >= CACHES.keys()


def test_entries_of_a_collection_that_is_not_in_the_table_are_counted(tmp_path: Path) -> None:
    service: Any = make_service(tmp_path)
    before = measure(service)
    assert "InFlightMarks._marking" not in {*CACHES, *COUNTED}
    marking = service._callbacks._marks._marking

    marking.update({nth: nth for nth in range(MAX_GROWTH)})
    few = [*find_growth(before, measure(service), {})]
    marking[MAX_GROWTH] = MAX_GROWTH

    assert few == []
    assert [text.split()[0] for text in find_growth(before, measure(service), {})] == ["InFlightMarks._marking"]


def test_cache_may_be_full_and_not_more() -> None:
    name = "Pacer._pair_free_ms"

    assert [*find_growth(Counter(), Counter({name: SMALL}), {name: SMALL})] == []
    assert len([*find_growth(Counter(), Counter({name: SMALL + 1}), {name: SMALL})]) == 1
