"""`/onboarding/{code}`: shows anyone who has the link how far the onboarding of an app is, and leads to its signup.

`/onboarding/contact/{code}`: confirms the e-mail address of an app's contact.
"""

import math
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from waypost.admin.app_signup import SignupNotFinished, finish_signup, signup_url
from waypost.admin.provisioning import AdminContext
from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.base.encryption import SecretBox, secrets_equal
from waypost.domain.app import ONBOARDING_LINK_LIFE_MS, ONBOARDING_PATH, App, OperatorAccount
from waypost.domain.onboarding import describe_stage
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
    "Referrer-Policy": "same-origin",  # without a referrer a browser sends its form with the origin null: refused
    "Content-Security-Policy": PAGE_HEADERS["Content-Security-Policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
}
SIGNED_UP: Final = "/signed-up"
"""The end of the path to which the signup window returns."""
_CODE: Final = re.compile(r"([0-9a-f-]{36})-[0-9a-f]{32}")


class OnboardingPage:
    """The page behind the link of `GET …/onboarding/embed/link`, and the end of the signup that it leads to.

    Args:
        is_held: the service accepts no changes now.
    """

    def __init__(self, context: AdminContext, *, is_held: bool) -> None:
        self._context, self._is_held = context, is_held
        self._directory, self._clock = context.directory, context.clock

    async def show(self, request: Request) -> Response:
        """Respond to `GET` with the page; 404 for a code that is not valid, or not any more."""
        return await self._show(request, problem="")

    async def finish(self, request: Request) -> Response:
        """Respond to the signup window's return: connect the app, and show the page, which then follows its stages.

        A window that was closed before its end returns with an error in place of a code.
        """
        app, query = await self._find_app(request), request.query_params
        account = None if app is None else await self._find_operator_account()
        if app is None or not self._is_valid(app) or account is None:
            return await self._show(request, problem="")
        if self._is_held:
            return await self._show(request, problem="The service accepts no changes now. Try again later.", status=503)
        if not query.get("code"):
            return await self._show(request, problem="The signup window was closed before its end.", status=400)
        return_url = self._return_url(request.path_params["code"])
        try:
            await finish_signup(self._context, account, app, code=query["code"], return_url=return_url)
        except SignupNotFinished as refused:
            return await self._show(request, problem=str(refused), status=400)
        page = return_url.removesuffix(SIGNED_UP)
        return RedirectResponse(page, 303, PAGE_HEADERS | {"Cache-Control": "no-store"})

    async def _show(self, request: Request, *, problem: str, status: int = 200) -> Response:
        app = await self._find_app(request)
        if app is None or not self._is_valid(app):
            return _onboarding_page(404, app=None, has_expired=app is not None)
        left_ms = app.preferences.onboarding_link_ms + ONBOARDING_LINK_LIFE_MS - self._clock.now_ms()
        size_ms, unit = (DAY_MS, "day") if left_ms > DAY_MS else (HOUR_MS, "hour")
        count = math.ceil(left_ms / size_ms)
        contact = app.preferences
        waits = bool(app.phone_number_id) or (bool(contact.contact_email) and not contact.contact_verified)
        account = None if waits else await self._find_operator_account()
        return _onboarding_page(
            status,
            app=app,
            stage=describe_stage(app),
            left=f"{count} {unit}{'s' if count > 1 else ''}",
            window_url=signup_url(account, app, self._return_url(request.path_params["code"])) if account else "",
            problem=problem,
        )

    async def _find_app(self, request: Request) -> App | None:
        """Return the app whose current link, expired or not, has the code in the path."""
        code: str = request.path_params["code"]
        found = _CODE.fullmatch(code)
        app = await self._directory.app(found[1]) if found is not None else None
        if app is None or not app.preferences.onboarding_link_ms:
            return None
        codes = self._context.secret_box.onboarding_codes(app.id, app.preferences.onboarding_link_ms)
        return app if any(secrets_equal(code, accepted) for accepted in codes) else None

    def _is_valid(self, app: App) -> bool:
        return self._clock.now_ms() < app.preferences.onboarding_link_ms + ONBOARDING_LINK_LIFE_MS

    async def _find_operator_account(self) -> OperatorAccount | None:
        account_id = await self._directory.first_operator_account_id()
        return await self._directory.operator_account(account_id) if account_id else None

    def _return_url(self, code: str) -> str:
        return f"{self._context.public_url}{ONBOARDING_PATH}/{code}{SIGNED_UP}"


def _onboarding_page(status: int, **values: Any) -> Response:
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
