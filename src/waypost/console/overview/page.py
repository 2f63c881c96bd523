"""The overview page, its live stream, and the retry of a dead letter."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.console.messages.list_rows import kind_label
from waypost.console.overview.attention import attention_items
from waypost.console.overview.first_steps import find_first_message
from waypost.console.overview.queries import NEWEST_MESSAGES, AppOverview, read_overview
from waypost.console.overview.view_models import (
    counted_since_ms,
    format_span,
    hour_chart,
    status_tiles,
    summarize_queues,
)
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import PageElement
from waypost.domain.app import App
from waypost.store.console.overview import dead_letters_of_app, receivers_of_app

OVERVIEW_MACROS: Final = "overview/parts.html"
OVERVIEW_REST_S: Final = 2.0
"""Minimum time between two updates, to spare a busy store."""
OVERVIEW_POLL_S: Final = 5.0


async def show_overview(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the overview."""
    overview = await read_overview(tools, page_request)
    values = await _values(tools, page_request, overview)
    return await tools.page(page_request, "overview/page.html", app=page_request.app, **values)


async def live_overview(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream the changes of the overview, more often while the first steps are open."""
    is_beginning = not _has_completed_steps(await read_overview(tools, page_request))

    async def render() -> Sequence[PageElement]:
        values = await _values(tools, page_request, await read_overview(tools, page_request))
        part = partial(tools.services.pages.render_macro, OVERVIEW_MACROS)
        return [
            PageElement(
                macro.replace("_", "-"),
                part(macro, page_request, page_request, page_request.app, **_macro_values(macro, values)),
            )
            for macro in _MACROS
        ]

    pace = {"rest_s": 0.5, "at_least_s": 2.0} if is_beginning else {}
    return tools.live(page_request, render, **{"rest_s": OVERVIEW_REST_S, "at_least_s": OVERVIEW_POLL_S, **pace})


async def retry_dead_letter(tools: PageTools, page_request: PageRequest) -> Response:
    """Retry a dead letter of the app."""
    position = str(page_request.path_params["position"])
    positions = await tools.services.database.read(_dead_letter_positions, page_request.partner.id, page_request.app)
    if position not in positions:
        raise NotFound("Dead letter not found.")
    await tools.services.apis.admin.json("POST", f"/admin/dead-letters/{position}/retry", {})
    return tools.redirect(f"/apps/{page_request.app.id}", "The job will be retried.")


def _dead_letter_positions(connection: Any, partner_id: int, app: App) -> set[str]:
    ids = [receiver["id"] for receiver in receivers_of_app(connection, partner_id, app.id)]
    return {str(letter.position) for letter in dead_letters_of_app(connection, app, ids)}


# fmt: off
_MACROS: Final = {  # macro of parts.html, and its arguments
    "steps":     ("steps", "first", "has_phones"),
    "totals":    ("tiles", "since_ms"),
    "traffic":   ("hour",),
    "needs":     ("needs",),
    "queues":    ("queues",),
    "operator":  ("operator",),
    "receivers": ("receivers",),
    "newest":    ("newest",),
}
# fmt: on


def _macro_values(macro: str, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _MACROS[macro]}


async def _values(tools: PageTools, page_request: PageRequest, overview: AppOverview) -> dict[str, Any]:
    data = overview.data
    is_past = _has_completed_steps(overview)
    needs_send = not is_past and not data.progress.has_message
    return {
        "steps": None if is_past else data.progress,
        "first": await find_first_message(tools, page_request) if needs_send else None,
        "has_phones": tools.services.apis.control is not None,
        "tiles": status_tiles(overview, page_request.zone),
        "since_ms": counted_since_ms(overview.counts, overview.now_ms, page_request.zone),
        "hour": hour_chart(overview, page_request.zone),
        "needs": attention_items(overview),
        "queues": [(queue, queue.waits_ms and format_span(queue.waits_ms))
                   for queue in summarize_queues(data.queues, overview.now_ms)],
        "operator": data.operator,
        "receivers": data.receivers,
        "newest": [
            {**row, "what": data.names.get(row["template_id"]) or kind_label(row["kind"], row["content"])}
            for row in data.newest
        ],
    }  # fmt: skip


def _has_completed_steps(overview: AppOverview) -> bool:
    begun = overview.data.progress
    is_through = begun.has_message and begun.has_inbound and begun.has_callback
    return is_through or len(overview.data.newest) >= NEWEST_MESSAGES
