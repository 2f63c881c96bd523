"""What messages say, as canonical JSON: a table of their kinds."""

from typing import Final

import msgspec

from waypost.domain.message import Content, Passthrough, TemplateSend
from waypost.domain.session_messages import SESSION_KINDS

NAMES: Final[dict[type[Content], str]] = {  # the names are stored
    **{kind: kind.stored_as for kind in SESSION_KINDS},
    TemplateSend: "template",
    Passthrough: "passthrough",
}
TEMPLATE_PASSTHROUGH: Final = "template_passthrough"
OF_TEMPLATES: Final = {NAMES[TemplateSend], TEMPLATE_PASSTHROUGH}
"""The kinds that a callback calls a template message."""

_DECODE: Final = {
    TEMPLATE_PASSTHROUGH: msgspec.json.Decoder(Passthrough).decode,
    **{name: msgspec.json.Decoder(kind).decode for kind, name in NAMES.items()},
}


def name_of(content: Content) -> str:
    """The kind of a content, as the column `kind` has it; a passthrough of a template has one of its own."""
    if isinstance(content, Passthrough) and content.type == "template":
        return TEMPLATE_PASSTHROUGH
    return NAMES[type(content)]


def kept_content_of(kind: str, content: bytes) -> Content | None:
    """What a message says; None where its words have been kept long enough and are gone."""
    return content_of(kind, content) if content else None


def content_of(kind: str, stored: bytes) -> Content:
    """What a message says, from its columns."""
    content: Content = _DECODE[kind](stored)
    return content
