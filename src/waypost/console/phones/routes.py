"""Routes of the phones page."""

from typing import Final

from waypost.console.phones import actions, flows, media, page, sending
from waypost.console.phones.actions import CHAT, ITEM
from waypost.console.route import Kind, PageRow

# fmt: off
PHONES: Final = (
    #       kind       path                        endpoint                  what it does
    PageRow(Kind.PAGE, "/phones",                  page.show_phones,         "phones side by side, or the list of phones"),
    PageRow(Kind.LIVE, "/phones/live",             page.live_phones,         "updates of them"),
    PageRow(Kind.PART, "/phones/media/{media_id}", media.show_media,         "a media file"),
    PageRow(Kind.PART, "/phones/flows/{flow_id}",  flows.show_flow,          "the form of a flow"),
    PageRow(Kind.PART, "/phones/{phone}/handset",  page.show_handset,        "one phone with another chat open"),
    PageRow(Kind.PART, f"{CHAT}/older",            page.show_older,          "older messages of a chat"),
    PageRow(Kind.ACT,  f"{CHAT}/text",             sending.send_text,        "send a text"),
    PageRow(Kind.ACT,  f"{CHAT}/file",             sending.send_file,        "send a file"),
    PageRow(Kind.ACT,  f"{CHAT}/location",         sending.send_place,       "send a location"),
    PageRow(Kind.ACT,  f"{CHAT}/contact",          sending.send_contact,     "send a contact card"),
    PageRow(Kind.ACT,  f"{CHAT}/poll",             sending.send_unsupported, "send a type that the operator does not forward"),
    PageRow(Kind.ACT,  f"{ITEM}/contact",          actions.share_contact,    "respond to a request for contact data"),
    PageRow(Kind.ACT,  f"{ITEM}/react",            actions.react,            "react to a message"),
    PageRow(Kind.ACT,  "/phones/{phone}/number",   actions.move,             "change the number"),
    *(one.page_row for one in actions.ACTIONS),
)
# fmt: on
