"""Series of values, the legend of a chart, and the table of its values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

TONES: Final = ("accent", "good", "warn", "bad", "info", "quiet")
"""The classes `tone-…` of the sheet."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One line, or one layer of stacked bars.

    Attributes:
        name: name in the legend and the table.
        tone: one of `TONES`.
        values: one value per label; None: unknown.
    """

    name: str
    tone: str
    values: Sequence[float | None]


def legend(series: Sequence[ChartSeries]) -> Markup:
    """Return the legend."""
    items = [
        Markup('<li><span class="chart-key-colour tone-{}"></span>{}</li>').format(entry.tone, entry.name)
        for entry in series
    ]
    return Markup('<ul class="chart-key">{}</ul>').format(Markup("").join(items))


def value_table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str, id: str = "") -> Markup:
    """Return a collapsed table of a chart's values."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(text) for text in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup('<td class="number">{}</td>').format(value) for value in row[1:])
        )
        for row in rows
    )  # fmt: skip
    named = Markup(' id="{}" data-keep="open"').format(id) if id else ""
    return Markup(
        '<details class="chart-table"{}><summary>View as table</summary><div class="table-wrap" tabindex="0" '
        'role="group" aria-label="{}">'
        '<table><caption class="hidden">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>'
    ).format(named, caption, caption, head, body)
