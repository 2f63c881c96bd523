"""`/onboarding/{code}`: shows anyone who has the link how far the onboarding of an app is."""

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.base.encryption import SecretBox, secrets_equal
from waypost.domain.app import ONBOARDING_LINK_LIFE_MS, App
from waypost.store.directory import Directory

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@cache
def page_templates() -> "Environment":
    """Return the templates."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("waypost.operations", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


_CODE: Final = re.compile(r"([0-9a-f-]{36})-[0-9a-f]{32}")


class OnboardingPage:
    """The page behind the link of `GET …/onboarding/embed/link`."""

    def __init__(self, *, directory: Directory, secret_box: SecretBox, clock: Clock) -> None:
        self._directory = directory
        self._secret_box = secret_box
        self._clock = clock

    async def show(self, request: Request) -> Response:
        """Respond to `GET` with the page; 404 for a code that is not valid, or not any more."""
        code: str = request.path_params["code"]
        found = _CODE.fullmatch(code)
        app = await self._directory.app(found[1]) if found is not None else None
        if app is None or not self._is_valid(app, code):
            return self._page(404, app=None)
        left_ms = app.preferences.onboarding_link_ms + ONBOARDING_LINK_LIFE_MS - self._clock.now_ms()
        size_ms, unit = (DAY_MS, "day") if left_ms > DAY_MS else (HOUR_MS, "hour")
        count = math.ceil(left_ms / size_ms)
        return self._page(200, app=app, left=f"{count} {unit}{'s' if count > 1 else ''}")

    def _is_valid(self, app: App, code: str) -> bool:
        created_on_ms = app.preferences.onboarding_link_ms
        is_live = created_on_ms and self._clock.now_ms() < created_on_ms + ONBOARDING_LINK_LIFE_MS
        codes = self._secret_box.onboarding_codes(app.id, created_on_ms)
        return bool(is_live) and any(secrets_equal(code, accepted) for accepted in codes)

    def _page(self, status: int, **values: Any) -> Response:
        text = page_templates().get_template("onboarding.html").render(**values)
        return HTMLResponse(text, status, PAGE_HEADERS | {"Cache-Control": "no-store"})
