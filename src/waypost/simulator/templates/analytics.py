"""Template analytics, counted per day from the simulator's own messages."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage, find_template_messages
from waypost.simulator.templates.model import find_template
from waypost.simulator.templates.template import SimulatedTemplate

DAY_S: Final = 24 * 3600
TEMPLATE_METRICS: Final = ("COST", "CLICKED", "DELIVERED", "READ", "SENT")


@dataclass
class TemplateCounts:
    """Counts of one template's messages of one day."""

    sent: int = 0
    delivered: int = 0
    read: int = 0
    clicked: Counter[str] = field(default_factory=Counter[str])


async def count_data_points(
    state: SimulatorState, templates: Sequence[SimulatedTemplate], *, start_s: int, end_s: int, mark: str = ""
) -> list[tuple[SimulatedTemplate, int, TemplateCounts]]:
    """Return the counts for each template and each UTC day that overlaps a period.

    A day counts the messages that were sent on it, by their current state.

    Args:
        templates: of one account.
        start_s: Unix seconds; counting begins with that day.
        end_s: Unix seconds; the last day is the one before or at it.
        mark: only messages that have this member in what their phone shows; empty: all.
    """
    first_s = start_s - start_s % DAY_S
    last_s = max(first_s, end_s - 1)
    days = range(first_s, last_s + 1, DAY_S)
    until_s = days[-1] + DAY_S
    rows = await find_template_messages(state.store, first_s * 1000, until_s * 1000)
    is_tap = "is_inbound=1 AND type='button' AND context_id IS NOT NULL AND at_ms>=:from_ms"
    taps = await MESSAGES.rows(state.store, is_tap, from_ms=first_s * 1000)
    rows = [row for row in rows if not mark or row.content.get(mark)]
    now_ms, counts = state.clock.now_ms(), defaultdict[tuple[str, int], TemplateCounts](TemplateCounts)
    count_by_message: dict[str, TemplateCounts] = {}
    for row, template_id in _sent_rows(state, rows):
        reached = row.state_at(now_ms)
        day_s = row.at_ms // 1000 - row.at_ms // 1000 % DAY_S
        count = count_by_message[row.wamid] = counts[template_id, day_s]
        count.sent += 1
        count.delivered += reached in ("delivered", "read")
        count.read += reached == "read"
    for tap in taps:
        if tap.context_id in count_by_message:
            count_by_message[tap.context_id].clicked[str(tap.content.get("text", ""))] += 1
    return [(template, day_s, counts[template.template_id, day_s]) for day_s in days for template in templates]


async def count_sends(state: SimulatorState, *, start_s: int, end_s: int) -> Counter[str]:
    """Return how many messages of each template were sent from a second to another, that one included."""
    rows = await find_template_messages(state.store, start_s * 1000, (end_s + 1) * 1000)
    return Counter(template_id for _, template_id in _sent_rows(state, rows))


def _sent_rows(state: SimulatorState, rows: Sequence[SimulatedMessage]) -> Iterator[tuple[SimulatedMessage, str]]:
    """Yield the messages that have not failed, each with the id of its template."""
    now_ms = state.clock.now_ms()
    for row in rows:
        template_id = find_template_id(state, row)
        if template_id is not None and row.state_at(now_ms) != "failed":
            yield row, template_id


def find_template_id(state: SimulatorState, message: SimulatedMessage) -> str | None:
    """Return the id of a message's template; None if it is not there any more."""
    number = state.accounts.numbers.get(message.phone_number_id)
    waba_id, sent = number.waba_id if number else "", message.template
    template = find_template(state, waba_id, sent.get("name", ""), sent.get("language", ""))
    return template.template_id if template is not None else None


def data_point_view(
    template: SimulatedTemplate, day_s: int, counts: TemplateCounts, metrics: frozenset[str]
) -> dict[str, Any]:
    """Return a data point as the operator shows it; without costs, because nothing costs here.

    Source: the operator's page "Analytics", template analytics.
    """
    point: dict[str, Any] = {"template_id": template.template_id, "start": day_s, "end": day_s + DAY_S}
    for name in ("sent", "delivered", "read"):
        if name.upper() in metrics:
            point[name] = getattr(counts, name)
    if "CLICKED" in metrics and counts.clicked:
        point["clicked"] = [
            {"type": "quick_reply_button", "button_content": label, "count": times}
            for label, times in sorted(counts.clicked.items())
        ]
    return point
