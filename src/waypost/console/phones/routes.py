"""Routes of the phones page."""

from typing import Final

from waypost.console.phones import actions, page, script, sending
from waypost.console.phones import page as flows
from waypost.console.phones import page as media
from waypost.console.phones.actions import CHAT_PATH, ITEM_PATH
from waypost.console.phones.sending import require_own_phone
from waypost.console.route import PageRoute, RouteKind

PHONES: Final = (
    # kind, path, endpoint, what it does
    PageRoute(RouteKind.PAGE, "/phones", page.show_phones, "phones side by side, or the list of phones"),
    PageRoute(RouteKind.LIVE, "/phones/live", page.live_phones, "updates of them"),
    PageRoute(RouteKind.PART, "/phones/media/{media_id}", media.show_media, "a media file"),
    PageRoute(RouteKind.PART, "/phones/flows/{flow_id}", flows.show_flow, "the form of a flow"),
    PageRoute(RouteKind.PART, "/phones/{phone}/handset", page.show_handset, "one phone with another chat open"),
    PageRoute(RouteKind.PART, f"{CHAT_PATH}/older", page.show_older, "older messages of a chat"),
    PageRoute(
        RouteKind.PAGE,
        path="/phones/{phone}/script",
        endpoint=require_own_phone(script.show_script),
        does="the form of its script",
    ),
    PageRoute(
        RouteKind.ACT,
        path="/phones/{phone}/script",
        endpoint=require_own_phone(script.save_script),
        does="save it, or change the rows of the form",
    ),
    PageRoute(RouteKind.ACT, f"{CHAT_PATH}/text", require_own_phone(sending.send_text), "send a text"),
    PageRoute(RouteKind.ACT, f"{CHAT_PATH}/file", require_own_phone(sending.send_file), "send a file"),
    PageRoute(RouteKind.ACT, f"{CHAT_PATH}/location", require_own_phone(sending.send_location), "send a location"),
    PageRoute(RouteKind.ACT, f"{CHAT_PATH}/contact", require_own_phone(sending.send_contact), "send a contact card"),
    PageRoute(
        RouteKind.ACT,
        path=f"{CHAT_PATH}/poll",
        endpoint=require_own_phone(sending.send_unsupported),
        does="send a type that the operator does not forward",
    ),
    PageRoute(
        RouteKind.ACT,
        path=f"{ITEM_PATH}/contact",
        endpoint=require_own_phone(actions.share_contact),
        does="respond to a request for contact data",
    ),
    PageRoute(RouteKind.ACT, f"{ITEM_PATH}/react", require_own_phone(actions.react), "react to a message"),
    PageRoute(RouteKind.ACT, "/phones/{phone}/number", require_own_phone(actions.change_number), "change the number"),
    *(one.page_row for one in actions.PHONE_ACTIONS),
)
