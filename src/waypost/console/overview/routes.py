"""Rows of the overview in the console's route table."""

from typing import Final

from waypost.console.overview import first_steps, page
from waypost.console.route import PageRoute, RouteKind

OVERVIEW: Final = (
    # kind, path, endpoint, description
    PageRoute(RouteKind.PAGE, "/apps/{app_id}", page.show_overview, "show an app's overview"),
    PageRoute(RouteKind.LIVE, "/apps/{app_id}/live", page.live_overview, "stream its changes"),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/first-message",
        endpoint=first_steps.send_first_message,
        does="send a template to a phone",
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/sample-template",
        endpoint=first_steps.create_sample_template,
        does="submit a sample template",
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/dead-letters/{position}/retry",
        endpoint=page.retry_dead_letter,
        does="retry a dead letter",
        is_audited=True,
    ),
)
