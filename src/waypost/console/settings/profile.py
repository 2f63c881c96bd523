"""The profile page: details of the account and its console sessions."""

from typing import Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.partner import Partner

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
# fmt: on


async def show_profile(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the details of the account; only the administrator can change them."""
    partner, session = page_request.partner, page_request.session
    own = hash_secret(session.token) if session else ""
    sessions = [
        (each.created_on_ms, each.expires_on_ms, each.hash == own)
        for each in await tools.services.sessions.list_sessions(partner.id)
    ]
    return await tools.page(
        page_request, "settings/profile.html",
        partner=partner, flags=_flags(partner), sessions=sessions,
        is_demo=tools.services.demo_partner_id == partner.id,
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
