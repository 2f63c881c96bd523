"""The media samples of a draft: checks their existence and types, and adds a handle of ours where one is needed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED_TYPES, UploadedMedia, handle_lines, is_operator_handle
from waypost.domain.session_messages.content import MediaKind
from waypost.domain.templates.buttons import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import is_sample_url_only
from waypost.domain.templates.types import type_row
from waypost.store.media.media import find_uploads
from waypost.wire.media import fetch_error

SAMPLES_TIMEOUT_S: Final = 10
"""For fetching all samples of one draft that are given by URL. Source: decision 0079."""
_MAX_SHOWN_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class _SampleHeader:
    """A header that shows a medium: the draft's own, or a card's."""

    owner: TemplateDraft | Card  # the draft or card that has the header
    kind: str  # IMAGE, VIDEO, DOCUMENT or GIF, as the partner wrote it
    field_prefix: str = ""  # the prefix of its fields' names in an error


async def add_sample_handles(
    services: Services, app: App, draft: TemplateDraft, before: TemplateDraft | None = None
) -> TemplateDraft:
    """Return the draft with a handle for each sample given by an upload's media id, or only by URL.

    URLs are fetched concurrently.

    Args:
        services: of the API.
        app: that submits it.
        draft: checked by the rules.
        before: the draft that an edit changes; None for a new template.

    Raises:
        ApiError: as of `check_samples`, or a URL cannot be fetched or is not an accepted sample.

    Source: spec, "Card object": when `exampleMedia` is absent the service generates the handle from the
        URL or the id.
    """
    headers = _headers(draft)
    if not headers:
        return draft
    uploads = await check_samples(services, app, draft, before)
    fetched = await _fetch_samples(services, app, headers)
    handles: dict[str, str | None] = {}
    for header in headers:
        part = header.owner
        if is_sample_url_only(part):
            media = fetched[part.media_url or ""]
            _check_kind(header, "mediaUrl", media)
            handles[part.media_url or ""] = media.handle
        elif not part.example_media and part.media_id in uploads and part.media_id not in handles:
            upload = await services.uploads.add_handle(uploads[part.media_id])
            handles[part.media_id] = upload.handle
    if not handles:
        return draft
    if type_row(draft.template_type).medium:
        draft = replace(draft, example_media=_sample_handle(draft, handles))
    cards = draft.cards and tuple(replace(card, example_media=_sample_handle(card, handles)) for card in draft.cards)
    return replace(draft, cards=cards)


async def check_samples(
    services: Services, app: App, draft: TemplateDraft, before: TemplateDraft | None = None
) -> dict[str, UploadedMedia]:
    """Check that the uploads that a draft names exist, and have the types of their headers.

    What the operator has issued to its own app is accepted too: its handles name that app. A sample that an edit
    does not change is not looked up again: the operator has it.

    Args:
        services: of the API.
        app: that submits it.
        draft: to check.
        before: the draft that an edit changes; None for a new template.

    Returns:
        The live uploads of this partner by the handle or media id that names them.

    Raises:
        ApiError: one is no upload of this partner, has expired, or has another type than its header.
    """
    headers = _headers(draft)
    references = [reference for header in headers for reference in _references(header.owner).values()]
    named = [name for reference in references for name in (reference, *handle_lines(reference))]
    now_ms = services.clock.now_ms()
    uploads = await services.database.read(find_uploads, app.partner_id, named, now_ms)
    account = await services.directory.operator_account_of(app)
    operator_app_id = account.fields.get("app_id", "") if account else ""
    submitted = {text for header in _headers(before) for text in _references(header.owner).values()} if before else ()
    for header in headers:
        for field, reference in _references(header.owner).items():
            lines = handle_lines(reference) or (reference,)
            unknown = [
                line for line in lines if line not in uploads and not is_operator_handle(line, operator_app_id, now_ms)
            ]
            if unknown and reference not in uploads and reference not in submitted:
                raise _unknown_upload(f"{header.field_prefix}{field}", unknown[0])
        for field, reference in _references(header.owner).items():
            for name in (reference, *handle_lines(reference)):
                if name in uploads:
                    _check_kind(header, field, uploads[name])
    return uploads


def _headers(draft: TemplateDraft) -> list[_SampleHeader]:
    own_header = [_SampleHeader(draft, draft.template_type or "")] if type_row(draft.template_type).medium else []
    cards = enumerate(draft.cards or ())
    return own_header + [_SampleHeader(card, card.header_type, f"cards[{index}].") for index, card in cards]


def _references(owner: TemplateDraft | Card) -> dict[str, str]:
    """Return the references to uploads by their field."""
    references = {"exampleMedia": owner.example_media, "mediaId": owner.media_id}
    return {field: reference for field, reference in references.items() if reference and reference.strip()}


def _unknown_upload(name: str, reference: str) -> ApiError:
    shown = reference if len(reference) <= _MAX_SHOWN_CHARS else f"{reference[:_MAX_SHOWN_CHARS]}…"
    accepted = "an upload of yours that has not expired"
    text = f"{name} must name {accepted}; {shown} names none."
    return ApiError(ErrorCode.FIELD_BROKEN, text, field=name, accepted=accepted)


def _sample_handle(owner: TemplateDraft | Card, handles: Mapping[str, str | None]) -> str | None:
    if owner.example_media:
        return owner.example_media
    return handles.get(owner.media_id or owner.media_url or "")


def _check_kind(header: _SampleHeader, field: str, media: UploadedMedia) -> None:
    """Check an upload's MIME type against the header that shows it."""
    medium = type_row(header.kind.upper()).medium
    kind = MediaKind.VIDEO if medium is not None and medium.name == MediaKind.GIF else header.kind.lower()
    accepted_types = [
        mime_type for mime_type, row in ACCEPTED_TYPES.items() if row.for_handle and row.kind.value == kind
    ]
    name, accepted = f"{header.field_prefix}{field}", f"a medium of {' or '.join(accepted_types)}"
    if accepted_types and media.mime_type not in accepted_types:
        text = f"{name} must name {accepted} for {header.kind}; it is {media.mime_type}."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field=name, accepted=accepted)
    if medium is not None and medium.max_bytes is not None and media.size_bytes > medium.max_bytes:
        accepted = f"a medium of at most {medium.max_bytes} bytes"
        text = f"{name} must name {accepted} for {header.kind}; it has {media.size_bytes}."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field=name, accepted=accepted)


async def _fetch_samples(services: Services, app: App, headers: list[_SampleHeader]) -> dict[str, UploadedMedia]:
    """Fetch each URL that alone names a sample, once, and return the media by URL."""
    fields: dict[str, str] = {}
    for header in headers:
        if is_sample_url_only(header.owner):
            fields.setdefault(header.owner.media_url or "", f"{header.field_prefix}mediaUrl")
    if not fields:
        return {}
    try:
        async with asyncio.timeout(SAMPLES_TIMEOUT_S):
            fetched = await asyncio.gather(
                *(
                    services.uploads.store_from_url(app, url, for_handle=True, field=field)
                    for url, field in fields.items()
                ),
                return_exceptions=True,
            )
    except TimeoutError as error:
        field = next(iter(fields.values()))
        raise fetch_error(field, f"all together took more than {SAMPLES_TIMEOUT_S} s") from error
    media_by_url: dict[str, UploadedMedia] = {}
    for url, media in zip(fields, fetched, strict=True):
        if isinstance(media, BaseException):
            raise media
        media_by_url[url] = media
    return media_by_url
