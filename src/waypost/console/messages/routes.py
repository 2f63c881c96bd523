"""The rows of the messages pages in the route table."""

from typing import Final

from waypost.console.messages import export, listing, received, resend, trace
from waypost.console.route import Kind, PageRow

_ONE: Final = "/apps/{app_id}/messages/{message_id}"

# fmt: off
MESSAGES: Final = (
    #       kind       path                                           endpoint               what it does
    PageRow(Kind.PAGE, "/apps/{app_id}/messages",                     listing.show_list,     "what an app has sent, filtered"),
    PageRow(Kind.LIVE, "/apps/{app_id}/messages/live",                listing.live_list,     "and what comes in"),
    PageRow(Kind.PART, "/apps/{app_id}/messages/more",                listing.show_more,     "older ones"),
    PageRow(Kind.PART, "/apps/{app_id}/messages/export",              export.export_list,    "the same as CSV"),
    PageRow(Kind.PAGE, "/apps/{app_id}/messages/received",            received.show_received, "what it has been written"),
    PageRow(Kind.LIVE, "/apps/{app_id}/messages/received/live",       received.live_received, "and what comes in"),
    PageRow(Kind.PART, "/apps/{app_id}/messages/received/more",       received.show_more_received, "older ones"),
    PageRow(Kind.ACT,  "/apps/{app_id}/messages/received/reveal",     received.reveal_received, "one with its text"),
    PageRow(Kind.LIVE, f"{_ONE}/live",                                trace.live_way,          "one message's way as it goes on"),
    PageRow(Kind.ACT,  f"{_ONE}/words",                               trace.show_words,        "what it says, and its request as code"),
    PageRow(Kind.ACT,  f"{_ONE}/again",                               resend.send_again,      "send the same as a new message"),
    PageRow(Kind.PAGE, "/apps/{app_id}/messages/{message_id:path}",   trace.show_way,          "one message's whole way"),
)
# fmt: on
