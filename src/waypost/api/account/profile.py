"""An app's number at the operator: its business profile and its conversational components."""

from typing import Annotated, Any, Final

from msgspec import Struct, to_builtins

from waypost.api.fields import Field
from waypost.api.operation import APP, NO_ACCOUNT, AppCall, Operations
from waypost.api.route import BodyFormat
from waypost.base.json_values import boolean_of, coerced_text, list_of, object_of, texts_in
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.operators.contract import OperatorUpload
from waypost.wire.responses import response, success

MAX_ABOUT_CHARS: Final = 139  # Source: the operator's page "Business profiles"
PHOTO_TYPES: Final = ("image/jpeg", "image/png")
_ADDRESS: Final = ("add_line1", "add_line2", "city", "state", "pin_code", "country")
_MEMBERS: Final = "about,address,description,email,profile_picture_url,websites,vertical"
_UPLOAD_ERRORS: Final = (
    ErrorCode.FIELD_MISSING,
    ErrorCode.FIELD_BROKEN,
    ErrorCode.WRONG_FILE_TYPE,
    ErrorCode.FILE_TOO_LARGE,
    ErrorCode.NO_ROOM,
    ErrorCode.MEDIA_QUOTA,
    ErrorCode.MEDIA_NOT_FETCHED,
)
_PHOTO_MEMBER: Final = "profile_picture_handle"

operation = Operations("facts 13")
_ABOUT: Final = success(about=response(message=str))
_PHOTO: Final = success(message=str)
"""The picture's URL, or what was done."""


class ProfileChange(Struct, rename="camel"):
    """Fields of the profile to change; absent ones stay as they are, and empty ones are cleared."""

    add_line1: Annotated[
        str | None, Field("Part of the postal address, which the operator stores as one line.", "1 Main Road")
    ] = None
    add_line2: Annotated[str | None, Field("Part of the postal address.")] = None
    city: Annotated[str | None, Field("Part of the postal address.", "Springfield")] = None
    state: Annotated[str | None, Field("Part of the postal address.")] = None
    pin_code: Annotated[str | None, Field("Part of the postal address.", "12345")] = None
    country: Annotated[str | None, Field("Part of the postal address.", "US")] = None
    vertical: Annotated[str | None, Field("The industry of the business: one of the operator's values.", "RETAIL")] = (
        None
    )
    website1: Annotated[
        str | None, Field("A website, with http:// or https://; both are set together.", "https://shop.example")
    ] = None
    website2: Annotated[str | None, Field("Another website.")] = None
    desc: Annotated[str | None, Field("The description of the business.", "Everything for ships.")] = None
    profile_email: Annotated[str | None, Field("The business's e-mail address.", "shop@acme.test")] = None


class NewAbout(Struct):
    """An about text."""

    about: Annotated[
        str,
        Field(
            "The about text under the number's name, 1 to 139 characters.",
            "Open all day.",
            f"1 to {MAX_ABOUT_CHARS} characters",
            MAX_ABOUT_CHARS,
        ),
    ]


class NewPhoto(Struct):
    """A picture, as a form in parts."""

    file: Annotated[
        bytes,
        Field(
            "A JPEG or PNG picture, or its public URL; required unless `image` is there.", "https://shop.example/a.png"
        ),
    ] = b""
    image: Annotated[bytes, Field("Another name of `file`.")] = b""
    file_type: Annotated[str, Field("The file's MIME type; detected from the bytes when absent.", "image/png")] = ""


class ChatCommand(Struct):
    """A command that users can choose. The operator checks its lengths."""

    command_name: str
    command_description: str


class ComponentChange(Struct):
    """Conversational components to set; absent ones stay as they are."""

    enable_welcome_message: Annotated[
        bool | None, Field("true makes a user's first message report that a chat was opened.", "false")
    ] = None
    commands: Annotated[
        list[ChatCommand] | None,
        Field(
            "The commands, as a JSON array.",
            '[{"command_name":"hours","command_description":"When we are open"}]',
            "a list of objects with command_name and command_description",
            empty="[]",
        ),
    ] = None
    prompts: Annotated[
        list[str] | None,
        Field(
            "The ice breakers, as a JSON array: at most 4, of 1 to 80 characters.",
            '["Where is my order?"]',
            "a list of texts",
            empty="[]",
        ),
    ] = None


class Profile(Struct, rename="camel"):
    """A number's profile; unset fields are empty.

    Clients of an older shape read the address in lines. The operator has one line, so the first is the whole.

    Source: facts 13, `business/profile`; public clients: `addressLine1`.
    """

    address: str
    address_line1: str
    desc: str
    profile_email: str
    vertical: str
    website1: str
    website2: str


@operation("GET", f"{APP}/business/profile", success(profile=Profile), by_key=True)
async def show_business_profile(call: AppCall) -> dict[str, Any]:
    """Return the number's business profile."""
    members = await _profile_members(call)
    first, second, *_ = (*texts_in(members.get("websites")), "", "")
    address, description, email, vertical = (
        coerced_text(members.get(name)) for name in ("address", "description", "email", "vertical")
    )
    profile = Profile(address, address, description, email, vertical, first, second)
    return {"status": "success", "profile": profile}


@operation(
    "PUT",
    f"{APP}/business/profile",
    success(profile=Profile),
    errors=(ErrorCode.FIELD_MISSING, ErrorCode.FILE_TOO_LARGE),
    by_key=True,
)
async def change_business_profile(call: AppCall, fields: ProfileChange) -> dict[str, Any]:
    """Change the number's business profile; absent fields stay unchanged.

    The address lines are joined in their order; both web sites are one list.
    """
    lines = [getattr(fields, name) for name in _ADDRESS]
    sites = [fields.website1, fields.website2]
    change = {
        "address": None if set(lines) == {None} else ", ".join(line.strip() for line in lines if line and line.strip()),
        "description": fields.desc,
        "email": fields.profile_email,
        "websites": None if set(sites) == {None} else [site for site in sites if site],
        "vertical": fields.vertical,
    }
    members = {name: value for name, value in change.items() if value is not None}
    if not members:
        raise ApiError(
            ErrorCode.FIELD_MISSING,
            "At least one of addLine1, addLine2, city, state, pinCode, country, vertical, website1, website2, desc and "
            "profileEmail is required.",
        )
    await _set_profile(call, members)
    return await show_business_profile(call)


@operation("GET", f"{APP}/business/profile/about", _ABOUT, by_key=True)
async def show_about_text(call: AppCall) -> dict[str, Any]:
    """Return the number's about text."""
    return {"status": "success", "about": {"message": coerced_text((await _profile_members(call)).get("about"))}}


@operation("PUT", f"{APP}/business/profile/about", _ABOUT, by_key=True)
async def change_about_text(call: AppCall, fields: NewAbout) -> dict[str, Any]:
    """Set the number's about text."""
    await _set_profile(call, {"about": fields.about})
    return {"status": "success", "about": {"message": fields.about}}


@operation("GET", f"{APP}/business/profile/photo", _PHOTO, by_key=True)
async def show_profile_picture(call: AppCall) -> dict[str, Any]:
    """Return the URL of the number's picture; empty if it has none."""
    return {"status": "success", "message": coerced_text((await _profile_members(call)).get("profile_picture_url"))}


@operation(
    "PUT",
    f"{APP}/business/profile/photo",
    _PHOTO,
    body=NewPhoto,
    body_format=BodyFormat.MULTIPART,
    errors=_UPLOAD_ERRORS,
    by_key=True,
)
async def change_profile_picture(call: AppCall) -> dict[str, Any]:
    """Set the number's picture from a file or a public URL; some clients call the part `image`.

    503 also if the operator takes longer than 10 s for the file and the change together.
    """
    services, app = call.services, call.app
    account = call.number and await services.directory.operator_account_of(app)
    if not account:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, NO_ACCOUNT)
    media = await services.uploads.store_from_request(app, call.request, for_handle=True, names=("file", "image"))
    if media.mime_type not in PHOTO_TYPES:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"file must be one of {', '.join(PHOTO_TYPES)}.")
    async with call.deadline("business photo"):
        path = await services.files.local_path(media.sha256)
        match await services.operators.adapter(account).upload_sample(account, media, path):
            case OperatorUpload(operator_id=handle):
                await _set_profile(call, {_PHOTO_MEMBER: handle})
            case OperatorRejected(text=text):
                raise ApiError(ErrorCode.OPERATOR_REJECTED, text)
            case OperatorUnavailable(text=text):
                raise call.unavailable("business photo", text)
    return {"status": "success", "message": "profile picture updated successfully"}


@operation("DELETE", f"{APP}/business/profile/photo", _PHOTO, source="ledger 1.9; decision 0065", by_key=True)
async def delete_profile_picture(call: AppCall) -> dict[str, Any]:
    """Remove the number's picture; the response is the same if it has none.

    The operator accepts an empty handle for it (decision 0065).
    """
    await _set_profile(call, {_PHOTO_MEMBER: ""})
    return {"status": "success", "message": "profile photo deleted successfully"}


@operation("GET", f"{APP}/conversational/component", response(conversational_automation=dict[str, Any], id=str))
async def show_conversational_components(call: AppCall) -> dict[str, Any]:
    """Return the number's ice breakers, commands and welcome message."""
    number = await call.graph("GET", call.number, query={"fields": "conversational_automation"})
    return {"conversational_automation": object_of(number.get("conversational_automation")), "id": call.number}


@operation(
    "POST",
    f"{APP}/conversational/component",
    success(success=bool),
    source="ledger 1.9; facts 13",
    errors=(ErrorCode.FIELD_MISSING, ErrorCode.OPERATOR_ERROR_OBJECT),
)
async def change_conversational_components(call: AppCall, fields: ComponentChange) -> dict[str, Any]:
    """Set the number's ice breakers, commands and welcome message; absent fields stay unchanged.

    The rules are the operator's, so its error object is the response, as documented; `message` has its text.
    """
    members = {name: value for name, value in to_builtins(fields).items() if value is not None}
    if not members:
        raise ApiError(ErrorCode.FIELD_MISSING, "Name enable_welcome_message, commands, prompts or several of them.")
    try:
        result = await call.graph("POST", f"{call.number}/conversational_automation", members)
    except ApiError as error:
        raise _error_object(error) from None
    return {"status": "success", "success": boolean_of(result.get("success"), default=True)}


def _error_object(error: ApiError) -> ApiError:
    """Return the operator's error with its object, and any other error as it is.

    The operator's trace id is not known here, so it is empty.
    """
    if error.code is not ErrorCode.OPERATOR_REJECTED:
        return error
    members = {"code": error.operator_code, "fbtrace_id": "", "message": error.explanation, "type": "OAuthException"}
    return ApiError(ErrorCode.OPERATOR_ERROR_OBJECT, error.explanation, members={"error": members})


async def _profile_members(call: AppCall) -> dict[str, Any]:
    """Return the operator's members of the number's profile; none if it has no profile."""
    page = await call.graph_page(f"{call.number}/whatsapp_business_profile", {"fields": _MEMBERS})
    return object_of(next(iter(list_of(page["data"])), None))


async def _set_profile(call: AppCall, members: dict[str, Any]) -> None:
    await call.graph("POST", f"{call.number}/whatsapp_business_profile", {"messaging_product": "whatsapp", **members})
