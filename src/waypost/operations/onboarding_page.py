"""`/onboarding/{code}`: shows anyone who has the link how far the onboarding of an app is.

`/onboarding/contact/{code}`: confirms the e-mail address of an app's contact.
"""

import math
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.base.encryption import SecretBox, secrets_equal
from waypost.domain.app import ONBOARDING_LINK_LIFE_MS, App
from waypost.store.apps.apps import change_app
from waypost.store.database import Database
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


FORM_PAGE_HEADERS: Final = PAGE_HEADERS | {
    "Content-Security-Policy": PAGE_HEADERS["Content-Security-Policy"].replace(
        "form-action 'none'", "form-action 'self'"
    )
}
_WINDOW_HOSTS: Final = {"https://graph.facebook.com": "https://business.facebook.com"}
"""Where the hosted signup window of an operator is, if its Graph API is elsewhere. Source: decision 0127."""
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
        is_known = app is not None and self._is_current(app, code)
        if app is None or not is_known or not self._is_valid(app):
            return self._page(404, app=None, has_expired=is_known)
        left_ms = app.preferences.onboarding_link_ms + ONBOARDING_LINK_LIFE_MS - self._clock.now_ms()
        size_ms, unit = (DAY_MS, "day") if left_ms > DAY_MS else (HOUR_MS, "hour")
        count = math.ceil(left_ms / size_ms)
        left = f"{count} {unit}{'s' if count > 1 else ''}"
        return self._page(200, app=app, left=left, window_url=await self._find_window(app))

    def _is_current(self, app: App, code: str) -> bool:
        created_on_ms = app.preferences.onboarding_link_ms
        codes = self._secret_box.onboarding_codes(app.id, created_on_ms)
        return created_on_ms > 0 and any(secrets_equal(code, accepted) for accepted in codes)

    def _is_valid(self, app: App) -> bool:
        return self._clock.now_ms() < app.preferences.onboarding_link_ms + ONBOARDING_LINK_LIFE_MS

    async def _find_window(self, app: App) -> str:
        """Return the URL of the operator's signup window for the business; empty if the app has its number already."""
        account_id = None if app.phone_number_id else await self._directory.first_operator_account_id()
        account = await self._directory.operator_account(account_id) if account_id else None
        app_id = account.fields.get("app_id", "") if account is not None else ""
        if account is None or not app_id:
            return ""
        base_url = _WINDOW_HOSTS.get(account.base_url, account.base_url)
        return f"{base_url}/messaging/whatsapp/onboard/?{urlencode({'app_id': app_id})}"

    def _page(self, status: int, **values: Any) -> Response:
        text = page_templates().get_template("onboarding.html").render(**values)
        return HTMLResponse(text, status, PAGE_HEADERS | {"Cache-Control": "no-store"})


class ContactPage:
    """The page that a verification mail leads to; opening it changes nothing, since programs open links in mails.

    Args:
        is_held: the service accepts no changes now.
    """

    def __init__(
        self, *, database: Database, directory: Directory, secret_box: SecretBox, clock: Clock, is_held: bool
    ) -> None:
        self._database, self._directory = database, directory
        self._secret_box, self._clock = secret_box, clock
        self._is_held = is_held

    async def show(self, request: Request) -> Response:
        """Respond to `GET` with the page; 404 for a code that is not valid, or not any more."""
        app = await self._find_app(request)
        return _contact_page(404 if app is None else 200, app)

    async def verify(self, request: Request) -> Response:
        """Respond to `POST`: record that the holder of the address has confirmed it."""
        app = await self._find_app(request)
        if app is None:
            return _contact_page(404, None)
        if self._is_held:
            return _contact_page(503, app, is_held=True)
        email, sent_ms, now_ms = (
            app.preferences.contact_email,
            app.preferences.verification_sent_ms,
            self._clock.now_ms(),
        )

        def confirm(current: App) -> App:
            preferences = current.preferences
            if (preferences.contact_email, preferences.verification_sent_ms) != (email, sent_ms):
                return current  # set anew meanwhile
            return replace(current, modified_on_ms=now_ms, preferences=replace(preferences, contact_verified=True))

        changed = await self._database.write(change_app, app.id, confirm)
        self._directory.invalidate()
        is_confirmed = changed is not None and changed.preferences.contact_verified
        return _contact_page(200, changed) if is_confirmed else _contact_page(404, None)

    async def _find_app(self, request: Request) -> App | None:
        code: str = request.path_params["code"]
        found = _CODE.fullmatch(code)
        app = await self._directory.app(found[1]) if found is not None else None
        if app is None:
            return None
        email, sent_ms = app.preferences.contact_email, app.preferences.verification_sent_ms
        is_current = sent_ms and self._clock.now_ms() < sent_ms + ONBOARDING_LINK_LIFE_MS
        codes = self._secret_box.contact_codes(app.id, email, sent_ms)
        return app if is_current and any(secrets_equal(code, accepted) for accepted in codes) else None


def _contact_page(status: int, app: App | None, *, is_held: bool = False) -> Response:
    text = page_templates().get_template("contact.html").render(app=app, is_held=is_held)
    return HTMLResponse(text, status, FORM_PAGE_HEADERS | {"Cache-Control": "no-store"})
