"""Latencies in an HDR histogram: microseconds, three significant digits, up to ten minutes."""

from collections.abc import Iterable
from typing import Any

from hdrh.histogram import HdrHistogram  # pyright: ignore[reportMissingTypeStubs]

HIGHEST_US = 600 * 1_000_000
SIGNIFICANT_DIGITS = 3
# fmt: off
PERCENTILES = {"p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0, "p99_9_ms": 99.9, "max_ms": 100.0}
# fmt: on


def summarize_latencies(seconds: Iterable[float]) -> dict[str, float]:
    """Return the percentiles in milliseconds, and their count."""
    histogram: Any = HdrHistogram(1, HIGHEST_US, SIGNIFICANT_DIGITS)
    for value in seconds:
        histogram.record_value(min(max(round(value * 1e6), 1), HIGHEST_US))
    count: int = histogram.get_total_count()
    if not count:
        return {"count": 0}
    percentiles = {
        name: round(histogram.get_value_at_percentile(percent) / 1000, 3) for name, percent in PERCENTILES.items()
    }
    return {"count": count, **percentiles}
