"""Charts: they have a text equivalent, escape their texts, and respect the content security policy of the page."""

import re

import pytest
from markupsafe import Markup

from waypost.console.charts import (
    ChartFrame,
    ChartSeries,
    HistogramBin,
    ReferenceLine,
    bar_chart,
    histogram,
    legend,
    line_chart,
    sparkline,
    value_table,
)

SCRIPT = "<script>alert(1)</script>"


def charts() -> list[Markup]:
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
def test_chart_escapes_its_texts_and_has_no_inline_style(number: int) -> None:
    svg = str(charts()[number])

    assert "<script" not in svg
    assert "style=" not in svg
    assert not re.search(r"\son\w+=", svg)


def test_chart_without_data_is_rendered() -> None:
    frame = ChartFrame("a", "t", "d")

    for svg in (
        bar_chart(frame, [], []),
        line_chart(frame, [ChartSeries("one", "good", [])], []),
        line_chart(frame, [ChartSeries("one", "good", [None])], ["10:00"], logarithmic=True),
        sparkline([], title="t"),
        histogram(frame, [], low=1, high=10, ticks=[1]),
    ):
        assert svg.startswith("<svg")
        assert "nan" not in svg


def test_histogram_has_a_logarithmic_scale() -> None:
    frame = ChartFrame("a", "t", "d")

    svg = histogram(frame, [HistogramBin(10, 100, 4)], low=1, high=10_000, ticks=[100])

    assert re.search(r'<rect class="tone-accent" x="25.000%"[^>]*width="24.850%"', svg)
    assert 'x1="50.000%"' in svg
