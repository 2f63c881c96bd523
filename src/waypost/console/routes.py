"""The console's route table. The rows of each page are in that page's package."""

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
    #       kind       path              endpoint                description
    PageRow(Kind.PAGE, "/sign-in",       sign_in.show_sign_in,   "show the sign-in form", Who.ANYBODY),
    PageRow(Kind.ACT,  "/sign-in",       sign_in.sign_in,        "start a session", Who.ANYBODY),
    PageRow(Kind.ACT,  "/enter",         sign_in.enter,          "start a demo session", Who.ANYBODY),
    PageRow(Kind.ACT,  "/sign-out",      sign_in.sign_out,       "end the session"),
    PageRow(Kind.ACT,  "/theme",         sign_in.choose_theme,   "choose a theme", Who.ANYBODY),
    PageRow(Kind.PAGE, "/",              home.show_home,         "redirect to an app's overview"),
    PageRow(Kind.PART, "/commands",      command_palette.list_commands, "list commands for the palette"),
)
LOST: Final = tuple(  # last: an error page for unknown paths below these
    PageRow(Kind.PAGE, f"/{place}/{{rest:path}}", home.show_nothing, "report an unknown path")
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
