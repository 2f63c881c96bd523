"""What the control door refuses, in the words of somebody who holds the phone."""

from collections.abc import Awaitable
from typing import Any, Final

from waypost.client.door import DoorRefused
from waypost.console.not_there import NotMeant, NotThere

# fmt: off
WORDS: Final = (  # of simulator/control; the first that begins so is said
    ("phone: is offline",
     "This phone is offline.", "Switch it back on first."),
    ("to: has been blocked",
     "You have blocked this business on this phone.", "Unblock it to write to it again."),
    ("to: is no business number",
     "The simulator does not know this business number.", "An app that talks to the real channel has no phones here."),
    ("context_id: is not on this phone",
     "The message you reply to is not on this phone any more.", "Take the quote away and send again."),
    ("reaction.message_id",
     "The message is not on this phone any more.", "Reload the page."),
    ("message_id: no such message has arrived",
     "The message has not arrived on this phone.", "Reload the page."),
    ("message_id: the message has nothing to answer",
     "There is nothing to answer under this message.", ""),
    ("message_id: the order is paid already",
     "The order is paid already.", ""),
    ("message_id: the message is no order",
     "There is nothing to pay under this message.", ""),
    ("text: the message has no such button",
     "There is no such button under this message.", "Reload the page."),
    ("index: the message has no such button",
     "There is no such button under this message.", "Reload the page."),
    ("text: Expected `str` of length <= 4096",
     "That is longer than a message can be.", "Send at most 4,096 characters at once."),
    ("media.caption: Expected `str` of length",
     "That caption is too long.", "Write at most 1,024 characters."),
    ("to: cannot be moved to",
     "The phone cannot have that number.", "Choose digits that no business has, and not its own."),
    ("user_id: belongs to",
     "Another phone has this user id.", "Choose one that is not in use."),
    ("shows_number:",
     "A phone that hides its number needs a user id.", "Give it one, such as US.1349, or let it show its number."),
)
# fmt: on


async def told(call: Awaitable[Any]) -> Any:
    """What a call to the control door gives.

    Raises:
        NotMeant: it was refused; says why in plain words, and what to do.
        NotThere: the door has no such thing.
    """
    try:
        return await call
    except DoorRefused as refused:
        raise _in_words(refused) from refused


def _in_words(refused: DoorRefused) -> Exception:
    for beginning, said, remedy in WORDS:
        if refused.message.startswith(beginning):
            return NotMeant(said, remedy)
    said, _, accepted = refused.message.partition("; accepted: ")
    if refused.status == 404 and not accepted:
        return NotThere()
    _, _, rule = said.partition(": ")
    words = (rule or said).strip().rstrip(".")
    sentence = words[:1].upper() + words[1:] + "."
    return NotMeant(sentence, f"What would do: {accepted}." if accepted else "")
