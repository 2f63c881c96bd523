"""A sample of each kind of session message: the partner's JSON, the operator's body, and what the phone shows.

Used by the tests of the pipeline, of the operator's bodies, and of send requests.
"""

from typing import Any, Final, NamedTuple

from tests.support.builders import id_number
from waypost.domain.session_messages.choices import choice_reference

MESSAGE_ID: Final = id_number(1)
"""Our id of the message, where the operator's body names it."""
LINK: Final = "https://files.acme.test/one"

JsonObject = dict[str, Any]


class SessionSample(NamedTuple):
    """One sample.

    Attributes:
        sent: the wire's `message`.
        body: the operator's type, and the member of that name.
        shown: what the phone shows; without `buttons` if there are none.
    """

    sent: JsonObject
    body: tuple[str, Any]
    shown: JsonObject


def _text(text: str) -> JsonObject:
    return {"text": text}


def _choice(number: int, title: str) -> JsonObject:
    return {"id": choice_reference(MESSAGE_ID, number), "title": title}


def _quick_reply(kind: str, sent: JsonObject, above: JsonObject, **content: str) -> SessionSample:
    """Return a quick reply with a header of this kind."""
    options = [
        {"type": "text", "title": "Yes", "postbackText": "come"},
        {"type": "text", "title": "No", "postbackText": "stay"},
    ]
    buttons = [{"type": "reply", "reply": _choice(1, "Yes")}, {"type": "reply", "reply": _choice(2, "No")}]
    return SessionSample(
        {"type": "quick_reply", "msgid": "q-1", "options": options,
         "content": {"type": kind, "text": "Shall we come?", "caption": "Acme", **content}},
        ("interactive", {"type": "button", "header": sent, "body": _text("Shall we come?"), "footer": _text("Acme"),
                         "action": {"buttons": buttons}}),
        {"type": "interactive", "header": above, "text": "Shall we come?", "footer": "Acme",
         "buttons": [{"index": 0, "type": "REPLY", "text": "Yes"}, {"index": 1, "type": "REPLY", "text": "No"}]},
    )  # fmt: skip


def _url_button(header: JsonObject, above: JsonObject) -> SessionSample:
    """Return a text with a URL button, and perhaps a header."""
    action = {"name": "cta_url", "parameters": {"display_text": "Open", "url": LINK}}
    return SessionSample(
        {"type": "cta_url", "body": "See the plan.", "display_text": "Open", "url": LINK, "footer": "Acme", **header},
        ("interactive", {"type": "cta_url", **header, "body": _text("See the plan."), "footer": _text("Acme"), "action": action}),
        {"type": "interactive", "text": "See the plan.", "footer": "Acme", **above,
         "buttons": [{"index": 0, "type": "URL", "text": "Open", "url": LINK}]},
    )  # fmt: skip


_ADDRESS: Final = {"city": "Bonn", "country": "Germany", "street": "High Street 1", "type": "WORK", "zip": "53111"}
_REACH: Final = {
    "emails": [{"email": "ben@acme.test", "type": "WORK"}],
    "phones": [{"phone": "+4915112345678", "type": "CELL", "wa_id": "4915112345678"}],
}
_CARD: Final = {
    "name": {"first_name": "Ben", "formatted_name": "Ben Bell", "last_name": "Bell"},
    "addresses": [{**_ADDRESS, "country_code": "de"}],
    **_REACH,
}
_PLACE: Final = {"latitude": 52.52, "name": "Acme", "address": "High Street 1"}
_SECTIONS: Final = [
    {"title": "Shoes", "product_items": [{"product_retailer_id": "shoe-1"}, {"product_retailer_id": "shoe-2"}]}
]

# fmt: off
SESSION_SAMPLES: Final = {  # Source: facts 9.1; operator's facts 4.1
    "text": SessionSample(
        {"type": "text", "text": "See https://acme.test", "previewUrl": True},
        ("text", {"body": "See https://acme.test", "preview_url": True}),
        {"type": "text", "text": "See https://acme.test", "preview_url": True},
    ),
    "image": SessionSample(
        {"type": "image", "originalUrl": LINK, "previewUrl": LINK, "caption": "New"},
        ("image", {"link": LINK, "caption": "New"}),
        {"type": "image", "text": "New", "media": {"kind": "image", "link": LINK, "caption": "New"}},
    ),
    "video": SessionSample(
        {"type": "video", "url": LINK, "caption": "New"},
        ("video", {"link": LINK, "caption": "New"}),
        {"type": "video", "text": "New", "media": {"kind": "video", "link": LINK, "caption": "New"}},
    ),
    "audio": SessionSample(
        {"type": "audio", "url": LINK, "caption": "no audio has one"},
        ("audio", {"link": LINK}),
        {"type": "audio", "text": "", "media": {"kind": "audio", "link": LINK}},
    ),
    "file": SessionSample(
        {"type": "file", "url": LINK, "filename": "bill.pdf", "caption": "Your bill"},
        ("document", {"link": LINK, "filename": "bill.pdf", "caption": "Your bill"}),
        {"type": "document", "text": "Your bill",
         "media": {"kind": "document", "link": LINK, "filename": "bill.pdf", "caption": "Your bill"}},
    ),
    "sticker": SessionSample(
        {"type": "sticker", "url": LINK, "filename": "no sticker has one"},
        ("sticker", {"link": LINK}),
        {"type": "sticker", "text": "", "media": {"kind": "sticker", "link": LINK}},
    ),
    "location": SessionSample(
        {"type": "location", "longitude": "13.405", **_PLACE},
        ("location", {"longitude": 13.405, **_PLACE}),
        {"type": "location", "text": "Acme, High Street 1", "location": {"longitude": 13.405, **_PLACE}},
    ),
    "contact": SessionSample(
        {"type": "contact", "contact": {
            "name": {"firstName": "Ben", "formattedName": "Ben Bell", "lastName": "Bell"},
            "addresses": [{**_ADDRESS, "countryCode": "de"}], **_REACH}},
        ("contacts", [_CARD]),
        {"type": "contacts", "text": "Ben Bell", "contacts": [_CARD]},
    ),
    "list": SessionSample(
        {"type": "list", "title": "Menu", "body": "What would you like?", "footer": "Acme", "msgid": "l-1",
         "globalButtons": [{"type": "text", "title": "Open"}],
         "items": [
             {"title": "Warm", "subtitle": "", "options": [
                 {"type": "text", "title": "Soup", "description": "Hot", "postbackText": "soup"}]},
             {"title": "Cold", "subtitle": "", "options": [
                 {"type": "text", "title": "Ice", "description": "Cold", "postbackText": "ice"}]}]},
        ("interactive", {
            "type": "list", "header": {"type": "text", "text": "Menu"},
            "body": _text("What would you like?"), "footer": _text("Acme"),
            "action": {"button": "Open", "sections": [
                {"title": "Warm", "rows": [{**_choice(1, "Soup"), "description": "Hot"}]},
                {"title": "Cold", "rows": [{**_choice(2, "Ice"), "description": "Cold"}]}]}}),
        {"type": "interactive", "header": {"format": "TEXT", "text": "Menu"},
         "text": "What would you like?", "footer": "Acme", "opens_with": "Open",
         "buttons": [
             {"index": 0, "type": "LIST_ROW", "text": "Soup", "description": "Hot", "section": "Warm"},
             {"index": 1, "type": "LIST_ROW", "text": "Ice", "description": "Cold", "section": "Cold"}]},
    ),
    "quick_reply": _quick_reply(
        "text", {"type": "text", "text": "Order"}, {"format": "TEXT", "text": "Order"}, header="Order"),
    "quick_reply with an image": _quick_reply(
        "image", {"type": "image", "image": {"link": LINK}}, {"format": "IMAGE", "image": {"link": LINK}},
        url=LINK, header="no text stands over a medium"),
    "quick_reply with a video": _quick_reply(
        "video", {"type": "video", "video": {"link": LINK}}, {"format": "VIDEO", "video": {"link": LINK}}, url=LINK),
    "quick_reply with a file": _quick_reply(
        "file", {"type": "document", "document": {"link": LINK, "filename": "bill.pdf"}},
        {"format": "DOCUMENT", "document": {"link": LINK, "filename": "bill.pdf"}}, url=LINK, filename="bill.pdf"),
    "product": SessionSample(
        {"type": "product_details", "subType": "product", "catalogId": "4711", "productId": "shoe-1",
         "header": {"text": "one product has none"}, "body": {"text": "Our best"}, "footer": {"text": "Acme"}},
        ("interactive", {"type": "product", "body": _text("Our best"), "footer": _text("Acme"),
                         "action": {"catalog_id": "4711", "product_retailer_id": "shoe-1"}}),
        {"type": "interactive", "text": "Our best", "footer": "Acme", "buttons": [
            {"index": 0, "type": "PRODUCT", "text": "View", "catalog_id": "4711", "product_retailer_id": "shoe-1"}]},
    ),
    "product_list": SessionSample(
        {"type": "product_details", "sub_type": "product_list", "catalogId": "4711", "header": {"text": "New"},
         "body": {"text": "See what is new"}, "footer": {"text": "Acme"},
         "sections": [{"title": "Shoes", "productList": [{"productId": "shoe-1"}, {"productId": "shoe-2"}]}]},
        ("interactive", {"type": "product_list", "header": {"type": "text", "text": "New"},
                         "body": _text("See what is new"), "footer": _text("Acme"),
                         "action": {"catalog_id": "4711", "sections": _SECTIONS}}),
        {"type": "interactive", "header": {"format": "TEXT", "text": "New"}, "text": "See what is new", "footer": "Acme",
         "buttons": [{"index": 0, "type": "MPM", "text": "View items", "catalog_id": "4711", "sections": _SECTIONS}]},
    ),
    "catalog_message": SessionSample(
        {"type": "product_details", "subType": "catalog_message", "body": {"text": "All we have"},
         "footer": {"text": "Acme"}, "thumbnailId": "shoe-1"},
        ("interactive", {"type": "catalog_message", "body": _text("All we have"), "footer": _text("Acme"), "action": {
            "name": "catalog_message", "parameters": {"thumbnail_product_retailer_id": "shoe-1"}}}),
        {"type": "interactive", "text": "All we have", "footer": "Acme", "buttons": [
            {"index": 0, "type": "CATALOG", "text": "View catalog", "thumbnail_product_retailer_id": "shoe-1"}]},
    ),
    "cta_url": _url_button({}, {}),
    "cta_url with an image": _url_button(
        {"header": {"type": "image", "image": {"link": LINK}}},
        {"header": {"format": "IMAGE", "image": {"link": LINK}}}),
    "cta_url with a video": _url_button(
        {"header": {"type": "video", "video": {"link": LINK}}},
        {"header": {"format": "VIDEO", "video": {"link": LINK}}}),
    "location_request_message": SessionSample(
        {"type": "location_request_message", "body": {"type": "text", "text": "Where are you?"},
         "action": {"name": "send_location"}},
        ("interactive", {"type": "location_request_message", "body": _text("Where are you?"),
                         "action": {"name": "send_location"}}),
        {"type": "interactive", "text": "Where are you?",
         "buttons": [{"index": 0, "type": "LOCATION_REQUEST", "text": "Send location"}]},
    ),
}
# fmt: on
