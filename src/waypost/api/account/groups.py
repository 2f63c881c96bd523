"""Endpoints for the groups of an app's number (decision 0062): the operator stores them, and every call goes there."""

import asyncio
from typing import Any, Final

import msgspec

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, direct_call_deadline, number_of
from waypost.api.http.multipart import PartHead, read_parts
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.coercion import read_integer
from waypost.domain.direct_calls.groups import (
    ChangeGroup,
    CreateGroup,
    DeleteGroup,
    GetGroup,
    GroupPicture,
    GroupRequest,
    ListGroups,
    ListGroupSubjects,
    RemoveParticipants,
    ResetInviteLink,
)
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.forms import Form, read_json
from waypost.wire.groups import GroupUser, list_fields

MAX_GROUPS_PER_PAGE: Final = 100
DEFAULT_GROUPS_PER_PAGE: Final = 10
MAX_SUBJECT_CHARS: Final = 128
MAX_GROUP_TEXT_CHARS: Final = 2048
MAX_GROUP_PICTURE_BYTES: Final = 5 * 1024 * 1024
GROUP_PICTURE_TYPE: Final = "image/jpeg"
_PICTURE_TIMEOUT_S: Final = 30
_MAX_TEXT_BYTES: Final = 16 * 1024
_PRODUCT: Final = "whatsapp"
_users: Final = msgspec.json.Decoder(list[GroupUser])


async def create_group(services: Services, request: Request) -> ApiResponse:
    """Create a group; its id and invite link come in a callback.

    Errors in this order: 401, 429, 400 fields, 409 the same request was begun before under its key and there is a
    group with its subject, 400 the operator's error, 503.

    Source: ledger 1.10.
    """
    app = await authorise_app(services, request)
    form = _checked_form(request)
    subject = _checked_text("subject", form.required("subject", f"1 to {MAX_SUBJECT_CHARS} characters").strip())
    description = _checked_text("description", form.text("description") or "")
    number_id = number_of(app)
    async with direct_call_deadline(app, "creation of a group"):
        if request.idempotency is not None and request.idempotency.begun_before:
            subjects = await call_operator(services, app, ListGroupSubjects(number_id))
            if subject in subjects.values():
                raise ApiError(ErrorCode.KEY_IN_USE, "A group with this subject exists: list the groups.")
        return _accepted(await call_operator(services, app, CreateGroup(number_id, subject, description)))


async def list_groups(services: Services, request: Request) -> ApiResponse:
    """Return a page of the number's groups. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    limit = request.query("limit") or str(DEFAULT_GROUPS_PER_PAGE)
    if not 1 <= read_integer(limit, "limit") <= MAX_GROUPS_PER_PAGE:
        raise invalid_field("limit", f"a number from 1 to {MAX_GROUPS_PER_PAGE}")
    page = ListGroups(number_of(app), limit.strip(), request.query("after") or "", request.query("before") or "")
    groups = await call_operator(services, app, page)
    return ApiResponse({**groups.raw, "status": "success"})


async def show_group(services: Services, request: Request) -> ApiResponse:
    """Return one group with the requested fields. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    fields = list_fields(request.query("fields"))
    async with direct_call_deadline(app, "group"):
        group_id = await _group_in_path(services, app, request)
        group = await call_operator(services, app, GetGroup(group_id, fields))
    return ApiResponse({"messaging_product": _PRODUCT, **group.raw, "status": "success"})


async def change_group(services: Services, request: Request) -> ApiResponse:
    """Change subject, description or picture of a group, by a multipart form.

    Errors in this order: 401, 429, 400 form and fields, 413, 404 an unknown group, 400 the operator's error, 503.

    Source: ledger 1.10.
    """
    app = await authorise_app(services, request)
    texts, picture = await _read_form_in_time(request)
    changes = {name: _checked_text(name, texts[name]) for name in ("subject", "description") if name in texts}
    if not changes and picture is None:
        raise ApiError(ErrorCode.FIELD_MISSING, "Name at least one of subject, description and file.")
    async with direct_call_deadline(app, "change of a group"):
        group_id = await _group_in_path(services, app, request)
        result = await call_operator(services, app, ChangeGroup(group_id, **changes, picture=picture))
    return _accepted(result)


async def delete_group(services: Services, request: Request) -> ApiResponse:
    """Delete a group. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    _checked_form(request)
    async with direct_call_deadline(app, "deletion of a group"):
        group_id = await _group_in_path(services, app, request)
        return _accepted(await call_operator(services, app, DeleteGroup(group_id)))


async def reset_invite_link(services: Services, request: Request) -> ApiResponse:
    """Return a new invite link of a group; the earlier one opens it no more. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    _checked_form(request)
    async with direct_call_deadline(app, "invite link"):
        group_id = await _group_in_path(services, app, request)
        link = await call_operator(services, app, ResetInviteLink(group_id))
    return ApiResponse({"invite_link": link, "messaging_product": _PRODUCT, "status": "success"})


async def remove_participants(services: Services, request: Request) -> ApiResponse:
    """Remove participants from a group; a callback reports who was removed. Source: ledger 1.10."""
    app = await authorise_app(services, request)
    form = _checked_form(request)
    accepted = "a list of objects with user, a phone number"
    users = read_json(form.required("participants", accepted, "List"), _users, name="participants", accepted=accepted)
    if not users:
        raise ApiError(ErrorCode.FIELD_BROKEN, "participants must name at least one user.")
    async with direct_call_deadline(app, "removal of participants"):
        group_id = await _group_in_path(services, app, request)
        result = await call_operator(services, app, RemoveParticipants(group_id, [user.user for user in users]))
    return _accepted(result)


def _accepted(result: GroupRequest) -> ApiResponse:
    return ApiResponse({"messaging_product": _PRODUCT, "request_id": result.request_id, "status": "success"})


async def _group_in_path(services: Services, app: App, request: Request) -> str:
    """Return the id of the group in the path, which must be a group of the app's number.

    Our token at the operator may open many numbers, so the operator lists the groups of this one.

    Raises:
        ApiError: 404, it is not.
    """
    group_id = request.path["group_id"]
    if group_id not in await call_operator(services, app, ListGroupSubjects(number_of(app))):
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "The path must name a group of the app's number.")
    return group_id


def _checked_form(request: Request) -> Form:
    form = request.form_or_json()
    if form.required("messaging_product", _PRODUCT) != _PRODUCT:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"messaging_product must be {_PRODUCT}.")
    return form


def _checked_text(name: str, text: str) -> str:
    most = MAX_SUBJECT_CHARS if name == "subject" else MAX_GROUP_TEXT_CHARS
    if len(text) > most:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be at most {most} characters.")
    return text


async def _read_form_in_time(request: Request) -> tuple[dict[str, str], GroupPicture | None]:
    try:
        async with asyncio.timeout(_PICTURE_TIMEOUT_S):
            return await _read_form(request)
    except TimeoutError as error:
        raise ApiError(
            ErrorCode.FIELD_MISSING, f"The form did not arrive within {_PICTURE_TIMEOUT_S} seconds."
        ) from error


async def _read_form(request: Request) -> tuple[dict[str, str], GroupPicture | None]:
    """Return the texts of a multipart form and the picture in the part `file`.

    Raises:
        ApiError: a part is too large, or the picture is no JPEG.
    """
    contents: dict[str, bytearray] = {}
    heads: dict[str, PartHead] = {}
    name = ""
    async for part in read_parts(request):
        if isinstance(part, PartHead):
            name = part.name
            heads[name], contents[name] = part, bytearray()
            continue
        contents[name] += part
        if name == "file" and len(contents[name]) > MAX_GROUP_PICTURE_BYTES:
            raise ApiError(ErrorCode.GROUP_PICTURE_TOO_LARGE, f"file must be at most {MAX_GROUP_PICTURE_BYTES} bytes.")
        if name != "file" and len(contents[name]) > _MAX_TEXT_BYTES:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{name[:40]} must be at most {_MAX_TEXT_BYTES} bytes.")
    file = contents.pop("file", bytearray())
    texts: dict[str, str] = {}
    for field, content in contents.items():
        try:
            texts[field] = content.decode()
        except UnicodeDecodeError as error:
            raise ApiError(ErrorCode.UNREADABLE, "The form's texts must be UTF-8.") from error
    return texts, _picture(heads["file"], file, texts) if file else None


def _picture(head: PartHead, content: bytearray, texts: dict[str, Any]) -> GroupPicture:
    if not content.startswith(b"\xff\xd8\xff"):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"file must be a picture of type {GROUP_PICTURE_TYPE}.")
    file_type = texts.get("file_type", GROUP_PICTURE_TYPE)
    if file_type not in (GROUP_PICTURE_TYPE, "image/jpg"):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"file_type must be {GROUP_PICTURE_TYPE}.")
    return GroupPicture(head.file_name or "picture.jpg", GROUP_PICTURE_TYPE, bytes(content))
