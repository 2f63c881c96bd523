"""Routes of the page of partners."""

from typing import Final

from waypost.console.partners import page
from waypost.console.route import PageRoute, RouteKind

# fmt: off
PARTNERS: Final = (
    #         kind            path                             endpoint             what it does
    PageRoute(RouteKind.PAGE, "/partners",                     page.show_partners,  "the partners, and a form to create one", is_shared=True),
    PageRoute(RouteKind.ACT,  "/partners",                     page.make_partner,   "create a partner with app, number, accounts and key", is_shared=True, is_audited=True),
    PageRoute(RouteKind.ACT,  "/partners/{partner_id}/enter",  page.enter_partner,  "continue as another partner of a demonstration", is_shared=True, is_audited=True),
)
# fmt: on
