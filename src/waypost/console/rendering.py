"""Pages and parts of pages, from Jinja2 templates that escape whatever they are given."""

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
    """Renders. Jinja2 is loaded with the first page, not at the start.

    Args:
        clock: by which pages say how long ago something was.
    """

    def __init__(self, assets: Assets, clock: Clock) -> None:
        self._assets = assets
        self._clock = clock

    def render(self, name: str, visit: PageRequest, **values: Any) -> str:
        """A page, or a part of one that is a file of its own."""
        return self._loaded.get_template(name).render(
            visit=visit, now_ms=self._clock.now_ms(), theme=theme_of(visit), **values
        )

    def part(self, name: str, macro: str, visit: PageRequest, *args: Any, **values: Any) -> str:
        """What one macro of a file gives: what a live stream sends."""
        module: Any = self._module(name)
        return str(getattr(module, macro)(*args, **values)).strip()

    def answer(self, name: str, visit: PageRequest, status: int = 200, **values: Any) -> Response:
        """A whole page as an answer; what the last act had to say is shown on it, once."""
        answer = HTMLResponse(self.render(name, visit, **values), status)
        if NOTICES in visit.request.cookies:
            answer.delete_cookie(NOTICES, path="/")
        return answer

    @cached_property
    def _loaded(self) -> Any:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # here, because few ask for a page

        loaded: Any = Environment(
            loader=PackageLoader("waypost.console", "pages"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            extensions=["jinja2.ext.do"],
        )
        loaded.globals.update(asset=self._assets.address, version=__version__, now=self._clock.now_ms, face_of=face_of)
        loaded.filters |= {
            "iso": iso,
            "exact": exact,
            "grouped": grouped,
            "pretty": pretty,
            "phone": phone,
            "formatted": formatted,
        }
        return loaded

    def _module(self, name: str) -> Any:
        modules = self.__dict__.setdefault("_modules", {})
        if name not in modules:
            modules[name] = self._loaded.get_template(name).module
        return modules[name]


class RejectedRedirect(RedirectResponse):
    """Leads on to a page that says why an act was rejected."""


def go(path: str, *, said: str = "", remedy: str = "", kind: str = "good", secure: bool = False) -> Response:
    """Lead on to a page after an act; what is said is shown there.

    Args:
        path: one of ours.
        said: what happened, in one sentence.
        remedy: what to do next, where there is something.
        kind: good, warn or bad.
        secure: whether the service is reached by https.
    """
    answer = RejectedRedirect(path, 303) if kind == "bad" else RedirectResponse(path, 303)
    if said:
        notice = {"said": _begin_of(said), "remedy": _begin_of(remedy), "kind": kind}
        told = json.dumps([notice], ensure_ascii=False)
        value = base64.urlsafe_b64encode(told.encode()).decode()
        answer.set_cookie(NOTICES, value, max_age=60, httponly=True, samesite="lax", secure=secure)
    return answer


def _begin_of(text: str) -> str:
    """As much of a notice as fits into a cookie: browsers drop one of more than 4,096 bytes."""
    begin = text[:_MOST_NOTICE].encode("utf-8", "replace")
    return begin[:_MOST_NOTICE_BYTES].decode("utf-8", "ignore")


def notices_of(cookies: Mapping[str, str]) -> list[dict[str, str]]:
    """What the last act had to say; nothing where the cookie is not one of ours."""
    try:
        told = json.loads(base64.urlsafe_b64decode(cookies.get(NOTICES, "")))
        return [{name: _begin_of(str(one.get(name, ""))) for name in ("said", "remedy", "kind")} for one in told[:3]]
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return []


def theme_of(visit: PageRequest) -> str:
    """Light, dark, or as the system has it."""
    chosen = visit.request.cookies.get(THEME, "system")
    return chosen if chosen in THEMES else "system"
