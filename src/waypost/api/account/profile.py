"""Endpoints for an app's number at the operator: profile and conversational components."""

from dataclasses import replace
from typing import Final

import msgspec

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, direct_call_deadline, number_of, unavailable_error
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls.profile import GetComponents, GetProfile, SetComponents, SetProfile
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.operators.contract import OperatorUpload
from waypost.wire.account import ChatCommand, profile_object, read_profile
from waypost.wire.forms import Form, read_json

MAX_ABOUT_CHARS: Final = 139  # Source: the operator's page "Business profiles"
PHOTO_TYPES: Final = ("image/jpeg", "image/png")


_commands: Final = msgspec.json.Decoder(list[ChatCommand])
_prompts: Final = msgspec.json.Decoder(list[str])


async def show_profile(services: Services, request: Request) -> ApiResponse:
    """Return the number's business profile. Source: facts 13, `business/profile`."""
    app = await authorise_app(services, request)
    return await _profile_response(services, app)


async def change_profile(services: Services, request: Request) -> ApiResponse:
    """Change the number's business profile; absent fields stay unchanged. Source: facts 13."""
    app = await authorise_app(services, request)
    change = read_profile(request.form_or_json())
    if change == SetProfile():
        raise ApiError(ErrorCode.FIELD_MISSING, "Name at least one field of the profile.")
    await call_operator(services, app, replace(change, number_id=number_of(app)))
    return await _profile_response(services, app)


async def show_about(services: Services, request: Request) -> ApiResponse:
    """Return the number's about text. Source: facts 13, `business/profile/about`."""
    app = await authorise_app(services, request)
    profile = await call_operator(services, app, GetProfile(number_of(app)))
    return ApiResponse({"status": "success", "about": {"message": profile.about}})


async def change_about(services: Services, request: Request) -> ApiResponse:
    """Set the number's about text. Source: facts 13."""
    app = await authorise_app(services, request)
    about = request.form_or_json().required("about", f"1 to {MAX_ABOUT_CHARS} characters")
    if len(about) > MAX_ABOUT_CHARS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"about must be at most {MAX_ABOUT_CHARS} characters.")
    await call_operator(services, app, SetProfile(number_of(app), about=about))
    return ApiResponse({"status": "success", "about": {"message": about}})


async def show_photo(services: Services, request: Request) -> ApiResponse:
    """Return the URL of the number's picture; empty if it has none. Source: facts 13."""
    app = await authorise_app(services, request)
    profile = await call_operator(services, app, GetProfile(number_of(app)))
    return ApiResponse({"status": "success", "message": profile.picture_url})


async def change_photo(services: Services, request: Request) -> ApiResponse:
    """Set the number's picture from a file or a public URL; some clients call the part `image`.

    Errors in this order: 401, 429, 400 no file or another type, 413, 400 the operator's error, 503
    also if the operator takes longer than 10 s for the file and the change together.

    Source: facts 13, `business/profile/photo`.
    """
    app = await authorise_app(services, request)
    number = number_of(app)
    account = await services.directory.operator_account_of(app)
    if account is None:
        raise ApiError(ErrorCode.APP_NOT_APPROVED, "The app has no business account yet.")
    media = await services.uploads.store_from_request(app, request, for_handle=True, names=("file", "image"))
    if media.mime_type not in PHOTO_TYPES:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"file must be one of {', '.join(PHOTO_TYPES)}.")
    async with direct_call_deadline(app, "business photo"):
        path = await services.files.local_path(media.sha256)
        sample = await services.operators.adapter(account).upload_sample(account, media, path)
        match sample:
            case OperatorUpload(operator_id=handle):
                await call_operator(services, app, SetProfile(number, picture=handle))
            case OperatorRejected(text=text):
                raise ApiError(ErrorCode.OPERATOR_REJECTED, text)
            case OperatorUnavailable(text=text):
                raise unavailable_error(app, "business photo", text)
    return ApiResponse({"status": "success", "message": "profile picture updated successfully"})


async def delete_photo(services: Services, request: Request) -> ApiResponse:
    """Remove the number's picture; the response is the same if it has none.

    Source: ledger 1.9; decision 0065: the operator accepts an empty handle for it.
    """
    app = await authorise_app(services, request)
    await call_operator(services, app, SetProfile(number_of(app), picture=""))
    return ApiResponse({"status": "success", "message": "profile photo deleted successfully"})


async def show_components(services: Services, request: Request) -> ApiResponse:
    """Return the number's ice breakers, commands and welcome message. Source: facts 13."""
    app = await authorise_app(services, request)
    number = number_of(app)
    components = await call_operator(services, app, GetComponents(number))
    return ApiResponse({"conversational_automation": components.raw, "id": number})


async def change_components(services: Services, request: Request) -> ApiResponse:
    """Set the number's ice breakers, commands and welcome message; absent fields stay unchanged.

    The rules are the operator's, so its error object is the response, as documented; `message` has its text.

    Source: ledger 1.9, `conversational/component`; facts 13.
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    welcome = form.flag("enable_welcome_message") if form.text("enable_welcome_message") else None
    commands = _read_commands(form) if form.text("commands") is not None else None
    prompts = _read_prompts(form) if form.text("prompts") is not None else None
    if welcome is None and commands is None and prompts is None:
        raise ApiError(ErrorCode.FIELD_MISSING, "Name enable_welcome_message, commands, prompts or several of them.")
    try:
        result = await call_operator(services, app, SetComponents(number_of(app), welcome, commands, prompts))
    except ApiError as error:
        raise _error_object(error) from None
    return ApiResponse({"status": "success", "success": result.success})


def _error_object(error: ApiError) -> ApiError:
    """Return the operator's error with its object, and any other error as it is.

    The operator's trace id is not known here, so it is empty.
    """
    if error.code is not ErrorCode.OPERATOR_REJECTED:
        return error
    members = {"code": error.operator_code, "fbtrace_id": "", "message": error.explanation, "type": "OAuthException"}
    return ApiError(ErrorCode.OPERATOR_ERROR_OBJECT, error.explanation, members={"error": members})


def _read_commands(form: Form) -> list[tuple[str, str]]:
    commands = read_json(
        form.text("commands") or "[]",
        _commands,
        name="commands",
        accepted="a list of objects with command_name and command_description",
    )
    return [(command.command_name, command.command_description) for command in commands]


def _read_prompts(form: Form) -> list[str]:
    return read_json(form.text("prompts") or "[]", _prompts, name="prompts", accepted="a list of texts")


async def _profile_response(services: Services, app: App) -> ApiResponse:
    profile = await call_operator(services, app, GetProfile(number_of(app)))
    return ApiResponse({"status": "success", "profile": profile_object(profile)})
