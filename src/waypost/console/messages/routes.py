"""Rows of the messages pages in the console's route table."""

from typing import Final

from waypost.console.messages import listing, received, resend, trace
from waypost.console.route import PageRoute, RouteKind

_MESSAGE: Final = "/apps/{app_id}/messages/{message_id}"

MESSAGES: Final = (
    # kind, path, endpoint, description
    *listing.MESSAGES.routes,
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/messages/selected/replay",
        endpoint=listing.replay_selected,
        does="replay their callbacks",
    ),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/messages/selected/show", listing.show_selected, "show their texts"),
    *received.RECEIVED.routes,
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/messages/received/reveal",
        endpoint=received.reveal_received,
        does="show the text of one",
    ),
    PageRoute(RouteKind.LIVE, f"{_MESSAGE}/live", trace.live_trace, "stream a message's trace"),
    PageRoute(RouteKind.PART, f"{_MESSAGE}/json", trace.show_json, "the trace as JSON"),
    PageRoute(RouteKind.ACT, f"{_MESSAGE}/content", trace.show_content, "show its content and its request as code"),
    PageRoute(RouteKind.ACT, f"{_MESSAGE}/resend", resend.resend_message, "resend it as a new message"),
    PageRoute(RouteKind.PAGE, "/apps/{app_id}/messages/{message_id:path}", trace.show_trace, "show a message's trace"),
)
