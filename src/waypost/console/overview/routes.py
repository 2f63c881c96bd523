"""Rows of the overview in the console's route table."""

from typing import Final

from waypost.console.overview import first_steps, page
from waypost.console.route import PageRoute, RouteKind

# fmt: off
OVERVIEW: Final = (
    #       kind       path                                        endpoint               description
    PageRoute(RouteKind.PAGE, "/apps/{app_id}",                               page.show_overview,             "show an app's overview"),
    PageRoute(RouteKind.LIVE, "/apps/{app_id}/live",                          page.live_overview,             "stream its changes"),
    PageRoute(RouteKind.ACT,  "/apps/{app_id}/first-message",                 first_steps.send_first_message, "send a template to a phone"),
    PageRoute(RouteKind.ACT,  "/apps/{app_id}/sample-template",               first_steps.create_sample_template, "submit a sample template"),
    PageRoute(RouteKind.ACT,  "/apps/{app_id}/dead-letters/{position}/retry", page.retry_dead_letter,         "retry a dead letter", is_audited=True),
)
# fmt: on
