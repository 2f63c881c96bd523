"""HTML pages and fragments from Jinja2 templates with automatic escaping; notices and redirects."""

import base64
import json
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from waypost import __version__
from waypost.base.clock import Clock
from waypost.console.bubbles.formatting import format_text
from waypost.console.bubbles.previews import message_view
from waypost.console.web.assets import SECURITY_HEADERS, Assets
from waypost.console.web.formatting import format_number, format_phone, pretty_json, state_kind
from waypost.console.web.zones import DisplayZone, day_text, time_element, time_text, zone_context

HEADERS: Final = {**SECURITY_HEADERS, "Cache-Control": "no-store"}
NOTICES_COOKIE: Final = "waypost_notices"
THEME_COOKIE: Final = "waypost_theme"
APP_COOKIE: Final = "waypost_app"
THEMES: Final = ("system", "light", "dark")
_MAX_NOTICE_CHARS: Final = 600
_MAX_NOTICE_BYTES: Final = 1200


class PageRenderer:
    """Renders pages. Jinja2 is imported with the first page, not at start."""

    def __init__(self, assets: Assets, clock: Clock) -> None:
        self._assets = assets
        self._clock = clock
        self._globals: dict[str, Any] = {}
        self._modules: dict[str, Any] = {}

    def add_globals(self, **values: Any) -> None:
        """Add values that all templates have, before the first page is rendered."""
        self._globals |= values

    def render(self, name: str, zone: DisplayZone, **values: Any) -> str:
        """Return a page, or a fragment that has its own template file, with times of this zone."""
        with zone_context(zone):
            return self._environment.get_template(name).render(now_ms=self._clock.now_ms(), **values)

    def render_macro(self, name: str, macro: str, zone: DisplayZone, *args: Any, **values: Any) -> str:
        """Return the output of one macro of a template file, for live streams."""
        if name not in self._modules:
            self._modules[name] = self._environment.get_template(name).module
        with zone_context(zone):
            return str(getattr(self._modules[name], macro)(*args, **values)).strip()

    @cached_property
    def _environment(self) -> Any:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # here: not every process serves pages

        environment: Any = Environment(
            loader=PackageLoader("waypost.console", "pages"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            extensions=["jinja2.ext.do"],
            bytecode_cache=_compiled_pages(),
        )
        environment.globals.update(
            asset=self._assets.url_path,
            version=__version__,
            now=self._clock.now_ms,
            message_view=message_view,
            time_element=time_element,
            **self._globals,
        )
        environment.filters |= {
            "exact": time_text,
            "day": day_text,
            "grouped": format_number,
            "pretty": pretty_json,
            "phone": format_phone,
            "formatted": format_text,
            "state_kind": state_kind,
        }
        return environment


@cache
def _compiled_pages() -> Any:
    """Return the compiled pages of this process: to compile one takes longer than to render it a hundred times."""
    from jinja2 import BytecodeCache  # here, as above

    compiled: dict[tuple[str, str], Any] = {}

    class CompiledPages(BytecodeCache):
        """Keeps them for the next service of the process, as after a snapshot is restored."""

        def load_bytecode(self, bucket: Any) -> None:
            bucket.code = compiled.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket: Any) -> None:
            compiled[bucket.key, bucket.checksum] = bucket.code

    return CompiledPages()


class RejectedRedirect(RedirectResponse):
    """Redirect after a rejected action to a page that shows the error."""


def redirect(path: str, *, notice: str = "", hint: str = "", kind: str = "good", secure: bool = False) -> Response:
    """Redirect to a page after an action and show a notice there.

    Args:
        kind: good, warn or bad.
        secure: True if the service is reached over HTTPS.
    """
    response = RejectedRedirect(path, 303) if kind == "bad" else RedirectResponse(path, 303)
    if notice:
        entry = {"text": _truncate(notice), "hint": _truncate(hint), "kind": kind}
        encoded = json.dumps([entry], ensure_ascii=False).encode()
        value = base64.urlsafe_b64encode(encoded).decode()
        response.set_cookie(NOTICES_COOKIE, value, max_age=60, httponly=True, samesite="lax", secure=secure)
    return response


def _truncate(text: str) -> str:
    """Return as much of a notice as fits into a cookie; browsers drop cookies over 4,096 bytes."""
    encoded = text[:_MAX_NOTICE_CHARS].encode("utf-8", "replace")
    return encoded[:_MAX_NOTICE_BYTES].decode("utf-8", "ignore")


def read_notices(cookies: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the notices of the last action from its cookie; empty if the cookie is not one of ours."""
    try:
        notices = json.loads(base64.urlsafe_b64decode(cookies.get(NOTICES_COOKIE, "")))
        return [{name: _truncate(str(one.get(name, ""))) for name in ("text", "hint", "kind")} for one in notices[:3]]
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return []


def read_theme(cookies: Mapping[str, str]) -> str:
    """Return the theme from its cookie: light, dark or system."""
    chosen = cookies.get(THEME_COOKIE, "system")
    return chosen if chosen in THEMES else "system"
