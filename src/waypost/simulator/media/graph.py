"""Graph API calls for media. Source: facts 6.1."""

from typing import Any, Final

from waypost.simulator.apis.errors import GraphApiError, bad_parameter, no_such_object
from waypost.simulator.apis.links import is_valid_link, signed_link
from waypost.simulator.apis.media_kinds import MAX_MEDIA_BYTES
from waypost.simulator.apis.parameters import is_missing
from waypost.simulator.apis.requests import Call, Download, open_form
from waypost.simulator.media.model import SimulatedMedia, add_media, find_media
from waypost.simulator.media.model import delete_media as drop_media
from waypost.simulator.state.accounts import Account, Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.tokens import MESSAGING, check_token

operation = GraphOperations()

ATTACHMENTS: Final = "whatsapp_business"
"""The first path segment of the URLs that `show_media` returns."""

_MEDIA_LINK_LIFETIME_MS: Final = 5 * 60 * 1000
_MAX_MEDIA_FORM_BYTES: Final = MAX_MEDIA_BYTES + 64 * 1024
_MAX_MEDIA_FIELD_BYTES: Final = 4096


@operation("media.upload", "POST", Number, "media", permission=MESSAGING, is_streamed=True)
async def upload_media(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Store a file for 30 days; the form has `messaging_product`, `file` and usually `type`."""
    form = open_form(call, max_bytes=_MAX_MEDIA_FORM_BYTES)
    fields = {name: str(value) for name, value in call.query.items()}
    media: SimulatedMedia | None = None
    try:
        while (head := await form.next_part()) is not None:
            if head.name != "file" or head.file_name is None:
                fields[head.name] = await form.text(max_bytes=_MAX_MEDIA_FIELD_BYTES)
            elif media is not None:
                raise bad_parameter("There can be only one file.")  # noqa: TRY301  the media is deleted below
            else:
                # The form's field `type` is that of a file part without a type.
                written_type = fields.get("type", "").partition(";")[0].strip().lower()
                mime_type = head.content_type or written_type or "application/octet-stream"
                media = await add_media(state, number.phone_number_id, mime_type, head.file_name, form.chunks())
        if fields.get("messaging_product") != "whatsapp":
            raise is_missing("messaging_product")  # noqa: TRY301  as above
    except BaseException:
        if media is not None:
            await drop_media(state, media)
        raise
    if media is None:
        raise is_missing("file")
    return {"id": media.media_id}


@operation("media.read", "GET", SimulatedMedia, permission=MESSAGING)
async def show_media(state: SimulatorState, call: Call, media: SimulatedMedia) -> dict[str, Any]:
    """Return a file's fields, with a link that is valid for five minutes."""
    _check_number(call, media)
    account = _account_of(state, media)
    until_ms = state.clock.now_ms() + _MEDIA_LINK_LIFETIME_MS
    path = f"/{ATTACHMENTS}/attachments/"
    return {
        "messaging_product": "whatsapp",
        "url": signed_link(call.origin, path, account.token, media.media_id, until_ms),
        "mime_type": media.mime_type,
        "sha256": media.sha256,
        "file_size": media.size_bytes,
        "id": media.media_id,
    }


@operation("media.delete", "DELETE", SimulatedMedia, permission=MESSAGING)
async def delete_media(state: SimulatorState, call: Call, media: SimulatedMedia) -> dict[str, Any]:
    """Delete a file before its expiry."""
    _check_number(call, media)
    await drop_media(state, media)
    return {"success": True}


@operation("media.download", "GET", "whatsapp_business")
async def download_media(state: SimulatorState, call: Call) -> Download:
    """Return the file behind a link of `show_media`; 404 after five minutes."""
    media = find_media(state, call.query.get("mid", ""))
    account = _account_of(state, media) if media is not None else None
    if (
        media is None
        or account is None
        or not check_token(state, call.token).grants_access([account.waba_id])
        or not is_valid_link(call.query, account.token, media.media_id, state.clock.now_ms())
    ):
        raise GraphApiError(404, no_such_object(call.method, ATTACHMENTS).error)
    return Download(media.mime_type, media.size_bytes, state.files.path(media.content_name))


def _check_number(call: Call, media: SimulatedMedia) -> None:
    number_id = call.query.get("phone_number_id", media.phone_number_id)
    if number_id != media.phone_number_id:
        raise no_such_object(call.method, media.media_id)


def _account_of(state: SimulatorState, media: SimulatedMedia) -> Account:
    number = state.accounts.numbers[media.phone_number_id]
    return state.accounts.by_id[number.waba_id]
