"""HTML pages and fragments from Jinja2 templates with automatic escaping; notices and redirects."""

import base64
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from starlette.responses import HTMLResponse, RedirectResponse, Response

from waypost import __version__
from waypost.base.clock import Clock
from waypost.console.bubbles.formatting import formatted
from waypost.console.bubbles.previews import face_of
from waypost.console.web.assets import Assets
from waypost.console.web.formatting import exact, grouped, iso, phone, pretty
from waypost.console.web.headers import SECURE
from waypost.console.web.page_request import PageRequest

HEADERS: Final = {**SECURE, "Cache-Control": "no-store"}
NOTICES: Final = "waypost_notices"
THEME: Final = "waypost_theme"
APP: Final = "waypost_app"
THEMES: Final = ("system", "light", "dark")
_MOST_NOTICE: Final = 600
_MOST_NOTICE_BYTES: Final = 1200


class Pages:
    """Renders pages. Jinja2 is imported with the first page, not at start.

    Args:
        clock: clock for relative times.
    """

    def __init__(self, assets: Assets, clock: Clock) -> None:
        self._assets = assets
        self._clock = clock

    def render(self, name: str, visit: PageRequest, **values: Any) -> str:
        """Return a page, or a fragment that has its own template file."""
        return self._loaded.get_template(name).render(
            visit=visit, now_ms=self._clock.now_ms(), theme=theme_of(visit), **values
        )

    def part(self, name: str, macro: str, visit: PageRequest, *args: Any, **values: Any) -> str:
        """Return the output of one macro of a template file, for live streams."""
        module: Any = self._module(name)
        return str(getattr(module, macro)(*args, **values)).strip()

    def answer(self, name: str, visit: PageRequest, status: int = 200, **values: Any) -> Response:
        """Return a whole page as a response, and delete the cookie of the notices that it shows."""
        response = HTMLResponse(self.render(name, visit, **values), status)
        if NOTICES in visit.request.cookies:
            response.delete_cookie(NOTICES, path="/")
        return response

    @cached_property
    def _loaded(self) -> Any:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # here: not every process serves pages

        environment: Any = Environment(
            loader=PackageLoader("waypost.console", "pages"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            extensions=["jinja2.ext.do"],
        )
        environment.globals.update(
            asset=self._assets.address, version=__version__, now=self._clock.now_ms, message_view=face_of
        )
        environment.filters |= {
            "iso": iso,
            "exact": exact,
            "grouped": grouped,
            "pretty": pretty,
            "phone": phone,
            "formatted": formatted,
        }
        return environment

    def _module(self, name: str) -> Any:
        modules = self.__dict__.setdefault("_modules", {})
        if name not in modules:
            modules[name] = self._loaded.get_template(name).module
        return modules[name]


class RejectedRedirect(RedirectResponse):
    """Redirect after a rejected action to a page that shows the error."""


def go(path: str, *, said: str = "", remedy: str = "", kind: str = "good", secure: bool = False) -> Response:
    """Redirect to a page after an action and show a notice there.

    Args:
        path: a console path.
        said: the result, in one sentence.
        remedy: what to do next, or empty.
        kind: good, warn or bad.
        secure: True if the service is reached over HTTPS.
    """
    response = RejectedRedirect(path, 303) if kind == "bad" else RedirectResponse(path, 303)
    if said:
        entry = {"text": _begin_of(said), "hint": _begin_of(remedy), "kind": kind}
        encoded = json.dumps([entry], ensure_ascii=False).encode()
        value = base64.urlsafe_b64encode(encoded).decode()
        response.set_cookie(NOTICES, value, max_age=60, httponly=True, samesite="lax", secure=secure)
    return response


def _begin_of(text: str) -> str:
    """Return as much of a notice as fits into a cookie; browsers drop cookies over 4,096 bytes."""
    encoded = text[:_MOST_NOTICE].encode("utf-8", "replace")
    return encoded[:_MOST_NOTICE_BYTES].decode("utf-8", "ignore")


def notices_of(cookies: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the notices of the last action from its cookie; empty if the cookie is not one of ours."""
    try:
        notices = json.loads(base64.urlsafe_b64decode(cookies.get(NOTICES, "")))
        return [{name: _begin_of(str(one.get(name, ""))) for name in ("text", "hint", "kind")} for one in notices[:3]]
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return []


def theme_of(visit: PageRequest) -> str:
    """Return the theme from its cookie: light, dark or system."""
    chosen = visit.request.cookies.get(THEME, "system")
    return chosen if chosen in THEMES else "system"
