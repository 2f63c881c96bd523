"""Charts say in words what they draw, escape what they are told, and hold nothing that the page's policy forbids."""

import re
from typing import Any

import pytest
from markupsafe import Markup

from waypost.console import charts
from waypost.console.charts import Bin, Mark, Series

SCRIPT = "<script>alert(1)</script>"


def pictures() -> list[Markup]:
    series = [Series(SCRIPT, "good", [1, None, 3]), Series("failed", "bad", [0, 2, None])]
    labels = ["10:00", SCRIPT, "10:02"]
    words: dict[str, Any] = {"title": SCRIPT, "description": SCRIPT}
    return [
        charts.bars("a", series, labels, **words),
        charts.lines("b", series, labels, marks=[Mark(2, SCRIPT)], **words),
        charts.lines("c", series, labels, logarithmic=True, **words),
        charts.sparkline([1, None, 3], title=SCRIPT),
        charts.distribution(
            "d", [Bin(1, 10, 3, 1, SCRIPT)], low=1, high=100, ticks=[1, 10, 100],
            marks=[Mark(10, SCRIPT)], **words,
        ),
        charts.key(series),
        charts.table(["At", SCRIPT], [(SCRIPT, SCRIPT)], caption=SCRIPT),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_chart_escapes_what_it_is_told_and_has_no_style(number: int) -> None:
    drawn = str(pictures()[number])

    assert "<script" not in drawn
    assert "style=" not in drawn
    assert not re.search(r"\son\w+=", drawn)


def test_chart_with_nothing_in_it_is_drawn_too() -> None:
    words: dict[str, Any] = {"title": "t", "description": "d"}

    for drawn in (
        charts.bars("a", [], [], **words),
        charts.lines("b", [Series("one", "good", [])], [], **words),
        charts.lines("c", [Series("one", "good", [None])], ["10:00"], logarithmic=True, **words),
        charts.sparkline([], title="t"),
        charts.distribution("d", [], low=1, high=10, ticks=[1], **words),
    ):
        assert drawn.startswith("<svg")
        assert "nan" not in drawn


def test_distribution_stands_where_the_logarithm_is() -> None:
    drawn = charts.distribution(
        "d", [Bin(10, 100, 4)], title="t", description="d", low=1, high=10_000, ticks=[100]
    )

    assert re.search(r'<rect class="tone-accent" x="25.000%"[^>]*width="24.850%"', drawn)
    assert 'x1="50.000%"' in drawn


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "under 1 ms"), (35, "35 ms"), (1_000, "1 s"), (1_234, "1.2 s"), (10_000, "10 s"), (61_400, "61 s")],
)  # fmt: skip
def test_durations_are_spelt_as_people_say_them(ms: int, text: str) -> None:
    assert charts.duration(ms).replace("\u00a0", " ") == text
