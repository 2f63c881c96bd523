"""The onboarding page: a line for each app with its stage and what it lacks, and the form of a new business."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import error_notice, error_response
from waypost.console.onboarding.signup import (
    ONBOARDING_PATH,
    SignupFailed,
    find_signup_app,
    finish_window,
    play_signup,
    window_address,
)
from waypost.console.overview.first_steps import find_first_message, send_message, submit_sample_template
from waypost.console.page_request import PageRequest
from waypost.console.phones.sending import PhoneClient, check_phone_owner
from waypost.console.phones.view_models import require_digits
from waypost.console.web.errors import AdministratorRequired, InvalidPageRequest, NotFound
from waypost.console.web.streams import PageElement
from waypost.domain.app import App
from waypost.domain.onboarding import (
    AppProgress,
    MissingItem,
    OnboardingAction,
    describe_stage,
    list_missing,
    stage_since_ms,
)
from waypost.store.accounts.partners import app_by_id
from waypost.store.apps.progress import list_progress
from waypost.store.messages.lists import messages_of_app

MAX_SHOWN_APPS: Final = 100
"""The newest ones; the list of apps in the settings has all."""
REPLY_TEXT: Final = "Yes please"
_MACROS: Final = "onboarding/parts.html"


@dataclass(frozen=True, slots=True)
class BusinessRow:
    """An app as one line of the page."""

    progress: AppProgress
    missing: Sequence[MissingItem]
    stage: str
    since_ms: int
    is_simulated: bool  # its operator is the simulator, or would be: only then a person can act as the business
    window: str = ""  # the address of the signup window; empty: it cannot be opened from here
    contact_url: str = ""  # the link that confirms its contact's e-mail address, for administrators

    @property
    def action(self) -> OnboardingAction:
        """The next action."""
        return self.missing[0].action if self.missing else OnboardingAction.WAIT


def has_simulator(request: PageRequest) -> bool:
    """True if a new business can be signed up at the service's simulator."""
    return request.services.apis.control is not None and request.services.simulator_url is not None


async def show_onboarding(
    request: PageRequest, values: Mapping[str, str] | None = None, wrong: Mapping[str, str] = {}
) -> Response:
    """Return the page; a rejected form with its values and errors by field."""
    names = {app.name for app in request.apps}
    name = next(f"Business {number}" for number in range(1, len(names) + 2) if f"Business {number}" not in names)
    return await request.page(
        "onboarding/page.html", 400 if wrong else 200,
        rows=await _read_rows(request), values=values or {"name": name}, wrong=wrong,
        has_simulator=has_simulator(request), most=MAX_SHOWN_APPS,
    )  # fmt: skip


async def live_onboarding(request: PageRequest) -> Response:
    """Stream the lines."""

    async def render_rows() -> Sequence[PageElement]:
        return [
            PageElement(f"business-{row.progress.app.id}", _render(request, row), "businesses")
            for row in await _read_rows(request)
        ]

    return request.live(render_rows)


def _render(request: PageRequest, row: BusinessRow) -> str:
    return request.macro(_MACROS, "business", request, row, request.is_administrator)


async def _read_rows(request: PageRequest) -> list[BusinessRow]:
    read = partial(list_progress, partner_id=request.partner.id, at_most=MAX_SHOWN_APPS)
    progress_of_apps = await request.read(read)
    return [await _row_of(request, progress) for progress in progress_of_apps]


async def _row_of(request: PageRequest, progress: AppProgress) -> BusinessRow:
    app, missing = progress.app, list_missing(progress)
    account = await request.services.directory.operator_account_of(app) if app.business_account_id else None
    is_simulated = has_simulator(request) and (account is None or account.base_url == request.services.simulator_url)
    row = BusinessRow(progress, missing, describe_stage(app), stage_since_ms(app), is_simulated)
    match row.action:
        case OnboardingAction.SIGN_UP if is_simulated and (signup_app := await find_signup_app(request)) is not None:
            return replace(row, window=window_address(request, app, signup_app))
        case OnboardingAction.VERIFY_CONTACT if request.is_administrator:
            contact = await request.admin("GET /admin/apps/{app_id}/contact-email", app_id=app.id)
            return replace(row, contact_url=contact["url"])
        case _:
            return row


async def create_business(request: PageRequest) -> Response:
    """Create an app, and sign it up at the simulator if the form's button says so."""
    name, plays = (await request.field("name")).strip(), await request.field("how") == "play"
    if plays and not request.is_administrator:
        raise AdministratorRequired
    api = await request.partner_api()
    try:
        response = await api.form("POST", "/partner/app", {"name": name})
    except ApiResponseError as error:
        text, hint = error_notice(error)
        return await show_onboarding(request, {"name": name}, {"name": f"{text} {error.explanation or hint}".strip()})
    app = await request.read(app_by_id, response["appId"])
    if app is None or not plays:
        return request.redirect(ONBOARDING_PATH, f"{name} created.")
    return await _sign_up(request, app)


async def sign_up(request: PageRequest) -> Response:
    """Sign up the app at the simulator at once."""
    return await _sign_up(request, request.app)


async def _sign_up(request: PageRequest, app: App) -> Response:
    try:
        await play_signup(request, app)
    except SignupFailed as failed:
        return request.redirect(ONBOARDING_PATH, failed.text, hint=failed.hint, kind="bad")
    return request.redirect(ONBOARDING_PATH, f"{app.name} is signed up.", hint="Its onboarding has begun.")


async def return_from_window(request: PageRequest) -> Response:
    """Connect the app to the business that was signed up in the window; the browser comes from there."""
    try:
        await finish_window(request, request.app)
    except SignupFailed as failed:
        return request.redirect(ONBOARDING_PATH, failed.text, hint=failed.hint, kind="bad")
    return request.redirect(ONBOARDING_PATH, f"{request.app.name} is signed up.", hint="Its onboarding has begun.")


async def begin(request: PageRequest) -> Response:
    """Begin the onboarding, or begin it again; with a PIN the number is registered with it first."""
    app, pin = request.app, (await request.field("pin")).strip()
    try:
        if pin:
            await request.app_api.form("POST", f"/partner/app/{app.id}/onboarding/register", {"pin": pin})
        await request.admin("POST /admin/apps/{app_id}/onboard", app_id=app.id)
    except ApiResponseError as error:
        return error_response(request, ONBOARDING_PATH, error)
    return request.redirect(ONBOARDING_PATH, f"The onboarding of {app.name} has begun.")


async def _require_simulated(request: PageRequest) -> None:
    """Check that the app in the path is at the simulator.

    Raises:
        NotFound: its operator is another, where nobody acts from here as a reviewer or a user.
    """
    account = await request.services.directory.operator_account_of(request.app)
    if account is None or account.base_url != request.services.simulator_url:
        raise NotFound(f"{request.app.name} is not at the simulator.")


async def submit_template(request: PageRequest) -> Response:
    """Submit the sample template; the simulator reviews it."""
    await _require_simulated(request)
    try:
        await submit_sample_template(request, request.app)
    except ApiResponseError as error:
        return error_response(request, ONBOARDING_PATH, error)
    return request.redirect(ONBOARDING_PATH, "Template submitted for review.")


async def send_first(request: PageRequest) -> Response:
    """Send a template to a simulated phone; the line of the app shows its delivery."""
    await _require_simulated(request)
    first = await find_first_message(request)
    if first is None:
        raise InvalidPageRequest(
            "There is no phone, or no approved template that can be sent with example values.",
            "Open Templates and send one from its page.",
        )
    try:
        await send_message(request, first)
    except ApiResponseError as error:
        return error_response(request, ONBOARDING_PATH, error)
    name = first["phone"]["name"] or first["phone"]["phone"]
    return request.redirect(ONBOARDING_PATH, f"Template sent to {name}.", hint="Its line shows the delivery.")


async def reply(request: PageRequest) -> Response:
    """Reply to the newest message from the phone that got it."""
    await _require_simulated(request)
    newest = await request.read_own(partial(messages_of_app, at_most=1))
    if not newest:
        raise NotFound(f"{request.app.name} has sent no message.")
    phone = require_digits(newest[0]["destination"])
    await check_phone_owner(request, phone, in_chat=True)
    await PhoneClient(request, phone).call("messages", {"to": request.app.phone_number, "text": REPLY_TEXT})
    return request.redirect(ONBOARDING_PATH, f"Reply sent from {phone}.")
