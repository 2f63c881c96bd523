"""Charts say in words what they draw, escape what they are told, and hold nothing that the page's policy forbids."""

import re

import pytest
from markupsafe import Markup

from waypost.console.charts.axes import Frame, Mark
from waypost.console.charts.distribution import Bin, distribution
from waypost.console.charts.over_time import bars, lines
from waypost.console.charts.series import Series, key, table
from waypost.console.charts.sparkline import sparkline

SCRIPT = "<script>alert(1)</script>"


def pictures() -> list[Markup]:
    series = [Series(SCRIPT, "good", [1, None, 3]), Series("failed", "bad", [0, 2, None])]
    labels = ["10:00", SCRIPT, "10:02"]
    frame = Frame("a", SCRIPT, SCRIPT)
    return [
        bars(frame, series, labels),
        lines(frame, series, labels, marks=[Mark(2, SCRIPT)]),
        lines(frame, series, labels, logarithmic=True),
        sparkline([1, None, 3], title=SCRIPT),
        distribution(
            frame, [Bin(1, 10, 3, 1, SCRIPT)], low=1, high=100, ticks=[1, 10, 100],
            marks=[Mark(10, SCRIPT)],
        ),
        key(series),
        table(["At", SCRIPT], [(SCRIPT, SCRIPT)], caption=SCRIPT),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_chart_escapes_what_it_is_told_and_has_no_style(number: int) -> None:
    drawn = str(pictures()[number])

    assert "<script" not in drawn
    assert "style=" not in drawn
    assert not re.search(r"\son\w+=", drawn)


def test_chart_with_nothing_in_it_is_drawn_too() -> None:
    frame = Frame("a", "t", "d")

    for drawn in (
        bars(frame, [], []),
        lines(frame, [Series("one", "good", [])], []),
        lines(frame, [Series("one", "good", [None])], ["10:00"], logarithmic=True),
        sparkline([], title="t"),
        distribution(frame, [], low=1, high=10, ticks=[1]),
    ):
        assert drawn.startswith("<svg")
        assert "nan" not in drawn


def test_distribution_stands_where_the_logarithm_is() -> None:
    frame = Frame("a", "t", "d")

    drawn = distribution(frame, [Bin(10, 100, 4)], low=1, high=10_000, ticks=[100])

    assert re.search(r'<rect class="tone-accent" x="25.000%"[^>]*width="24.850%"', drawn)
    assert 'x1="50.000%"' in drawn
