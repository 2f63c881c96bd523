"""The rows of the phones' page in the route table."""

from typing import Final

from waypost.console.phones import answering, flows, habits, media, show, writing
from waypost.console.rows import Kind, PageRow

_CHAT: Final = "/phones/{phone}/chats/{number}"
_ITEM: Final = "/phones/{phone}/items/{position}"

# fmt: off
PHONES: Final = (
    #       kind       path                         endpoint                  what it does
    PageRow(Kind.PAGE, "/phones",                   show.show_phones,         "phones side by side, or which there are"),
    PageRow(Kind.LIVE, "/phones/live",              show.live_phones,         "what changes of them"),
    PageRow(Kind.PART, "/phones/media/{media_id}",  media.show_media,         "the bytes of a file"),
    PageRow(Kind.PART, "/phones/flows/{flow_id}",   flows.show_flow,          "the fields of a form"),
    PageRow(Kind.PART, "/phones/{phone}/handset",   show.show_handset,        "one phone, with another chat open"),
    PageRow(Kind.PART, f"{_CHAT}/older",            show.show_older,          "messages before those shown"),
    PageRow(Kind.ACT,  f"{_CHAT}/text",             writing.send_text,        "send a text"),
    PageRow(Kind.ACT,  f"{_CHAT}/file",             writing.send_file,        "send a file"),
    PageRow(Kind.ACT,  f"{_CHAT}/place",            writing.send_place,       "send a place"),
    PageRow(Kind.ACT,  f"{_CHAT}/contact",          writing.send_contact,     "send a contact card"),
    PageRow(Kind.ACT,  f"{_CHAT}/poll",             writing.send_unsupported, "send what the operator does not pass on"),
    PageRow(Kind.ACT,  f"{_CHAT}/block",            habits.block,             "block the business, or not any more"),
    PageRow(Kind.ACT,  f"{_CHAT}/report",           habits.report_chat,       "report the business"),
    PageRow(Kind.ACT,  f"{_CHAT}/marketing",        habits.want_marketing,    "stop marketing, or take it again"),
    PageRow(Kind.ACT,  f"{_ITEM}/tap",              answering.tap,            "tap a button"),
    PageRow(Kind.ACT,  f"{_ITEM}/answer",           answering.answer,         "send a form back"),
    PageRow(Kind.ACT,  f"{_ITEM}/order",            answering.order,          "send a basket"),
    PageRow(Kind.ACT,  f"{_ITEM}/pay",              answering.pay,            "pay an order, or fail to"),
    PageRow(Kind.ACT,  f"{_ITEM}/location",         answering.share_place,    "answer a request for a place"),
    PageRow(Kind.ACT,  f"{_ITEM}/contact",          answering.share_contact,  "answer one for contact data"),
    PageRow(Kind.ACT,  f"{_ITEM}/react",            answering.react,          "react to a message"),
    PageRow(Kind.ACT,  f"{_ITEM}/read",             habits.read,              "read the chat of a message"),
    PageRow(Kind.ACT,  "/phones/{phone}/offline",   habits.go_offline,        "switch the phone off or on"),
    PageRow(Kind.ACT,  "/phones/{phone}/owner",     habits.change_owner,      "name, user name, user id"),
    PageRow(Kind.ACT,  "/phones/{phone}/habits",    habits.change_habits,     "how it gets and reads messages"),
    PageRow(Kind.ACT,  "/phones/{phone}/script",    habits.follow_script,     "what it does by itself"),
    PageRow(Kind.ACT,  "/phones/{phone}/number",    habits.move,              "take another number"),
)
# fmt: on
