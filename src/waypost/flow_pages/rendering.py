"""HTML of a player of Flow JSON, from the view of its session."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from waypost.base.http.hosts import is_web_url
from waypost.flow_player.days import read_day
from waypost.flow_player.play_state import PlayerView, ShownComponent

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC_FILES: Final = {
    "css/player.css": "text/css; charset=utf-8",
    "js/player.js": "text/javascript; charset=utf-8",
    "js/morph.js": "text/javascript; charset=utf-8",
}
"""The files of `static/`, and their media types."""
_MAX_LOGGED_CHARS: Final = 20_000
"""Of one request or response in the log."""
_OTHER_SIGN: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class PlayerElement:
    """The element of a page in which a Flow is played.

    Attributes:
        id: of the element.
        steps_url: where its script posts the steps of the person, and gets the next view.
        can_close: True if the person can close the Flow, as on a phone.
    """

    id: str
    steps_url: str
    can_close: bool = True


def render_player(view: PlayerView, element: PlayerElement, *, opened_url: str = "") -> str:
    """Return the element with what the handset shows.

    Args:
        opened_url: an address that the last step has opened in the handset's browser; only web addresses are shown.
    """
    shown = [(component, _component_id(element, view, component)) for component in view.components]
    footer = next((pair for pair in shown if pair[0].path == view.footer), None) if view.footer else None
    return (
        _templates()
        .get_template("player.html")
        .render(
            view=view,
            element=element,
            shown=[pair for pair in shown if pair is not footer],
            footer=footer,
            opened_url=opened_url if is_web_url(opened_url) else "",
        )
        .strip()
    )


def render_log(events: Sequence[Mapping[str, Any]]) -> str:
    """Return list items of what steps have caused; empty if nothing.

    Args:
        events: as the control API lists them; and `screen`, which was shown after `before`; and `rejected`, by `reason`.
    """
    return _templates().get_template("log.html").render(events=events).strip() if events else ""


def read_static_file(path: str) -> bytes:
    """Return a file of `STATIC_FILES`."""
    return files("waypost.flow_pages").joinpath("static", path).read_bytes()


def _component_id(element: PlayerElement, view: PlayerView, component: ShownComponent) -> str:
    """Return an id that stays the same while the screen does; other signs have their codes, which keeps ids apart."""
    place = f"{view.screen_id}/{component.path}"
    return f"{element.id}-{_OTHER_SIGN.sub(lambda sign: f'.{ord(sign[0]):x}', place)}"


def _day_text(value: object) -> str:
    """Return a day as YYYY-MM-DD, which older versions write in milliseconds; empty if it is none."""
    day = read_day(value)
    return day.isoformat() if day is not None else ""


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes / 1024**2:.1f} MB" if size_bytes >= 1024**2 else f"{max(1, size_bytes // 1024)} kB"


def _pretty_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)[:_MAX_LOGGED_CHARS]


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("waypost.flow_pages", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"day": _day_text, "size": _size_text, "pretty": _pretty_json}
    return environment
