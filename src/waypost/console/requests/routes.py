"""Rows of the request log in the console's route table."""

from typing import Final

from waypost.console.requests import entry, listing
from waypost.console.route import PageRoute, RouteKind

# fmt: off
REQUESTS: Final = (
    #       kind       path                        endpoint           description
    PageRoute(RouteKind.PAGE, "/requests",            listing.show_requests, "list requests, failed ones first of all"),
    PageRoute(RouteKind.PAGE, "/requests/{entry_id}", entry.show_request,    "show one request and why it failed"),
)
# fmt: on
