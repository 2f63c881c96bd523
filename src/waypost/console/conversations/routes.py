"""Rows of the conversations pages in the console's route table."""

from typing import Final

from waypost.console.conversations import listing, thread
from waypost.console.conversations import thread as actions
from waypost.console.route import PageRoute, RouteKind

_ONE: Final = "/apps/{app_id}/conversations/{recipient_id}"

CONVERSATIONS: Final = (
    # kind, path, endpoint, description
    *listing.CONVERSATIONS.routes,
    PageRoute(RouteKind.PAGE, _ONE, thread.show_thread, "show one conversation"),
    PageRoute(RouteKind.LIVE, f"{_ONE}/live", thread.live_thread, "stream its messages"),
    PageRoute(RouteKind.ACT, f"{_ONE}/reveal", thread.reveal_message, "show the text of one message"),
    PageRoute(RouteKind.ACT, f"{_ONE}/reply", actions.send_reply, "send a text within the window"),
    PageRoute(RouteKind.ACT, f"{_ONE}/read", actions.mark_read, "mark what was received as read"),
)
