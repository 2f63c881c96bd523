"""What we know around a message that a recipient has sent, before it is called back."""

from dataclasses import dataclass

from waypost.domain.postback import Reply


@dataclass(frozen=True, slots=True)
class MediaLink:
    """Where the bytes of a recipient's medium are.

    Attributes:
        url: our door; served without a token, so the address itself is the secret.
        until_ms: when it ends; milliseconds since the epoch.
    """

    url: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class Around:
    """What we know around it.

    Attributes:
        answered_id: our id of the message that it answers, or reacts to; None where we know none.
        postback_text: behind the tapped button; None where the sender gave none.
        reply: the choice of a session message that it is; None where it is none.
        media: of a medium; None where there is none.
    """

    answered_id: str | None = None
    postback_text: str | None = None
    reply: Reply | None = None
    media: MediaLink | None = None
