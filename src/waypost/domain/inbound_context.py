"""Our data about a recipient's message, which its callback contains in addition to the operator's."""

from dataclasses import dataclass

from waypost.domain.postback import ChoiceReply


@dataclass(frozen=True, slots=True)
class MediaLink:
    """The URL of a medium that a recipient has sent.

    Attributes:
        url: of our media endpoint; served without a token, so the URL itself is the secret.
        until_ms: expiry; milliseconds since the epoch.
    """

    url: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class InboundContext:
    """Our data about a recipient's message.

    Attributes:
        reply_target_id: our id of the message that it replies or reacts to; None: not known.
        postback_text: of the tapped button; None: the sender gave none.
        reply: the choice that was made in a session message; None: it is not a choice.
        media: the medium; None: it has none.
    """

    reply_target_id: str | None = None
    postback_text: str | None = None
    reply: ChoiceReply | None = None
    media: MediaLink | None = None
