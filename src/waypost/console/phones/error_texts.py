"""What the control door refuses, in the words of somebody who holds the phone."""

from collections.abc import Awaitable
from typing import Any, Final

from waypost.client.api_client import ApiResponseError
from waypost.console.web.not_found import NotMeant, NotThere

# fmt: off
WORDS: Final[dict[tuple[str, int | str], tuple[str, str]]] = {  # of simulator/control
    # field          status, or rule where several share the status
    ("phone", 409):
        ("This phone is offline.", "Switch it back on first."),
    ("to", "has been blocked by the phone's owner"):
        ("You have blocked this business on this phone.", "Unblock it to write to it again."),
    ("to", 404):
        ("The simulator does not know this business number.", "An app that talks to the real channel has no phones here."),
    ("context_id", 404):
        ("The message you reply to is not on this phone any more.", "Take the quote away and send again."),
    ("reaction.message_id", 404):
        ("The message is not on this phone any more.", "Reload the page."),
    ("message_id", 404):
        ("The message has not arrived on this phone.", "Reload the page."),
    ("message_id", "the message has nothing to answer"):
        ("There is nothing to answer under this message.", ""),
    ("message_id", "the order is paid already"):
        ("The order is paid already.", ""),
    ("message_id", "the message is no order"):
        ("There is nothing to pay under this message.", ""),
    ("text", 404):
        ("There is no such button under this message.", "Reload the page."),
    ("index", 404):
        ("There is no such button under this message.", "Reload the page."),
    ("text", 400):
        ("That is longer than a message can be.", "Send at most 4,096 characters at once."),
    ("media.caption", 400):
        ("That caption is too long.", "Write at most 1,024 characters."),
    ("to", "cannot be moved to"):
        ("The phone cannot have that number.", "Choose digits that no business has, and not its own."),
    ("user_id", 409):
        ("Another phone has this user id.", "Choose one that is not in use."),
    ("shows_number", 400):
        ("A phone that hides its number needs a user id.", "Give it one, such as US.1349, or let it show its number."),
}
# fmt: on


async def told(call: Awaitable[Any]) -> Any:
    """What a call to the control door gives.

    Raises:
        NotMeant: it was refused; says why in plain words, and what to do.
        NotThere: the door has no such thing.
    """
    try:
        return await call
    except ApiResponseError as refused:
        raise _in_words(refused) from refused


def _in_words(refused: ApiResponseError) -> Exception:
    known = WORDS.get((refused.field, refused.rule)) or WORDS.get((refused.field, refused.status))
    if known is not None:
        return NotMeant(*known)
    if refused.status == 404 and not refused.accepted:
        return NotThere()
    words = (refused.rule or refused.message).strip().rstrip(".")
    sentence = words[:1].upper() + words[1:] + "."
    return NotMeant(sentence, f"What would do: {refused.accepted}." if refused.accepted else "")
