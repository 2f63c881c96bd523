"""Rows of the messages pages in the console's route table."""

from typing import Final

from waypost.console.messages import export, listing, received, resend, trace
from waypost.console.route import Kind, PageRow

_ONE: Final = "/apps/{app_id}/messages/{message_id}"

# fmt: off
MESSAGES: Final = (
    #       kind       path                                           endpoint               description
    PageRow(Kind.PAGE, "/apps/{app_id}/messages",                     listing.show_list,     "list sent messages"),
    PageRow(Kind.LIVE, "/apps/{app_id}/messages/live",                listing.live_list,     "stream new ones"),
    PageRow(Kind.PART, "/apps/{app_id}/messages/more",                listing.show_more,     "load older ones"),
    PageRow(Kind.PART, "/apps/{app_id}/messages/export",              export.export_list,    "export the list as CSV"),
    PageRow(Kind.PAGE, "/apps/{app_id}/messages/received",            received.show_received, "list received messages"),
    PageRow(Kind.LIVE, "/apps/{app_id}/messages/received/live",       received.live_received, "stream new ones"),
    PageRow(Kind.PART, "/apps/{app_id}/messages/received/more",       received.show_more_received, "load older ones"),
    PageRow(Kind.ACT,  "/apps/{app_id}/messages/received/reveal",     received.reveal_received, "show the text of one"),
    PageRow(Kind.LIVE, f"{_ONE}/live",                                trace.live_way,          "stream a message's trace"),
    PageRow(Kind.ACT,  f"{_ONE}/content",                             trace.show_words,        "show its content and its request as code"),
    PageRow(Kind.ACT,  f"{_ONE}/resend",                              resend.send_again,      "resend it as a new message"),
    PageRow(Kind.PAGE, "/apps/{app_id}/messages/{message_id:path}",   trace.show_way,          "show a message's trace"),
)
# fmt: on
