"""Session messages: a class for each kind, and the table of the kinds."""

from typing import Final

from waypost.domain.session_messages.choices import (
    SessionList,
    SessionLocationRequest,
    SessionQuickReply,
    SessionUrlButton,
)
from waypost.domain.session_messages.content import SessionContent
from waypost.domain.session_messages.plain import (
    SessionContacts,
    SessionLocation,
    SessionMedia,
    SessionProducts,
    SessionReaction,
    SessionText,
)

# fmt: off
SESSION_KINDS: Final[tuple[type[SessionContent], ...]] = (  # Source: facts 9.1; public page "Session messages"
    SessionText,
    SessionMedia,
    SessionLocation,
    SessionContacts,
    SessionList,
    SessionQuickReply,
    SessionProducts,
    SessionUrlButton,
    SessionReaction,
    SessionLocationRequest,
)
# fmt: on
