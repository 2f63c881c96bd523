"""The console's route table. The rows of each page are in that page's package."""

from typing import Final

from waypost.console import home, sign_in
from waypost.console.callbacks.routes import CALLBACKS
from waypost.console.conversations.routes import CONVERSATIONS
from waypost.console.messages.routes import MESSAGES
from waypost.console.overview.routes import OVERVIEW
from waypost.console.palette import commands, search
from waypost.console.partners.routes import PARTNERS
from waypost.console.phones.routes import PHONES
from waypost.console.reference.routes import REFERENCE
from waypost.console.requests import REQUESTS, show_request
from waypost.console.route import Audience, PageRoute, RouteKind
from waypost.console.settings.routes import SETTINGS
from waypost.console.simulator.routes import SIMULATOR
from waypost.console.templates.routes import TEMPLATES

# fmt: off
BASE_ROUTES: Final = (  # Source: decision 0057
    #       kind       path              endpoint                description
    PageRoute(RouteKind.PAGE, "/sign-in",  sign_in.show_sign_in,          "show the sign-in form", Audience.PUBLIC),
    PageRoute(RouteKind.ACT,  "/sign-in",  sign_in.sign_in,               "start a session", Audience.PUBLIC),
    PageRoute(RouteKind.ACT,  "/enter",    sign_in.enter,                 "start a demo session", Audience.PUBLIC),
    PageRoute(RouteKind.ACT,  "/sign-out", sign_in.sign_out,              "end the session"),
    PageRoute(RouteKind.ACT,  "/theme",    sign_in.choose_theme,          "choose a theme", Audience.PUBLIC),
    PageRoute(RouteKind.ACT,  "/times",    sign_in.choose_times,          "choose the zone of times"),
    PageRoute(RouteKind.PAGE, "/",         home.show_home,                "redirect to an app's overview"),
    PageRoute(RouteKind.PART, "/commands", commands.list_commands, "list commands for the palette"),
    PageRoute(RouteKind.PART, "/commands/search", search.search_commands, "find people and messages for it"),
)
NOT_FOUND_ROUTES: Final = tuple(  # last: an error page for unknown paths below these
    PageRoute(RouteKind.PAGE, f"/{place}/{{rest:path}}", home.report_unknown_path, "report an unknown path")
    for place in ("apps", "partners", "phones", "requests", "simulator", "settings")
)
ELSEWHERE: Final = PageRoute(  # very last, and for browsers only: an error page for any other path
    RouteKind.PAGE, "/{rest:path}", home.report_unknown_path, "report an unknown path to a browser", Audience.PUBLIC
)
# fmt: on

PAGES: Final[tuple[PageRoute, ...]] = (
    *BASE_ROUTES,
    *OVERVIEW,
    *CALLBACKS,
    *CONVERSATIONS,
    *MESSAGES,
    *PARTNERS,
    *PHONES,
    *REFERENCE,
    *REQUESTS.routes,
    PageRoute(RouteKind.PAGE, "/requests/{entry_id}", show_request, "show one request and why it failed"),
    *SETTINGS,
    *SIMULATOR,
    *TEMPLATES,
    *NOT_FOUND_ROUTES,
)
