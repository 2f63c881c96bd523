"""The console's route table. Each page's rows stand in the package of that page."""

from typing import Final

from waypost.console import command_palette, home, sign_in
from waypost.console.callbacks.routes import CALLBACKS
from waypost.console.messages.routes import MESSAGES
from waypost.console.overview.routes import OVERVIEW
from waypost.console.phones.routes import PHONES
from waypost.console.route import Kind, PageRow, Who
from waypost.console.settings.routes import SETTINGS
from waypost.console.simulator.routes import SIMULATOR
from waypost.console.templates.routes import TEMPLATES

# fmt: off
OWN: Final = (  # Source: decision 0057
    #       kind       path              endpoint                what it does
    PageRow(Kind.PAGE, "/sign-in",       sign_in.show_sign_in,   "ask who it is", Who.ANYBODY),
    PageRow(Kind.ACT,  "/sign-in",       sign_in.sign_in,        "begin a session", Who.ANYBODY),
    PageRow(Kind.ACT,  "/enter",         sign_in.enter,          "begin one at a demonstration", Who.ANYBODY),
    PageRow(Kind.ACT,  "/sign-out",      sign_in.sign_out,       "end the session"),
    PageRow(Kind.ACT,  "/theme",         sign_in.choose_theme,   "light or dark", Who.ANYBODY),
    PageRow(Kind.PAGE, "/",              home.show_home,         "lead to the overview of an app"),
    PageRow(Kind.PART, "/commands",      command_palette.list_commands, "what the command palette offers"),
)
LOST: Final = tuple(  # last: below the pages' places people are told, on a page, that there is nothing
    PageRow(Kind.PAGE, f"/{place}/{{rest:path}}", home.show_nothing, "say that there is nothing")
    for place in ("apps", "phones", "simulator", "settings")
)
# fmt: on

PAGES: Final[tuple[PageRow, ...]] = (
    *OWN,
    *OVERVIEW,
    *CALLBACKS,
    *MESSAGES,
    *PHONES,
    *SETTINGS,
    *SIMULATOR,
    *TEMPLATES,
    *LOST,
)
