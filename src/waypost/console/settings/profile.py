"""The profile page: details of the account and its console sessions."""

from typing import Final

from starlette.responses import Response

from waypost.base.encryption import hash_of
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.partner import Partner

# fmt: off
FLAGS: Final = (  # Source: spec, "Partner account (login response)"; none changes what we do
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


async def show_profile(desk: PageTools, visit: PageRequest) -> Response:
    """Return the details of the account; only the administrator can change them."""
    partner, session = visit.partner, visit.session
    own = hash_of(session.token) if session else ""
    sessions = [
        (each.began_ms, each.expires_on_ms, each.hash == own) for each in await desk.parts.sessions.of(partner.id)
    ]
    return await desk.page(
        visit, "settings/profile.html",
        partner=partner, flags=_flags(partner), sessions=sessions,
        is_demo=desk.parts.demo_partner_id == partner.id,
    )  # fmt: skip


async def end_others(desk: PageTools, visit: PageRequest) -> Response:
    """End all other console sessions of the partner."""
    token = visit.session.token if visit.session else ""
    ended = await desk.parts.sessions.end_all_of(visit.partner.id, but=token)
    return desk.go("/settings", said_of_sessions(ended))


def said_of_sessions(ended: int) -> str:
    """Return a notice with the number of other sessions that ended."""
    if not ended:
        return "There were no other sessions."
    return f"{ended} other {'session' if ended == 1 else 'sessions'} ended."


def _flags(partner: Partner) -> list[tuple[str, bool]]:
    return [(label, bool(getattr(partner, name))) for name, label in FLAGS]
