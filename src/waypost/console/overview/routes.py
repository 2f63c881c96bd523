"""The overview's rows of the route table."""

from typing import Final

from waypost.console.overview import first_steps, page
from waypost.console.route import Kind, PageRow

# fmt: off
OVERVIEW: Final = (
    #       kind       path                                        endpoint               what it does
    PageRow(Kind.PAGE, "/apps/{app_id}",                           page.show_overview,    "what is happening now"),
    PageRow(Kind.LIVE, "/apps/{app_id}/live",                      page.live_overview,    "and what changes of it"),
    PageRow(Kind.ACT,  "/apps/{app_id}/first-message",             first_steps.send_first,  "send a template to a phone"),
    PageRow(Kind.ACT,  "/apps/{app_id}/entries/{position}/again",  page.try_again,        "work what was set aside", is_audited=True),
)
# fmt: on
