"""Rows of the overview in the console's route table."""

from typing import Final

from waypost.console.overview import first_steps, page
from waypost.console.route import Kind, PageRow

# fmt: off
OVERVIEW: Final = (
    #       kind       path                                        endpoint               description
    PageRow(Kind.PAGE, "/apps/{app_id}",                           page.show_overview,    "show an app's overview"),
    PageRow(Kind.LIVE, "/apps/{app_id}/live",                      page.live_overview,    "stream its changes"),
    PageRow(Kind.ACT,  "/apps/{app_id}/first-message",             first_steps.send_first,  "send a template to a phone"),
    PageRow(Kind.ACT,  "/apps/{app_id}/dead-letters/{position}/retry", page.try_again,    "retry a dead letter", is_audited=True),
)
# fmt: on
