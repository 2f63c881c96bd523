"""Charts say in words what they draw, escape what they are told, and hold nothing that the page's policy forbids."""

import re

import pytest
from markupsafe import Markup

from waypost.console.charts.axes import ChartFrame, ReferenceLine
from waypost.console.charts.distribution import HistogramBin, histogram
from waypost.console.charts.series import ChartSeries, legend, value_table
from waypost.console.charts.sparkline import sparkline
from waypost.console.charts.time_charts import bar_chart, line_chart

SCRIPT = "<script>alert(1)</script>"


def pictures() -> list[Markup]:
    series = [ChartSeries(SCRIPT, "good", [1, None, 3]), ChartSeries("failed", "bad", [0, 2, None])]
    labels = ["10:00", SCRIPT, "10:02"]
    frame = ChartFrame("a", SCRIPT, SCRIPT)
    return [
        bar_chart(frame, series, labels),
        line_chart(frame, series, labels, marks=[ReferenceLine(2, SCRIPT)]),
        line_chart(frame, series, labels, logarithmic=True),
        sparkline([1, None, 3], title=SCRIPT),
        histogram(
            frame, [HistogramBin(1, 10, 3, 1, SCRIPT)], low=1, high=100, ticks=[1, 10, 100],
            marks=[ReferenceLine(10, SCRIPT)],
        ),
        legend(series),
        value_table(["At", SCRIPT], [(SCRIPT, SCRIPT)], caption=SCRIPT),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_chart_escapes_what_it_is_told_and_has_no_style(number: int) -> None:
    drawn = str(pictures()[number])

    assert "<script" not in drawn
    assert "style=" not in drawn
    assert not re.search(r"\son\w+=", drawn)


def test_chart_with_nothing_in_it_is_drawn_too() -> None:
    frame = ChartFrame("a", "t", "d")

    for drawn in (
        bar_chart(frame, [], []),
        line_chart(frame, [ChartSeries("one", "good", [])], []),
        line_chart(frame, [ChartSeries("one", "good", [None])], ["10:00"], logarithmic=True),
        sparkline([], title="t"),
        histogram(frame, [], low=1, high=10, ticks=[1]),
    ):
        assert drawn.startswith("<svg")
        assert "nan" not in drawn


def test_distribution_stands_where_the_logarithm_is() -> None:
    frame = ChartFrame("a", "t", "d")

    drawn = histogram(frame, [HistogramBin(10, 100, 4)], low=1, high=10_000, ticks=[100])

    assert re.search(r'<rect class="tone-accent" x="25.000%"[^>]*width="24.850%"', drawn)
    assert 'x1="50.000%"' in drawn
