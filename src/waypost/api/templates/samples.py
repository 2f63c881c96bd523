"""The media samples of a draft: checks their types, and adds a handle of ours to each that needs one."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED, Media, lines_of
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.template import is_by_address
from waypost.domain.templates.types import type_row
from waypost.store.media.media import uploads_named
from waypost.wire.media import not_fetched

FETCH_S: Final = 10
"""For fetching all samples of one draft that are given by URL. Source: decision 0079."""


@dataclass(frozen=True, slots=True)
class _Header:
    """A header that shows a medium: the draft's own, or a card's.

    Attributes:
        owner: the draft or card that has the header.
        kind: IMAGE, VIDEO or DOCUMENT, as the partner wrote it.
        field_prefix: the prefix of its fields' names in an error.
    """

    part: Draft | Card
    kind: str
    place: str = ""


async def with_samples(services: Services, app: App, draft: Draft) -> Draft:
    """Return the draft with a handle for each sample given by an upload's media id, or only by URL.

    A media id that is not a live upload of this partner stays unchanged: the operator may know it. URLs
    are fetched concurrently.

    Raises:
        ApiError: an upload has another type than its header, or a URL cannot be fetched or is not an
            accepted sample.

    Source: spec, "Card object": when `exampleMedia` is absent the service generates the handle from the
        URL or the id.
    """
    headers = _headers(draft)
    if not headers:
        return draft
    uploads = await check_samples(services, app, draft)
    fetched = await _fetched(services, app, headers)
    handles: dict[str, str | None] = {}
    for header in headers:
        part = header.part
        if is_by_address(part):
            media = fetched[part.media_url or ""]
            _check_kind(header, "mediaUrl", media)
            handles[part.media_url or ""] = media.handle
        elif not part.example_media and part.media_id in uploads and part.media_id not in handles:
            upload = await services.uploads.with_handle(uploads[part.media_id])
            handles[part.media_id] = upload.handle
    if not handles:
        return draft
    if type_row(draft.template_type).medium:
        draft = replace(draft, example_media=_sample(draft, handles))
    cards = draft.cards and tuple(replace(card, example_media=_sample(card, handles)) for card in draft.cards)
    return replace(draft, cards=cards)


async def check_samples(services: Services, app: App, draft: Draft) -> dict[str, Media]:
    """Check that the uploads that a draft names have the types of their headers.

    Returns:
        The live uploads of this partner by the handle or media id that names them.

    Raises:
        ApiError: one has another type than its header.
    """
    headers = _headers(draft)
    named = [name for header in headers for name in _names(header.part)]
    now_ms = services.clock.now_ms()
    uploads = await services.database.read(uploads_named, app.partner_id, named, now_ms)
    for header in headers:
        _check_kinds(header, uploads)
    return uploads


def _headers(draft: Draft) -> list[_Header]:
    own_header = [_Header(draft, draft.template_type or "")] if type_row(draft.template_type).medium else []
    cards = enumerate(draft.cards or ())
    return own_header + [_Header(card, card.header_type, f"cards[{index}].") for index, card in cards]


def _names(part: Draft | Card) -> tuple[str, ...]:
    """Return the texts that may name uploads of ours: a handle, each line of it, or a media id."""
    if part.example_media:
        return (part.example_media, *lines_of(part.example_media))
    return (part.media_id,) if part.media_id else ()


def _sample(part: Draft | Card, handles: Mapping[str, str | None]) -> str | None:
    if part.example_media:
        return part.example_media
    return handles.get(part.media_id or part.media_url or "")


def _check_kinds(header: _Header, uploads: Mapping[str, Media]) -> None:
    field = "exampleMedia" if header.part.example_media else "mediaId"
    for name in _names(header.part):
        if name in uploads:
            _check_kind(header, field, uploads[name])


def _check_kind(header: _Header, field: str, media: Media) -> None:
    """Check an upload's MIME type against the header that shows it.

    Raises:
        ApiError: the operator does not accept it as a sample of such a header.
    """
    accepted_types = [
        mime_type
        for mime_type, row in ACCEPTED.items()
        if row.for_handle and row.kind.value.upper() == header.kind.upper()
    ]
    if accepted_types and media.mime_type not in accepted_types:
        name, accepted = f"{header.place}{field}", f"a medium of {' or '.join(accepted_types)}"
        text = f"{name} must name {accepted} for {header.kind}; it is {media.mime_type}."
        raise ApiError(ErrorCode.FIELD_BROKEN, text, field=name, accepted=accepted)


async def _fetched(services: Services, app: App, headers: list[_Header]) -> dict[str, Media]:
    """Fetch each URL that alone names a sample, once, and return the media by URL."""
    fields: dict[str, str] = {}
    for header in headers:
        if is_by_address(header.part):
            fields.setdefault(header.part.media_url or "", f"{header.place}mediaUrl")
    if not fields:
        return {}
    try:
        async with asyncio.timeout(FETCH_S):
            fetched = await asyncio.gather(
                *(services.uploads.from_url(app, url, for_handle=True, field=field) for url, field in fields.items()),
                return_exceptions=True,
            )
    except TimeoutError as error:
        field = next(iter(fields.values()))
        raise not_fetched(field, f"all together took more than {FETCH_S} s") from error
    media_by_url: dict[str, Media] = {}
    for url, media in zip(fields, fetched, strict=True):
        if isinstance(media, BaseException):
            raise media
        media_by_url[url] = media
    return media_by_url
