"""References from templates and messages to uploads, media and flows, each of which must exist here."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import text_or_none
from waypost.simulator.apis.errors import bad_parameter, message_error
from waypost.simulator.media.model import find_media
from waypost.simulator.media.uploads import UploadSession, find_by_handle
from waypost.simulator.state.simulator_state import SimulatorState

_ANY_MIME_TYPE: Final = ("",)

# fmt: off
MEDIA_TYPE_PREFIXES: Final[dict[str, tuple[str, ...]]] = {  # Source: facts 6.1; prefixes of the kind's MIME types
    "image":    ("image/jpeg", "image/png"),
    "video":    ("video/",),
    "audio":    ("audio/",),
    "document": _ANY_MIME_TYPE,
    "sticker":  ("image/webp",),
    "gif":      ("video/mp4", "image/gif"),
}
INBOUND_TYPE_PREFIXES: Final = {  # what phones send is shown by its main type
    "image":    ("image/",),
    "video":    ("video/",),
    "audio":    ("audio/",),
    "document": _ANY_MIME_TYPE,
    "sticker":  ("image/webp",),
}
HEADER_TYPE_PREFIXES: Final[dict[str, tuple[str, ...]]] = {  # Source: facts 2.2, 4.2 ("PDF only"), 6.2
    "IMAGE":    ("image/",),
    "VIDEO":    ("video/",),
    "DOCUMENT": ("application/pdf",),
    "GIF":      ("video/mp4", "image/gif"),
}
# fmt: on


@dataclass(frozen=True)
class KnownReferences:
    """The uploads, media and flows that one account and one of its numbers may refer to; None in its place: any."""

    state: SimulatorState
    waba_id: str
    phone_number_id: str

    def find_uploads(self, handle: str) -> list[UploadSession]:
        """Return the uploads of a handle, which may be several handles joined by line breaks; none if one is unknown.

        Source: facts 6.2: the handle of one file may contain line breaks.
        """
        whole = find_by_handle(self.state, handle)
        if whole is not None:
            return [whole]
        uploads = [find_by_handle(self.state, line.strip()) for line in handle.split("\n") if line.strip()]
        known = [upload for upload in uploads if upload is not None]
        return known if len(known) == len(uploads) else []


def known_references(state: SimulatorState, waba_id: str, phone_number_id: str = "") -> KnownReferences | None:
    """Return the references of an account and a number; None if the settings do not want references checked."""
    return KnownReferences(state, waba_id, phone_number_id) if state.settings.value.check_references else None


def render_media(
    kind: str, content: dict[str, Any], references: KnownReferences | None, mime_types: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Check a media object of a message, and return it with the MIME type and file name of known media.

    Args:
        kind: `image`, `video`, … .
        content: the object: exactly one of `id` and `link`, and their further members.
        mime_types: accepted prefixes of the MIME type; empty: those of the kind.

    Raises:
        GraphApiError: 100 for a missing or double source, or a link that is no URL; 131053 for an id that the number
            does not have, or of another kind. What a link leads to is fetched after the message is accepted.

    Source: facts 4.1, 5.2 (131053: at once for bad ids), 6.1.
    """
    sources = [name for name in ("id", "link") if text_or_none(content.get(name))]
    if len(sources) != 1:
        raise bad_parameter(f"Param {kind} must have exactly one of ['id'] and ['link'].")
    if sources == ["link"] and not is_web_url(content["link"]):
        raise bad_parameter(f"Param {kind}['link'] is not a valid URI.")
    if sources == ["link"] or references is None:
        return dict(content)
    media = find_media(references.state, content["id"], references.phone_number_id)
    if media is None:
        raise message_error(131053, f"{kind}: this number has no media with the id {content['id']}")
    allowed = mime_types or MEDIA_TYPE_PREFIXES[kind]
    if not media.mime_type.startswith(allowed):
        raise message_error(131053, f"{kind}: the media {content['id']} is of the type {media.mime_type}")
    details = {"mime_type": media.mime_type}
    if media.file_name and "filename" not in content:
        details["filename"] = media.file_name
    return {**content, **details}
