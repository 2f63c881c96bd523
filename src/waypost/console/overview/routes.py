"""The overview's rows of the route table."""

from typing import Final

from waypost.console.overview import beginning, show
from waypost.console.rows import Kind, PageRow

# fmt: off
OVERVIEW: Final = (
    #       kind       path                                        endpoint               what it does
    PageRow(Kind.PAGE, "/apps/{app_id}",                           show.show_overview,    "what is happening now"),
    PageRow(Kind.LIVE, "/apps/{app_id}/live",                      show.live_overview,    "and what changes of it"),
    PageRow(Kind.ACT,  "/apps/{app_id}/first-message",             beginning.send_first,  "send a template to a phone"),
    PageRow(Kind.ACT,  "/apps/{app_id}/entries/{position}/again",  show.try_again,        "work what was set aside", is_audited=True),
)
# fmt: on
