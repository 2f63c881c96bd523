"""The profile page: details of the account, its limits, and its console sessions."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ErrorCode
from waypost.domain.partner import Partner
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


async def show_profile(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the details of the account; only the administrator can change them."""
    return await profile_page(tools, page_request)


async def profile_page(
    tools: PageTools, page_request: PageRequest, *, typed: Mapping[str, str] = {}, wrong: Mapping[str, str] = {}
) -> Response:
    """Return the page, with rejected periods or quotas as they were typed where given."""
    partner, session = page_request.partner, page_request.session
    own = hash_secret(session.token) if session else ""
    sessions = [
        (each.created_on_ms, each.expires_on_ms, each.hash == own)
        for each in await tools.services.sessions.list_sessions(partner.id)
    ]
    periods = await tools.services.apis.admin.json("GET", f"/admin/partners/{partner.id}/retention")
    quotas = await tools.services.apis.admin.json("GET", f"/admin/partners/{partner.id}/quotas")
    return await tools.page(
        page_request, "settings/profile.html", 400 if wrong else 200,
        partner=partner, flags=_flags(partner), sessions=sessions,
        is_demo=tools.services.demo_partner_id == partner.id,
        periods=[(name, label, text, periods[name]) for name, label, text in PERIODS],
        quotas=[(name, label, text, quotas[key]) for key, name, label, text in QUOTAS],
        text_at_quota=ERRORS[ErrorCode.TOO_MANY_REQUESTS].text,
        is_administrator=tools.is_administrator(page_request), typed=typed, wrong=wrong,
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


def _flags(partner: Partner) -> list[tuple[str, bool]]:
    return [(label, bool(getattr(partner, name))) for name, label in ACCOUNT_FLAGS]
