"""Reads a partner's inputs for the buttons of a library template."""

from typing import Final

import msgspec

from waypost.wire.forms import read_json

ACCEPTED: Final = '[{"type":"URL","url":{"base_url":"https://...","url_suffix_example":"https://..."}}]'


class LibraryButton(msgspec.Struct, omit_defaults=True):
    """The input for one button. Source: the operator's page "Template library"."""

    type: str
    url: dict[str, str] | None = None
    phone_number: str | None = None


_buttons: Final = msgspec.json.Decoder(list[LibraryButton])


def read_library_buttons(text: str | None) -> list[LibraryButton]:
    """Return the buttons in a JSON text; empty when there is none.

    Raises:
        ApiError: it is not JSON of this format.
    """
    if not text or not text.strip():
        return []
    return read_json(text, _buttons, name="buttons", accepted=ACCEPTED)
