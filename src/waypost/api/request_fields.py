"""The table of request fields: every name in a form, a JSON body or a query. For the OpenAPI document and the pages."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from waypost.wire.calling import VoiceAction
from waypost.wire.messages.passthrough import MessageContext, ReadMessage, TemplateObject, TypingIndicator
from waypost.wire.messages.session_forms import SESSION_MESSAGE
from waypost.wire.messages.template_forms import PostbackText, TemplateId, TemplateMessage


class FieldType(StrEnum):
    """The type that a field's text is parsed as."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    JSON = "JSON text"
    FILE = "file"
    OBJECT = "object"  # of a JSON body


@dataclass(frozen=True, slots=True)
class RequestField:
    """One row. Its key is the wire name; if one name has two meanings, `@` and a suffix follow it.

    Attributes:
        required: True if every route that reads it returns an error without it.
        meaning: one sentence.
        example: a value as it is sent in a form.
        json_type: of JSON text, the msgspec type that decodes it; its JSON Schema goes into the document.
    """

    type: FieldType
    required: bool
    meaning: str
    example: str
    json_type: Any = None


_T, _I, _B = FieldType.TEXT, FieldType.INTEGER, FieldType.BOOLEAN
_J, _F, _O = FieldType.JSON, FieldType.FILE, FieldType.OBJECT

# fmt: off
REQUEST_FIELDS: Final = {  # Source: spec, "Endpoints"; facts 1 to 4, 8, 9, 13

# Sending. Source: spec, "Endpoints", 2 to 4 and 6; facts 9
    "channel":                  RequestField(_T, False, "The channel: whatsapp, also when absent.", "whatsapp"),
    "source":                   RequestField(_T, False, "The app's phone number; required unless `src` is there. If the path names the app, its id is accepted too.", "15550001000"),
    "src":                      RequestField(_T, False, "Another name of `source`.", "15550001000"),
    "destination":              RequestField(_T, True,  "The recipient's phone number: 8 to 15 digits.", "15550002001"),
    "src.name":                 RequestField(_T, False, "The app's name; required for session messages with an API key. If the path names the app, its id is accepted too.", "WaypostDemo"),
    "message@session":          RequestField(_J, True,  "JSON text: the message, by its type. A text that is not a JSON object is sent as it is.", '{"type":"text","text":"Hello"}', SESSION_MESSAGE),
    "disablePreview":           RequestField(_B, False, "true shows no preview of a URL in the text.", "false"),
    "template":                 RequestField(_J, True,  "JSON text: the template's id and the values of its variables, in order.", '{"id":"01990000-0000-7000-8000-0000000000b1","params":["Ann","4711"]}', TemplateId),
    "message@template":         RequestField(_J, False, "JSON text: the media, location or cards that the template shows.", '{"type":"text","text":"Hi Ann"}', TemplateMessage),
    "postbackTexts":            RequestField(_J, False, "JSON text: the postback text of each quick reply, by the button's index from 0.", '[{"index":0,"text":"ok-1"}]', list[PostbackText] | PostbackText),
    "sandbox":                  RequestField(_B, False, "Stored and shown; no other effect.", "false"),
    "messaging_product":        RequestField(_T, False, "The product: whatsapp.", "whatsapp"),
    "recipient_type":           RequestField(_T, False, "The kind of recipient: individual or group.", "individual"),
    "to":                       RequestField(_T, False, "The recipient's phone number, or the id of a group; sent exactly as it is. Required unless `recipient` is there.", "15550002001"),
    "recipient":                RequestField(_T, False, "A business-scoped user id, instead of `to`.", "US.1349"),
    "type@passthrough":         RequestField(_T, False, "The type of the message, whose object is in the field of that name; required except for a read receipt.", "text"),
    "context@passthrough":      RequestField(_J, False, "JSON text: the message that this one replies to.", '{"message_id":"01990000-0000-7000-8000-0000000000c1"}', MessageContext),
    "category@direct":          RequestField(_T, False, "For Direct Send, the operator's category of a message without a template: utility or authentication.", ""),
    "ttl_seconds":              RequestField(_I, False, "For Direct Send, how long the operator tries to deliver it.", ""),
    "biz_opaque_callback_data": RequestField(_T, False, "The partner's own text of at most 475 characters; statuses of version 3 return it.", ""),
    "status@read":              RequestField(_T, False, "read: this is a read receipt, not a message.", ""),
    "message_id@read":          RequestField(_T, False, "For a read receipt, the inbound message's id.", ""),
    "typing_indicator":         RequestField(_J, False, "JSON text, for a read receipt: show a typing indicator.", "", TypingIndicator),
    "text@passthrough":         RequestField(_J, False, "JSON text: a text message.", '{"body":"Hello"}', dict[str, Any]),
    "image":                    RequestField(_J, False, "JSON text: an image.", '{"link":"https://shop.example/a.png"}', dict[str, Any]),
    "audio":                    RequestField(_J, False, "JSON text: audio.", '{"link":"https://shop.example/a.mp3"}', dict[str, Any]),
    "video":                    RequestField(_J, False, "JSON text: a video.", '{"link":"https://shop.example/a.mp4"}', dict[str, Any]),
    "document":                 RequestField(_J, False, "JSON text: a document.", '{"link":"https://shop.example/a.pdf","filename":"a.pdf"}', dict[str, Any]),
    "sticker":                  RequestField(_J, False, "JSON text: a sticker.", '{"link":"https://shop.example/a.webp"}', dict[str, Any]),
    "location":                 RequestField(_J, False, "JSON text: a location.", '{"latitude":52.52,"longitude":13.4,"name":"Shop","address":"Main Street 1"}', dict[str, Any]),
    "contacts":                 RequestField(_J, False, "JSON text: contact cards.", '[{"name":{"formatted_name":"Ann","first_name":"Ann"},"phones":[{"phone":"+15550002001"}]}]', list[dict[str, Any]]),
    "reaction":                 RequestField(_J, False, "JSON text: a reaction to a message.", '{"message_id":"01990000-0000-7000-8000-0000000000c1","emoji":"👍"}', dict[str, Any]),
    "interactive":              RequestField(_J, False, "JSON text: buttons, a list, a flow, products.", '{"type":"button","body":{"text":"Shall we come?"},"action":{"buttons":[{"type":"reply","reply":{"id":"yes","title":"Yes"}}]}}', dict[str, Any]),
    "template@passthrough":     RequestField(_J, False, "JSON text: a template's name, language and components.", '{"name":"order_ready","language":{"policy":"deterministic","code":"en_US"},"components":[{"type":"body","parameters":[{"type":"text","text":"Ann"},{"type":"text","text":"4711"}]}]}', TemplateObject),
    "type@event":               RequestField(_T, True,  "The type of event: message-event or voice-event.", "message-event"),
    "message@event":            RequestField(_O, False, "The receipt; required for message-event.", '{"messaging_product":"whatsapp","status":"read","message_id":"wamid.A"}', ReadMessage),
    "voice@event":              RequestField(_O, False, "An action on a call: accept and pre_accept with a session, reject or terminate; required for voice-event.", "", VoiceAction),

    # Media. Source: spec, "Upload media"; facts 8



    # Apps and their credentials. Source: facts 1.4, 1.5, 2
    "lang@marketing":           RequestField(_T, False, "The language of the operator's page.", "pt_BR"),

    # Account and number. Source: facts 13


    # Flows. Source: facts 9.4


}
# fmt: on


def wire_name(name: str) -> str:
    """Return the wire name of a key of the table."""
    return name.partition("@")[0]
