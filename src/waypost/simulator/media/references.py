"""What templates and messages refer to: uploads, media and flows, each of which must be known here."""

from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import text_or_none
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.accounts.flows import Flows
from waypost.simulator.errors import bad_parameter, message_refused
from waypost.simulator.media.media import Media, MediaShelf
from waypost.simulator.media.uploads import Uploads
from waypost.simulator.settings import LiveSettings

_ANY: Final = ("",)

# fmt: off
MEDIA_KINDS: Final[dict[str, tuple[str, ...]]] = {  # Source: facts 6.1; how a MIME type of the kind begins
    "image":    ("image/jpeg", "image/png"),
    "video":    ("video/",),
    "audio":    ("audio/",),
    "document": _ANY,
    "sticker":  ("image/webp",),
    "gif":      ("video/mp4", "image/gif"),
}
HEADER_KINDS: Final[dict[str, tuple[str, ...]]] = {  # Source: facts 2.2, 4.2 ("PDF only"), 6.2
    "IMAGE":    ("image/",),
    "VIDEO":    ("video/",),
    "DOCUMENT": ("application/pdf",),
    "GIF":      ("video/mp4", "image/gif"),
}
# fmt: on


@dataclass(frozen=True)
class Known:
    """What one account, and one of its numbers, may refer to."""

    uploads: Uploads
    shelf: MediaShelf
    flows: Flows
    waba_id: str
    phone_number_id: str

    def upload_kind(self, handle: str) -> str | None:
        """The MIME type behind a handle, which may be several joined by line breaks.

        Source: facts 6.2: the handle of one file may hold line breaks.
        """
        whole = self.uploads.kind_of(handle)
        if whole is not None:
            return whole
        kinds = [self.uploads.kind_of(line.strip()) for line in handle.split("\n") if line.strip()]
        return kinds[0] if kinds and None not in kinds else None

    def medium(self, media_id: str) -> Media | None:
        """A medium of the number."""
        return self.shelf.find(media_id, self.phone_number_id)

    def flow(self, flow_id: str) -> Flow | None:
        """A flow of the account."""
        return self.flows.find(flow_id, self.waba_id)


class References:
    """Gives each account what it may refer to, as long as the settings want that looked at."""

    def __init__(self, settings: LiveSettings, uploads: Uploads, media: MediaShelf, flows: Flows) -> None:
        self._settings = settings
        self._uploads = uploads
        self._media = media
        self._flows = flows

    def of(self, waba_id: str, phone_number_id: str = "") -> Known | None:
        """What the account and the number know; None: everything is taken as it is."""
        if not self._settings.value.check_references:
            return None
        return Known(self._uploads, self._media, self._flows, waba_id, phone_number_id)


def shown_media(
    kind: str, content: dict[str, Any], known: Known | None, mime_types: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A media object of a send, checked, with the MIME type and name of a medium that is known.

    Args:
        kind: `image`, `video`, … .
        content: the object: exactly one of `id` and `link`, and what belongs to them.
        known: what the sender may refer to; None: nothing is looked up.
        mime_types: how the MIME type must begin; empty: as the kind says.

    Raises:
        GraphRefused: 100 for the shape, 131053 for an id that the number does not have, or of
            another kind. A link is fetched after the message is taken, so nothing is said of it.

    Source: facts 4.1, 5.2 (131053: at once for bad ids), 6.1.
    """
    sources = [name for name in ("id", "link") if text_or_none(content.get(name))]
    if len(sources) != 1:
        raise bad_parameter(f"Param {kind} must have exactly one of ['id'] and ['link'].")
    if sources == ["link"] or known is None:
        return dict(content)
    medium = known.medium(content["id"])
    if medium is None:
        raise message_refused(131053, f"{kind}: this number has no media with the id {content['id']}")
    allowed = mime_types or MEDIA_KINDS[kind]
    if not medium.mime_type.startswith(allowed):
        raise message_refused(131053, f"{kind}: the media {content['id']} is of the type {medium.mime_type}")
    more = {"mime_type": medium.mime_type}
    if medium.file_name and "filename" not in content:
        more["filename"] = medium.file_name
    return {**content, **more}
