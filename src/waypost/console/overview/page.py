"""The overview page, its live stream, and the retry of a dead letter."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.console.messages.list_rows import kind_label
from waypost.console.overview.attention import needs_of
from waypost.console.overview.first_steps import first_send
from waypost.console.overview.queries import NEWEST, Scene, scene_of
from waypost.console.overview.view_models import counted_since, hour_of, queues, span, tiles
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece
from waypost.domain.app import App
from waypost.store.console.overview import dead_letters_of_app, receivers_of_app

PARTS: Final = "overview/parts.html"
REST_S: Final = 2.0
"""Minimum time between two updates, to spare a busy store."""
AT_LEAST_S: Final = 5.0


async def show_overview(desk: PageTools, visit: PageRequest) -> Response:
    """Show the overview."""
    overview = await scene_of(desk, visit)
    values = await _values(desk, visit, overview)
    return await desk.page(visit, "overview/page.html", app=visit.app, **values)


async def live_overview(desk: PageTools, visit: PageRequest) -> Response:
    """Stream the changes of the overview, more often while the first steps are open."""
    is_beginning = not _is_past_beginning(await scene_of(desk, visit))

    async def render() -> Sequence[Piece]:
        values = await _values(desk, visit, await scene_of(desk, visit))
        part = partial(desk.parts.pages.part, PARTS)
        return [
            Piece(macro.replace("_", "-"), part(macro, visit, visit, visit.app, **_only(macro, values)))
            for macro in _MACROS
        ]

    pace = {"rest_s": 0.5, "at_least_s": 2.0} if is_beginning else {}
    return desk.live(visit, render, **{"rest_s": REST_S, "at_least_s": AT_LEAST_S, **pace})


async def try_again(desk: PageTools, visit: PageRequest) -> Response:
    """Retry a dead letter of the app."""
    position = str(visit.path["position"])
    positions = await desk.parts.database.read(_set_aside, visit.partner.id, visit.app)
    if position not in positions:
        raise NotThere("Dead letter not found.")
    await desk.parts.apis.admin.json("POST", f"/admin/dead-letters/{position}/retry", {})
    return desk.go(f"/apps/{visit.app.id}", "The job will be retried.")


def _set_aside(connection: Any, partner_id: int, app: App) -> set[str]:
    ids = [receiver["id"] for receiver in receivers_of_app(connection, partner_id, app.id)]
    return {str(letter.position) for letter in dead_letters_of_app(connection, app, ids)}


# fmt: off
_MACROS: Final = {  # macro of parts.html, and its arguments
    "steps":     ("steps", "first", "has_phones"),
    "totals":    ("tiles", "since"),
    "traffic":   ("hour",),
    "needs":     ("needs",),
    "queues":    ("queues",),
    "operator":  ("operator",),
    "receivers": ("receivers",),
    "newest":    ("newest",),
}
# fmt: on


def _only(macro: str, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _MACROS[macro]}


async def _values(desk: PageTools, visit: PageRequest, scene: Scene) -> dict[str, Any]:
    data = scene.standing
    is_past = _is_past_beginning(scene)
    needs_send = not is_past and not data.begun.has_message
    return {
        "steps": None if is_past else data.begun,
        "first": await first_send(desk, visit) if needs_send else None,
        "has_phones": desk.parts.apis.control is not None,
        "tiles": tiles(scene),
        "since": counted_since(scene.tally, scene.now_ms),
        "hour": hour_of(scene),
        "needs": needs_of(scene),
        "queues": [(queue, queue.waits_ms and span(queue.waits_ms))
                   for queue in queues(data.waiting, scene.now_ms)],
        "operator": data.line,
        "receivers": data.receivers,
        "newest": [
            {**row, "what": data.names.get(row["template_id"]) or kind_label(row["kind"])}
            for row in data.newest
        ],
    }  # fmt: skip


def _is_past_beginning(scene: Scene) -> bool:
    begun = scene.standing.begun
    is_through = begun.has_message and begun.has_inbound and begun.has_callback
    return is_through or len(scene.standing.newest) >= NEWEST
