"""Rows of the API reference's credentials in the console's route table."""

from typing import Final

from waypost.console.reference import credentials
from waypost.console.route import PageRoute, RouteKind

REFERENCE: Final = (
    # kind, path, endpoint, description
    PageRoute(RouteKind.PART, "/try/session", credentials.show_session, "show the session to the API reference"),
    PageRoute(
        RouteKind.ACT,
        path="/try/partner-token",
        endpoint=credentials.give_partner_token,
        does="give the API reference a partner token",
        is_audited=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/try-token",
        endpoint=credentials.give_app_token,
        does="give the API reference an app token",
        is_audited=True,
    ),
)
