"""The figures of a chart: as it is given them, as the key of its colours, and as the table behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

TONES: Final = ("accent", "good", "warn", "bad", "info", "quiet")
"""The classes `tone-…` of the sheet."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one layer of stacked bars.

    Attributes:
        name: as the key of the chart and the table name it.
        tone: one of `TONES`.
        values: one for each label; None: nothing is known there.
    """

    name: str
    tone: str
    values: Sequence[float | None]


def key(series: Sequence[Series]) -> Markup:
    """Which colour is what."""
    items = [
        Markup('<li><span class="chart-key-colour tone-{}"></span>{}</li>').format(one.tone, one.name) for one in series
    ]
    return Markup('<ul class="chart-key">{}</ul>').format(Markup("").join(items))


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str, id: str = "") -> Markup:
    """The figures behind a chart, for whoever would rather read them; folded until it is opened."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(one) for one in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup('<td class="number">{}</td>').format(one) for one in row[1:])
        )
        for row in rows
    )  # fmt: skip
    named = Markup(' id="{}" data-keep="open"').format(id) if id else ""
    return Markup(
        '<details class="chart-table"{}><summary>As a table</summary><div class="table-wrap" tabindex="0">'
        '<table><caption class="hidden">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>'
    ).format(named, caption, head, body)
