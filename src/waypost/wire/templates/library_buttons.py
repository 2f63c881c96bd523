"""What a partner says of a ready template's buttons."""

from typing import Final

import msgspec

from waypost.wire.forms import read_json

ACCEPTED: Final = '[{"type":"URL","url":{"base_url":"https://...","url_suffix_example":"https://..."}}]'


class LibraryButton(msgspec.Struct, omit_defaults=True):
    """What one button opens. Source: the operator's page "Template library"."""

    type: str
    url: dict[str, str] | None = None
    phone_number: str | None = None


_buttons: Final = msgspec.json.Decoder(list[LibraryButton])


def read_library_buttons(text: str | None) -> list[LibraryButton]:
    """The buttons in a JSON text; none when there is none.

    Raises:
        Refused: no JSON of this shape.
    """
    if not text or not text.strip():
        return []
    return read_json(text, _buttons, name="buttons", accepted=ACCEPTED)
