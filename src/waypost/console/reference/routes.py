"""Rows of the API reference's credentials in the console's route table."""

from typing import Final

from waypost.console.reference import credentials
from waypost.console.route import PageRoute, RouteKind

# fmt: off
REFERENCE: Final = (
    #       kind       path                        endpoint                        description
    PageRoute(RouteKind.PART, "/try/session",             credentials.show_session,       "show the session to the API reference"),
    PageRoute(RouteKind.ACT,  "/try/partner-token",       credentials.give_partner_token, "give the API reference a partner token", is_audited=True),
    PageRoute(RouteKind.ACT,  "/apps/{app_id}/try-token", credentials.give_app_token,     "give the API reference an app token", is_audited=True),
)
# fmt: on
