"""The groups of an app's number (decision 0062): the operator stores them, and every call goes there."""

import asyncio
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import PartHead, Request, read_parts
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.base.json_values import coerced_text, objects_in
from waypost.domain.errors import ApiError, ErrorCode
from waypost.operators.contract import GraphFile
from waypost.wire.responses import passed_on, response

MAX_SUBJECT_CHARS: Final = 128
MAX_GROUP_TEXT_CHARS: Final = 2048
MAX_GROUP_PICTURE_BYTES: Final = 5 * 1024 * 1024
GROUP_PICTURE_TYPE: Final = "image/jpeg"
_MOST_CHARS: Final = {"subject": MAX_SUBJECT_CHARS, "description": MAX_GROUP_TEXT_CHARS}
_PICTURE_TIMEOUT_S: Final = 30
_MAX_TEXT_BYTES: Final = 16 * 1024
_PRODUCT: Final = {"messaging_product": "whatsapp"}
_GROUP: Final = f"{APP}/group/{{group_id}}"
_FIELDS: Final = (  # Source: ledger 1.10; the operator's page "Groups"
    "subject",
    "description",
    "participants",
    "total_participant_count",
    "creation_timestamp",
    "suspended",
    "join_approval_mode",
)
_NOT_AT_OPERATOR: Final = ("admins", "id")
"""Documented fields that the operator does not have, or always returns: the business is the only administrator."""
_SHOWN: Final = ("subject", "description", "participants", "total_participant_count")

operation = Operations("ledger 1.10")
_STATUS: Final = Literal["success"]
_ACCEPTED: Final = response(request_id=str, messaging_product=Literal["whatsapp"], status=_STATUS)
"""Of an accepted change; a webhook with the same id reports its result."""


class Product(Struct):
    """The product, which every change names."""

    messaging_product: Annotated[Literal["whatsapp"], Field("Always whatsapp.", "whatsapp", "whatsapp")]


class NewGroup(Product):
    """A group to create."""

    subject: Annotated[
        str,
        Field(
            "The group's subject, 1 to 128 characters.",
            "Tea lovers",
            "1 to 128 characters",
            MAX_SUBJECT_CHARS,
            strip=True,
        ),
    ]
    description: Annotated[
        str, Field("The group's description, at most 2048 characters.", "All about tea", "", MAX_GROUP_TEXT_CHARS)
    ] = ""


class GroupPage(Struct):
    """A page of the list; the cursors are the operator's."""

    limit: Annotated[
        int, Field("Groups per page, 1 to 100; 10 when absent.", "10", "a number from 1 to 100", between=(1, 100))
    ] = 10
    after: Annotated[str, Field("The cursor at the end of the previous page.")] = ""
    before: Annotated[str, Field("The cursor at the start of the next page.")] = ""


class GroupFields(Struct):
    """The members of a group to return."""

    fields: Annotated[
        str,
        Field(
            "The members to return, separated by commas; subject, description and participants when absent.",
            "subject,participants",
            f"some of {','.join(_FIELDS)}",
        ),
    ] = ""


class GroupChange(Struct):
    """A change of a group, as a form in parts."""

    messaging_product: Annotated[str, Field("The product: whatsapp.", "whatsapp")] = ""
    subject: Annotated[str, Field("Another subject of the group.", "Tea friends", "", MAX_SUBJECT_CHARS)] = ""
    description: Annotated[
        str, Field("The group's description, at most 2048 characters.", "All about tea", "", MAX_GROUP_TEXT_CHARS)
    ] = ""
    file_type: Annotated[str, Field("The type of the picture: image/jpeg.", GROUP_PICTURE_TYPE)] = ""
    file: Annotated[bytes, Field("A JPEG picture of at most 5 MB.", "group.jpg")] = b""


class GroupUser(Struct):
    """A participant of a group."""

    user: str


class Participants(Product):
    """The participants to remove."""

    participants: Annotated[
        list[GroupUser],
        Field(
            "The participants to remove, as a JSON array of objects with `user`.",
            '[{"user":"15550002001"}]',
            "a list of objects with user, a phone number",
            kind="List",
        ),
    ]


@operation("POST", f"{APP}/group", _ACCEPTED, deadline="creation of a group", idempotency=IdempotencyMode.MARKED_FIRST)
async def create_group(call: AppCall, fields: NewGroup) -> dict[str, Any]:
    """Create a group; its id and invite link come in a callback.

    Under a key, 409 if the same request was begun before and there is a group with its subject.
    """
    subject = fields.subject
    if call.was_begun_before and subject in (await _subjects(call)).values():
        raise ApiError(ErrorCode.KEY_IN_USE, "A group with this subject exists: list the groups.")
    body = _PRODUCT | {"subject": subject} | omit_empty({"description": fields.description})
    return _accepted(await call.graph("POST", f"{call.number}/groups", body))


@operation("GET", f"{APP}/group", passed_on(data=list[dict[str, Any]], status=_STATUS))
async def list_groups(call: AppCall, query: GroupPage) -> dict[str, Any]:
    """Return a page of the number's groups."""
    page = omit_empty({"limit": str(query.limit), "after": query.after, "before": query.before})
    return {**await call.graph_page(f"{call.number}/groups", page), "status": "success"}


@operation(
    "GET",
    _GROUP,
    passed_on(messaging_product=Literal["whatsapp"], status=_STATUS),
    deadline="group",
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.RESOURCE_NOT_FOUND),
)
async def show_group(call: AppCall, query: GroupFields) -> dict[str, Any]:
    """Return one group with the requested fields."""
    names = [name.strip() for name in query.fields.split(",") if name.strip()]
    if any(name not in (*_FIELDS, *_NOT_AT_OPERATOR) for name in names):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"fields must be some of {','.join(_FIELDS)}.")
    fields = [name for name in names if name in _FIELDS] or _SHOWN
    group = await call.graph("GET", await _group_in_path(call), query={"fields": ",".join(fields)})
    return {**_PRODUCT, **group, "status": "success"}


@operation(
    "PUT",
    _GROUP,
    _ACCEPTED,
    body=GroupChange,
    body_format=BodyFormat.MULTIPART,
    errors=(ErrorCode.FIELD_MISSING, ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.GROUP_PICTURE_TOO_LARGE),
)
async def change_group(call: AppCall) -> dict[str, Any]:
    """Change subject, description or picture of a group, by a multipart form."""
    try:
        async with asyncio.timeout(_PICTURE_TIMEOUT_S):
            texts, picture = await _read_form(call.request)
    except TimeoutError as error:
        text = f"The form did not arrive within {_PICTURE_TIMEOUT_S} seconds."
        raise ApiError(ErrorCode.FIELD_MISSING, text) from error
    changes = {name: texts[name] for name in _MOST_CHARS if name in texts}
    for name, text in changes.items():
        if len(text) > _MOST_CHARS[name]:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be at most {_MOST_CHARS[name]} characters.")
    if not changes and picture is None:
        raise ApiError(ErrorCode.FIELD_MISSING, "Name at least one of subject, description and file.")
    async with call.deadline("change of a group"):
        group_id = await _group_in_path(call)
        files = {} if picture is None else {"profile_picture_file": picture}
        return _accepted(await call.graph("POST", group_id, _PRODUCT | changes, files=files))


@operation("DELETE", _GROUP, _ACCEPTED, deadline="deletion of a group", errors=(ErrorCode.RESOURCE_NOT_FOUND,))
async def delete_group(call: AppCall, fields: Product) -> dict[str, Any]:
    """Delete a group."""
    return _accepted(await call.graph("DELETE", await _group_in_path(call)))


@operation(
    "POST",
    f"{_GROUP}/invite_link",
    response(invite_link=str, messaging_product=Literal["whatsapp"], status=_STATUS),
    deadline="invite link",
    errors=(ErrorCode.RESOURCE_NOT_FOUND,),
)
async def reset_invite_link(call: AppCall, fields: Product) -> dict[str, Any]:
    """Return a new invite link of a group; the earlier one opens it no more."""
    renewed = await call.graph("POST", f"{await _group_in_path(call)}/invite_link", _PRODUCT)
    link = coerced_text(renewed.get("invite_link"))
    if not link:
        raise call.unavailable("invite link", "the operator's response has no invite link")
    return {"invite_link": link, **_PRODUCT, "status": "success"}


@operation(
    "DELETE",
    f"{_GROUP}/participants",
    _ACCEPTED,
    deadline="removal of participants",
    errors=(ErrorCode.RESOURCE_NOT_FOUND,),
)
async def remove_participants(call: AppCall, fields: Participants) -> dict[str, Any]:
    """Remove participants from a group; a callback reports who was removed."""
    if not fields.participants:
        raise ApiError(ErrorCode.FIELD_BROKEN, "participants must name at least one user.")
    body = _PRODUCT | {"participants": [{"user": one.user} for one in fields.participants]}
    return _accepted(await call.graph("DELETE", f"{await _group_in_path(call)}/participants", body))


def _accepted(change: dict[str, Any]) -> dict[str, Any]:
    return {"request_id": coerced_text(change.get("request_id")), **_PRODUCT, "status": "success"}


async def _subjects(call: AppCall) -> dict[str, str]:
    """Return the subjects of all groups of the number, by the groups' ids."""
    groups = objects_in(await call.graph_list(f"{call.number}/groups", "groups"))
    return {str(group["id"]): coerced_text(group.get("subject")) for group in groups if group.get("id")}


async def _group_in_path(call: AppCall) -> str:
    """Return the id of the group in the path, which must be a group of the app's number.

    Our token at the operator may open many numbers, so the operator lists the groups of this one.
    """
    group_id = call.request.path["group_id"]
    if group_id not in await _subjects(call):
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "The path must name a group of the app's number.")
    return group_id


async def _read_form(request: Request) -> tuple[dict[str, str], GraphFile | None]:
    """Return the texts of a multipart form and the picture in the part `file`."""
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
    if not file:
        return texts, None
    if not file.startswith(b"\xff\xd8\xff"):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"file must be a picture of type {GROUP_PICTURE_TYPE}.")
    if texts.get("file_type", GROUP_PICTURE_TYPE) not in (GROUP_PICTURE_TYPE, "image/jpg"):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"file_type must be {GROUP_PICTURE_TYPE}.")
    return texts, GraphFile(heads["file"].file_name or "picture.jpg", GROUP_PICTURE_TYPE, bytes(file))
