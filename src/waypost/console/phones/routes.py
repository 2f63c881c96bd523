"""The rows of the phones' page in the route table."""

from typing import Final

from waypost.console.phones import actions, flows, media, page, sending
from waypost.console.phones.actions import CHAT, ITEM
from waypost.console.route import Kind, PageRow

# fmt: off
PHONES: Final = (
    #       kind       path                        endpoint                  what it does
    PageRow(Kind.PAGE, "/phones",                  page.show_phones,         "phones side by side, or which there are"),
    PageRow(Kind.LIVE, "/phones/live",             page.live_phones,         "what changes of them"),
    PageRow(Kind.PART, "/phones/media/{media_id}", media.show_media,         "the bytes of a file"),
    PageRow(Kind.PART, "/phones/flows/{flow_id}",  flows.show_flow,          "the fields of a form"),
    PageRow(Kind.PART, "/phones/{phone}/handset",  page.show_handset,        "one phone, with another chat open"),
    PageRow(Kind.PART, f"{CHAT}/older",            page.show_older,          "messages before those shown"),
    PageRow(Kind.ACT,  f"{CHAT}/text",             sending.send_text,        "send a text"),
    PageRow(Kind.ACT,  f"{CHAT}/file",             sending.send_file,        "send a file"),
    PageRow(Kind.ACT,  f"{CHAT}/place",            sending.send_place,       "send a place"),
    PageRow(Kind.ACT,  f"{CHAT}/contact",          sending.send_contact,     "send a contact card"),
    PageRow(Kind.ACT,  f"{CHAT}/poll",             sending.send_unsupported, "send what the operator does not pass on"),
    PageRow(Kind.ACT,  f"{ITEM}/contact",          actions.share_contact,    "answer one for contact data"),
    PageRow(Kind.ACT,  f"{ITEM}/react",            actions.react,            "react to a message"),
    PageRow(Kind.ACT,  "/phones/{phone}/number",   actions.move,             "take another number"),
    *(one.page_row for one in actions.ACTIONS),
)
# fmt: on
