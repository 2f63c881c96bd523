"""Embedded signup at the simulator, and what follows it: token, accounts, number, onboarding and a sample template.

Only a simulator is signed up at from here: the operator's own window opens in a partner's page.
"""

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from waypost.base.encryption import hash_secret, secrets_equal
from waypost.base.object_ids import make_id
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import error_notice
from waypost.console.overview.first_steps import submit_sample_template
from waypost.console.page_request import PageRequest
from waypost.console.settings.operator import subscribe_account
from waypost.domain.app import App

ONBOARDING_PATH: Final = "/businesses"
_GRAPH: Final = "/v25.0"
_STATE_CHARS: Final = 32
_CODES_PER_PAGE: Final = 2000


class SignupFailed(Exception):
    """A signup has not connected the app; the argument is the reason.

    Args:
        text: the reason, in a sentence.
        hint: the next step, in a sentence; empty: the text says it.
    """

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


@dataclass(frozen=True, slots=True)
class SignupApp:
    """The app at the simulator for which the signup window opens."""

    app_id: str
    app_secret: str


async def find_signup_app(request: PageRequest) -> SignupApp | None:
    """Return the app by which the partner reaches its first business at the simulator; None if it has none there."""
    for app in request.apps:
        account = await request.services.directory.operator_account_of(app) if app.business_account_id else None
        if account is not None and account.base_url == request.services.simulator_url:
            return SignupApp(account["app_id"], account["app_secret"])
    return None


def window_address(request: PageRequest, app: App, signup_app: SignupApp) -> str:
    """Return the address of the signup window, which ends at `finish_window`."""
    query = {
        "client_id": signup_app.app_id,
        "redirect_uri": _return_address(request, app),
        "state": _window_state(request, app),
        "response_type": "code",
        "extras": json.dumps({"version": "v4", "setup": {"business": {"name": app.name}}}),
    }
    return f"{request.services.simulator_url}{_GRAPH}/dialog/oauth?{urlencode(query)}"


def _return_address(request: PageRequest, app: App) -> str:
    """Return the address to which the window returns: where the browser has the session's cookie."""
    is_demo = request.services.demo_partner_id is not None
    origin = str(request.http.base_url).rstrip("/") if is_demo else request.services.public_url
    return f"{origin}{ONBOARDING_PATH}/{app.id}/signed-up"


def _window_state(request: PageRequest, app: App) -> str:
    """Return the text that only a window of this session and app returns with."""
    assert request.session is not None, "a public page opened a window"  # noqa: S101  a defect
    return hash_secret(f"{request.session.csrf} {app.id}")[:_STATE_CHARS]


async def play_signup(request: PageRequest, app: App) -> None:
    """Use the signup window as a new person does, with the app's name for all that it asks, and connect the app.

    Raises:
        SignupFailed: the window shows an error, or what follows fails.
    """
    control, signup_app = request.control, await find_signup_app(request)
    if signup_app is None:  # its first business: the partner gets an app of its own
        ids = request.services.ids
        signup_app = SignupApp(make_id(ids, "app"), ids.secret())
        await control.call("PUT /control/apps/{app_id}", app_id=signup_app.app_id, app_secret=signup_app.app_secret)
    try:
        session: dict[str, Any] = await control.call(
            "POST /control/onboarding/play", app_id=signup_app.app_id, person_name=f"Owner of {app.name}"[:256],
            business={"name": app.name}, account_name=app.name, display_name=app.name,
        )  # fmt: skip
    except ApiResponseError as error:
        raise SignupFailed(*error_notice(error)) from error
    if not session["code"]:
        shown = session["error"]
        reason = f"shows error {shown['code']}: {shown['text']}" if shown else "was closed before its end."
        raise SignupFailed(f"The signup window {reason}", "Sign up again.")
    await _connect_business(request, app, signup_app, session, redirect_uri="")


async def finish_window(request: PageRequest, app: App) -> None:
    """Connect the app to the business of the window that has returned with a code in the query.

    Raises:
        SignupFailed: the window was cancelled or is not this session's, or what follows fails.
    """
    if not secrets_equal(request.query("state"), _window_state(request, app)):
        raise SignupFailed("The signup window was opened by another session.", "Open it again from here.")
    code, signup_app = request.query("code"), await find_signup_app(request)
    if not code or signup_app is None:
        raise SignupFailed("The signup window was closed before its end.", "Open it again, or sign up at once.")
    session = await _find_session(request, code)
    await _connect_business(request, app, signup_app, session, redirect_uri=_return_address(request, app))


async def _find_session(request: PageRequest, code: str) -> dict[str, Any]:
    """Return the session of the window that has given a code."""
    after: int | None = 0
    while after is not None:
        page = await request.control.get(f"/control/onboarding/codes?after={after}&limit={_CODES_PER_PAGE}")
        for one in page["codes"]:
            if one["code"] == code:
                return await request.control.get(f"/control/onboarding/sessions/{one['session_id']}")
        after = page["next"]
    raise SignupFailed("The simulator does not know the code of the signup window.", "Open it again.")


async def _connect_business(
    request: PageRequest, app: App, signup_app: SignupApp, session: dict[str, Any], *, redirect_uri: str
) -> None:
    """Exchange the code, add the business's accounts, connect the app, begin its onboarding, submit a template."""
    if app.phone_number:
        raise SignupFailed(f"{app.name} has a number already.")
    waba_id, number_id = session["waba_id"], session["phone_number_id"]
    if not number_id:
        raise SignupFailed("The signup gave no number.", "Sign up again, with a number.")
    known = await request.services.directory.business_account(waba_id)
    if known is not None and known.partner_id != request.partner.id:
        raise SignupFailed("Another partner has this business account.", "Sign up with another account.")
    exchange = {"client_id": signup_app.app_id, "client_secret": signup_app.app_secret, "code": session["code"]}
    exchange |= {"redirect_uri": redirect_uri} if redirect_uri else {}
    account_id = f"signup-{waba_id}" if known is None else known.operator_account_id
    try:
        token = await request.control.form("POST", f"{_GRAPH}/oauth/access_token", exchange)
        if known is None:
            await request.admin(
                "PUT /admin/operator-accounts/{account_id}", account_id=account_id,
                base_url=request.services.simulator_url, token=token["access_token"],
                app_id=signup_app.app_id, app_secret=signup_app.app_secret,
                verify_token=request.services.ids.secret(),
            )  # fmt: skip
            await request.admin(
                "POST /admin/business-accounts",
                id=waba_id, partner_id=request.partner.id, operator_account_id=account_id,
            )  # fmt: skip
        await request.admin(
            "POST /admin/apps/{app_id}/connect", app_id=app.id, phone_number=session["phone_number"],
            phone_number_id=number_id, business_account_id=waba_id, live=False,
        )  # fmt: skip
        await request.admin("POST /admin/apps/{app_id}/onboard", app_id=app.id)
        # The review ends sooner than the onboarding: its webhook comes only to who is subscribed by then.
        if known is None and not await subscribe_account(request, waba_id):
            await submit_sample_template(request, app)
    except ApiResponseError as error:
        text = error.explanation or error.message
        raise SignupFailed(f"The signup has ended, but then: {text}", "Sign up again.") from error
