"""Routes of the page of partners."""

from typing import Final

from waypost.console.partners import page
from waypost.console.route import PageRoute, RouteKind

PARTNERS: Final = (
    # kind, path, endpoint, what it does
    PageRoute(
        RouteKind.PAGE,
        path="/partners",
        endpoint=page.show_partners,
        does="the partners, and a form to create one",
        is_shared=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/partners",
        endpoint=page.make_partner,
        does="create a partner with app, number, accounts and key",
        is_shared=True,
        is_audited=True,
    ),
    PageRoute(
        RouteKind.ACT,
        path="/partners/{partner_id}/enter",
        endpoint=page.enter_partner,
        does="continue as another partner of a demonstration",
        is_shared=True,
        is_audited=True,
    ),
)
