"""Rows of the messages pages in the console's route table."""

from typing import Final

from waypost.console.messages import export, listing, received, resend, selected, trace
from waypost.console.route import PageRoute, RouteKind

_MESSAGE: Final = "/apps/{app_id}/messages/{message_id}"

MESSAGES: Final = (
    # kind, path, endpoint, description
    PageRoute(RouteKind.PAGE, "/apps/{app_id}/messages", listing.show_list, "list sent messages"),
    PageRoute(RouteKind.LIVE, "/apps/{app_id}/messages/live", listing.live_list, "stream new ones"),
    PageRoute(RouteKind.PART, "/apps/{app_id}/messages/more", listing.show_more, "load older ones"),
    PageRoute(RouteKind.PART, "/apps/{app_id}/messages/export", export.export_list, "export the list as CSV"),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/messages/selected/export",
        endpoint=export.export_selected,
        does="export the selected ones as CSV",
    ),
    PageRoute(
        RouteKind.ACT,
        path="/apps/{app_id}/messages/selected/replay",
        endpoint=selected.replay_selected,
        does="replay their callbacks",
    ),
    PageRoute(RouteKind.ACT, "/apps/{app_id}/messages/selected/show", selected.show_selected, "show their texts"),
    PageRoute(RouteKind.PAGE, "/apps/{app_id}/messages/received", received.show_received, "list received messages"),
    PageRoute(RouteKind.LIVE, "/apps/{app_id}/messages/received/live", received.live_received, "stream new ones"),
    PageRoute(RouteKind.PART, "/apps/{app_id}/messages/received/more", received.show_more_received, "load older ones"),
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
