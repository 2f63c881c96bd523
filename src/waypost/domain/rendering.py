"""A template's parts flattened into the one text of its record."""

from waypost.domain.buttons import shown
from waypost.domain.template import Draft


def flattened(draft: Draft) -> str:
    """Header, body and footer on lines of their own, buttons behind ` | `.

    Source: spec, "Template record", data; construction from facts 3.2.
    """
    lines = [text for text in (draft.header, draft.content, draft.footer) if text]
    return " | ".join(["\n".join(lines), *(shown(button) for button in draft.buttons)])
