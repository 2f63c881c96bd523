"""Errors of the control API in the words of a person who uses the phone."""

from collections.abc import Awaitable
from typing import Any, Final

from waypost.client.api_client import ApiResponseError
from waypost.console.web.errors import InvalidPageRequest, NotFound

PHONE_ERROR_TEXTS: Final[dict[tuple[str, int | str], tuple[str, str]]] = {  # of simulator/control
    # field          status, or rule where several share the status
    ("phone", 409): ("This phone is offline.", "Turn it on first."),
    ("to", "has been blocked by the phone's owner"): (
        "This phone has blocked the business.",
        "Unblock it to send messages again.",
    ),
    ("to", 404): (
        "The simulator does not know this business number.",
        "An app that is connected to the real channel has no simulated phones.",
    ),
    ("context_id", 404): ("The message you reply to is no longer on this phone.", "Remove the quote and send again."),
    ("reaction.message_id", 404): ("The message is no longer on this phone.", "Reload the page."),
    ("message_id", 404): ("The message has not arrived on this phone.", "Reload the page."),
    ("message_id", "the message has nothing to reply to"): ("This message has nothing to respond to.", ""),
    ("message_id", "the order is paid already"): ("The order is already paid.", ""),
    ("message_id", "the message is not an order"): ("This message is not an order.", ""),
    ("text", 404): ("This message has no such button.", "Reload the page."),
    ("index", 404): ("This message has no such button.", "Reload the page."),
    ("text", 400): ("The message is too long.", "Send at most 4,096 characters."),
    ("media.caption", 400): ("The caption is too long.", "Use at most 1,024 characters."),
    ("to", "cannot be moved to"): (
        "The phone cannot have that number.",
        "Choose a number that no business has and that is not its own.",
    ),
    ("wa_id", 400): (
        "A WhatsApp ID has 8 to 15 digits, the first of them not 0.",
        "Enter such digits, or leave the field empty.",
    ),
    ("wa_id", 409): ("Another phone has this WhatsApp ID.", "Choose another one."),
    ("user_id", 409): ("Another phone has this user ID.", "Choose another one."),
    ("shows_number", 400): (
        "A phone that hides its number needs a user ID.",
        "Enter one, such as US.1349, or show the number.",
    ),
}


async def translate_errors(call: Awaitable[Any]) -> Any:
    """Return the result of a call to the control API.

    Raises:
        InvalidPageRequest: the API returned an error; explains it and suggests what to do.
        NotFound: the API responded with 404.
    """
    try:
        return await call
    except ApiResponseError as error:
        raise _translate(error) from error


def _translate(error: ApiResponseError) -> Exception:
    known = PHONE_ERROR_TEXTS.get((error.field, error.rule)) or PHONE_ERROR_TEXTS.get((error.field, error.status))
    if known is not None:
        return InvalidPageRequest(*known)
    if error.status == 404 and not error.accepted:
        return NotFound()
    text = (error.rule or error.message).strip().rstrip(".")
    sentence = text[:1].upper() + text[1:] + "."
    return InvalidPageRequest(sentence, f"Accepted: {error.accepted}." if error.accepted else "")
