"""The account as it is kept, and who is signed in to it."""

from typing import Final

from starlette.responses import Response

from waypost.base.encryption import hash_of
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.partner import Partner

# fmt: off
FLAGS: Final = (  # Source: spec, "Partner account (login response)"; none changes what we do
    ("admin",                 "Administers the account"),
    ("terms_read",            "Has read the terms"),
    ("activation_read",       "Has read of the activation"),
    ("enable_customer",       "Customers are enabled"),
    ("enable_wallet",         "The wallet is enabled"),
    ("enable_inr_wallet",     "The wallet in rupees is enabled"),
    ("enable_loader_wallet",  "The loader's wallet is enabled"),
    ("enable_app_onboarding", "Onboarding of apps is enabled"),
    ("is_tpp",                "Is a third-party provider"),
    ("onboard_enabled",       "Onboarding is enabled"),
)
# fmt: on


async def show_profile(desk: PageTools, visit: PageRequest) -> Response:
    """What the account shows; the administrator keeps it."""
    partner, session = visit.partner, visit.session
    own = hash_of(session.token) if session else ""
    sessions = [(row.began_ms, row.expires_on_ms, row.hash == own) for row in await desk.parts.sessions.of(partner.id)]
    return await desk.page(
        visit, "settings/profile.html",
        partner=partner, flags=_flags(partner), sessions=sessions,
        is_demo=desk.parts.demo_partner_id == partner.id,
    )  # fmt: skip


async def end_others(desk: PageTools, visit: PageRequest) -> Response:
    """Sign the partner out everywhere but here."""
    token = visit.session.token if visit.session else ""
    ended = await desk.parts.sessions.end_all_of(visit.partner.id, but=token)
    return desk.go("/settings", said_of_sessions(ended))


def said_of_sessions(ended: int) -> str:
    """How many other sessions have ended."""
    if not ended:
        return "Nobody else was signed in."
    return f"{ended} other {'session has' if ended == 1 else 'sessions have'} ended."


def _flags(partner: Partner) -> list[tuple[str, bool]]:
    return [(says, bool(getattr(partner, name))) for name, says in FLAGS]
