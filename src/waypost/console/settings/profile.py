"""The profile page: details of the account, its limits, and its console sessions."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.console.page_tools import PageTools
from waypost.console.settings.app import is_number_up_to
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ErrorCode
from waypost.domain.partner import MAX_QUOTA
from waypost.wire.errors import ERRORS

# fmt: off
ACCOUNT_FLAGS: Final = (  # Source: spec, "Partner account (login response)"; none changes what we do
    ("admin",                 "Account administrator"),
    ("terms_read",            "Terms read"),
    ("activation_read",       "Activation notice read"),
    ("enable_customer",       "Customers enabled"),
    ("enable_wallet",         "Wallet enabled"),
    ("enable_inr_wallet",     "INR wallet enabled"),
    ("enable_loader_wallet",  "Loader wallet enabled"),
    ("enable_app_onboarding", "App onboarding enabled"),
    ("is_tpp",                "Third-party provider"),
    ("onboard_enabled",       "Onboarding enabled"),
)
PERIODS: Final = (  # Source: decision 0051
    ("keep_bodies_days",      "Content",  "texts, callbacks, webhooks and files"),
    ("keep_messages_days",    "Messages", "their states and traces, without the content"),
)
QUOTAS: Final = (  # Source: decision 0099
    # in the response  field             label        meaning
    ("messages",       "message_quota",  "Messages",  "wait for the operator"),
    ("callbacks",      "callback_quota", "Callbacks", "wait for your receivers"),
)
# fmt: on
_RETENTION: Final = "/admin/partners/{partner_id}/retention"
_QUOTAS: Final = "/admin/partners/{partner_id}/quotas"


async def show_profile(
    tools: PageTools, page_request: PageRequest, *, typed: Mapping[str, str] = {}, wrong: Mapping[str, str] = {}
) -> Response:
    """Return the details of the account, with rejected periods or quotas as typed where given."""
    partner, session = page_request.partner, page_request.session
    call = tools.services.apis.admin.call
    periods = await call(f"GET {_RETENTION}", partner_id=partner.id)
    quotas = await call(f"GET {_QUOTAS}", partner_id=partner.id)
    return await tools.page(
        page_request, "settings/profile.html", 400 if wrong else 200,
        partner=partner, flags=ACCOUNT_FLAGS, sessions=await tools.services.sessions.list_sessions(partner.id),
        own_hash=hash_secret(session.token) if session else "",
        is_demo=tools.services.demo_partner_id == partner.id,
        periods=[(name, label, text, periods[name]) for name, label, text in PERIODS],
        quotas=[(name, label, text, quotas[key]) for key, name, label, text in QUOTAS],
        text_at_quota=ERRORS[ErrorCode.TOO_MANY_REQUESTS].text,
        typed=typed, wrong=wrong,
    )  # fmt: skip


async def end_other_sessions(tools: PageTools, page_request: PageRequest) -> Response:
    """End all other console sessions of the partner."""
    token = page_request.session.token if page_request.session else ""
    ended = await tools.services.sessions.end_all(page_request.partner.id, except_token=token)
    return tools.redirect("/settings", ended_sessions_notice(ended))


def ended_sessions_notice(ended: int) -> str:
    """Return a notice with the number of other sessions that ended."""
    if not ended:
        return "There were no other sessions."
    return f"{ended} other {'session' if ended == 1 else 'sessions'} ended."


async def change_retention(tools: PageTools, page_request: PageRequest) -> Response:
    """Set the partner's own periods; an empty field is the service's setting."""
    periods = await tools.services.apis.admin.call(f"GET {_RETENTION}", partner_id=page_request.partner.id)
    ranges = {name: (1, period["service_days"]) for name, period in periods.items()}
    rejected = await _put_numbers(tools, page_request, _RETENTION, " of days", ranges)
    hint = "The next hourly run applies them."
    return rejected or tools.redirect("/settings", "Retention periods changed.", hint=hint)


async def change_quotas(tools: PageTools, page_request: PageRequest) -> Response:
    """Set the partner's own quotas; an empty field is the service's setting."""
    ranges = {field: (0, MAX_QUOTA) for _, field, _, _ in QUOTAS}
    rejected = await _put_numbers(tools, page_request, _QUOTAS, "", ranges)
    return rejected or tools.redirect("/settings", "Quotas changed.", hint="They apply at once.")


async def _put_numbers(
    tools: PageTools, page_request: PageRequest, path: str, unit: str, ranges: Mapping[str, tuple[int, int]]
) -> Response | None:
    """Send the numbers of a form to the admin API, empty fields as null; return the page if a number is invalid.

    Args:
        ranges: minimum and maximum by field.
    """
    typed = {name: (await page_request.field(name)).strip() for name in ranges}
    wrong = {
        name: f"Enter a number{unit} from {minimum} to {maximum}, or nothing."
        for name, (minimum, maximum) in ranges.items()
        if typed[name] and not is_number_up_to(maximum, typed[name], minimum=minimum)
    }
    if wrong:
        return await show_profile(tools, page_request, typed=typed, wrong=wrong)
    numbers = {name: int(text) if text else None for name, text in typed.items()}
    await tools.services.apis.admin.call(f"PUT {path}", partner_id=page_request.partner.id, **numbers)
    return None
