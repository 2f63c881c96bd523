"""What is happening now: the page, its stream, and the one act that mends something from here."""

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
"""Between two looks: people read no faster, and a busy store has better things to do."""
AT_LEAST_S: Final = 5.0


async def show_overview(desk: PageTools, visit: PageRequest) -> Response:
    """The page, as things stand."""
    scene = await scene_of(desk, visit)
    values = await _values(desk, visit, scene)
    return await desk.page(visit, "overview/page.html", app=visit.app, **values)


async def live_overview(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of it. While somebody takes the first steps it looks more often."""
    first = not _is_past_beginning(await scene_of(desk, visit))

    async def look() -> Sequence[Piece]:
        values = await _values(desk, visit, await scene_of(desk, visit))
        part = partial(desk.parts.pages.part, PARTS)
        return [
            Piece(macro.replace("_", "-"), part(macro, visit, visit, visit.app, **_only(macro, values)))
            for macro in _MACROS
        ]

    pace = {"rest_s": 0.5, "at_least_s": 2.0} if first else {}
    return desk.live(visit, look, **{"rest_s": REST_S, "at_least_s": AT_LEAST_S, **pace})


async def try_again(desk: PageTools, visit: PageRequest) -> Response:
    """Put an entry of the app's that was set aside back into its queue."""
    position = str(visit.path["position"])
    held = await desk.parts.database.read(_set_aside, visit.partner.id, visit.app)
    if position not in held:
        raise NotThere("There is no such entry set aside.")
    await desk.parts.apis.admin.json("POST", f"/admin/dead-letters/{position}/retry", {})
    return desk.go(f"/apps/{visit.app.id}", "It is tried again.")


def _set_aside(connection: Any, partner_id: int, app: App) -> set[str]:
    ids = [one["id"] for one in receivers_of_app(connection, partner_id, app.id)]
    return {str(row.position) for row in dead_letters_of_app(connection, app, ids)}


# fmt: off
_MACROS: Final = {  # a part of the page, and what it takes
    "steps":     ("steps", "first", "has_phones"),
    "totals":    ("tiles", "since"),
    "traffic":   ("hour",),
    "needs":     ("needs",),
    "queues":    ("queues",),
    "line":      ("line",),
    "receivers": ("receivers",),
    "newest":    ("newest",),
}
# fmt: on


def _only(macro: str, values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in _MACROS[macro]}


async def _values(desk: PageTools, visit: PageRequest, scene: Scene) -> dict[str, Any]:
    standing = scene.standing
    is_past = _is_past_beginning(scene)
    needs_send = not is_past and not standing.begun.has_message
    return {
        "steps": None if is_past else standing.begun,
        "first": await first_send(desk, visit) if needs_send else None,
        "has_phones": desk.parts.apis.control is not None,
        "tiles": tiles(scene),
        "since": counted_since(scene.tally, scene.now_ms),
        "hour": hour_of(scene),
        "needs": needs_of(scene),
        "queues": [(one, one.waits_ms and span(one.waits_ms))
                   for one in queues(standing.waiting, scene.now_ms)],
        "line": standing.line,
        "receivers": standing.receivers,
        "newest": [
            {**row, "what": standing.names.get(row["template_id"]) or kind_label(row["kind"])}
            for row in standing.newest
        ],
    }  # fmt: skip


def _is_past_beginning(scene: Scene) -> bool:
    begun = scene.standing.begun
    is_through = begun.has_message and begun.has_inbound and begun.has_callback
    return is_through or len(scene.standing.newest) >= NEWEST
