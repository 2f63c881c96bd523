"""What belongs to an app's number at the operator: profile, block list, conversational components."""

from functools import partial
from typing import Any, Final, cast

import msgspec

from waypost.accept.auth import admitted_app
from waypost.accept.direct import ask, number_of, unavailable
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.accept.time_limit import in_time
from waypost.domain.app import App
from waypost.domain.outcome import Rejected, Unavailable
from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.operators.contract import Ask, Uploaded
from waypost.store.app_users import set_blocked
from waypost.wire.account import (
    BlockedUser,
    ChatCommand,
    changed_by_block,
    failure_of_block,
    profile_object,
    read_profile,
)
from waypost.wire.forms import Form, read_json

MOST_ABOUT: Final = 139  # Source: the operator's page "Business profiles"
PHOTO_TYPES: Final = ("image/jpeg", "image/png")
MOST_BLOCKED: Final = 100
MOST_PROMPTS, MOST_PROMPT = 4, 80  # Source: facts 13, `conversational/component`
_PRODUCT: Final = "whatsapp"


_users: Final = msgspec.json.Decoder(list[BlockedUser])
_commands: Final = msgspec.json.Decoder(list[ChatCommand])
_prompts: Final = msgspec.json.Decoder(list[str])


async def show_profile(services: Services, request: Request) -> Answer:
    """The number's business profile. Source: facts 13, `business/profile`."""
    app = await admitted_app(services, request)
    return await _profile_answer(services, app)


async def change_profile(services: Services, request: Request) -> Answer:
    """Change the number's business profile; what is not named stays. Source: facts 13."""
    app = await admitted_app(services, request)
    changes = read_profile(request.form_or_json())
    if len(changes) == 1:
        raise Refused(Reason.FIELD_MISSING, "Name at least one field of the profile.")
    await ask(services, app, Ask.SET_BUSINESS_PROFILE, number_of(app), body=changes)
    return await _profile_answer(services, app)


async def show_about(services: Services, request: Request) -> Answer:
    """The number's "about" line. Source: facts 13, `business/profile/about`."""
    app = await admitted_app(services, request)
    profile = await _profile(services, app)
    return Answer({"status": "success", "about": {"message": profile.get("about", "")}})


async def change_about(services: Services, request: Request) -> Answer:
    """Set the number's "about" line. Source: facts 13."""
    app = await admitted_app(services, request)
    about = request.form_or_json().required("about", f"1 to {MOST_ABOUT} characters")
    if len(about) > MOST_ABOUT:
        raise Refused(Reason.FIELD_BROKEN, f"about must be at most {MOST_ABOUT} characters.")
    body = {"messaging_product": _PRODUCT, "about": about}
    await ask(services, app, Ask.SET_BUSINESS_PROFILE, number_of(app), body=body)
    return Answer({"status": "success", "about": {"message": about}})


async def show_photo(services: Services, request: Request) -> Answer:
    """The address of the number's picture; empty when it has none. Source: facts 13."""
    app = await admitted_app(services, request)
    profile = await _profile(services, app)
    return Answer({"status": "success", "message": profile.get("profile_picture_url", "")})


async def change_photo(services: Services, request: Request) -> Answer:
    """Set the number's picture from a file or a public address; some clients call the part `image`.

    Refuses in this order: 401, 429, 400 no file or another type, 413, 400 in the operator's words, 503
    also where the operator takes longer than 10 s for the file and the change together.

    Source: facts 13, `business/profile/photo`.
    """
    app = await admitted_app(services, request)
    number = number_of(app)
    account = await services.directory.operator_account_of(app)
    if account is None:
        raise Refused(Reason.APP_NOT_APPROVED, "The app has no business account yet.")
    media = await services.uploads.from_request(app, request, for_handle=True, names=("file", "image"))
    if media.mime_type not in PHOTO_TYPES:
        raise Refused(Reason.FIELD_BROKEN, f"file must be one of {', '.join(PHOTO_TYPES)}.")
    async with in_time(app, "business photo"):
        sample = await services.operator.upload_sample(account, media, services.files.path(media.sha256))
        match sample:
            case Uploaded(operator_id=handle):
                body = {"messaging_product": _PRODUCT, "profile_picture_handle": handle}
                await ask(services, app, Ask.SET_BUSINESS_PROFILE, number, body=body)
            case Rejected(text=text):
                raise Refused(Reason.OPERATOR_REFUSED, text)
            case Unavailable(text=text):
                raise unavailable(app, "business photo", text)
    return Answer({"status": "success", "message": "profile picture updated successfully"})


async def delete_photo(services: Services, request: Request) -> Answer:
    """Remove the number's picture; a number that has none answers alike.

    Source: ledger 1.9; that the operator takes an empty handle for it is decision 0065.
    """
    app = await admitted_app(services, request)
    body = {"messaging_product": _PRODUCT, "profile_picture_handle": ""}
    await ask(services, app, Ask.SET_BUSINESS_PROFILE, number_of(app), body=body)
    return Answer({"status": "success", "message": "profile photo deleted successfully"})


async def block(services: Services, request: Request) -> Answer:
    """Block users of the number. Source: facts 13, `user/block`."""
    return await _change_block_list(services, request, Ask.BLOCK)


async def block_one(services: Services, request: Request) -> Answer:
    """Block or unblock one user of the number.

    Refuses in this order: 401, 429, 400 fields, 400 in the operator's words, also where it names the user
    among those that could not be blocked, 503.

    Source: ledger 1.9, `PUT block`.
    """
    app = await admitted_app(services, request)
    form = request.form_or_json()
    phone = read_phone_number(form.required("phone", "a phone number of 8 to 15 digits"))
    if phone is None:
        raise Refused(Reason.FIELD_BROKEN, "phone must be a phone number of 8 to 15 digits.")
    form.required("isBlocked", "true or false")
    what = Ask.BLOCK if form.flag("isBlocked") else Ask.UNBLOCK
    told = await _ask_to_block(services, app, what, [phone])
    why = failure_of_block(told)
    if why is not None:
        raise Refused(Reason.OPERATOR_REFUSED, why)
    return Answer({"status": "success"})


async def unblock(services: Services, request: Request) -> Answer:
    """Take users off the number's block list. Source: facts 13, `user/unblock`."""
    return await _change_block_list(services, request, Ask.UNBLOCK)


async def block_list(services: Services, request: Request) -> Answer:
    """Whom the number has blocked, page by page, as the operator lists them. Source: facts 13."""
    app = await admitted_app(services, request)
    wished = {name: request.query(name) for name in ("limit", "after", "before")}
    query = {name: text for name, text in wished.items() if text}
    if not query.get("limit", "1").isdecimal():
        raise Refused(Reason.FIELD_BROKEN, "limit must be a number.")
    told = await ask(services, app, Ask.BLOCK_LIST, number_of(app), query=query)
    return Answer({"data": [], **told, "status": "success"})


async def show_components(services: Services, request: Request) -> Answer:
    """The number's ice breakers, commands and welcome message. Source: facts 13."""
    app = await admitted_app(services, request)
    number = number_of(app)
    told = await ask(services, app, Ask.COMPONENTS, number)
    components: Any = told.get("conversational_automation") or {}
    return Answer({"conversational_automation": components, "id": number})


async def change_components(services: Services, request: Request) -> Answer:
    """Set the number's ice breakers, commands and welcome message; what is not named stays.

    Refuses ice breakers beyond 4 or 80 characters itself; the rest of the rules are the operator's.

    Source: facts 13, `conversational/component`.
    """
    app = await admitted_app(services, request)
    form = request.form_or_json()
    body: dict[str, Any] = {}
    if form.text("enable_welcome_message"):
        body["enable_welcome_message"] = form.flag("enable_welcome_message")
    if form.text("commands") is not None:
        body["commands"] = read_json(
            form.text("commands") or "[]",
            _commands,
            name="commands",
            accepted="a list of objects with command_name and command_description",
        )
    if form.text("prompts") is not None:
        body["prompts"] = _read_prompts(form)
    if not body:
        raise Refused(Reason.FIELD_MISSING, "Name enable_welcome_message, commands, prompts or several of them.")
    told = await ask(services, app, Ask.SET_COMPONENTS, number_of(app), body=body)
    return Answer({"status": "success", "success": told.get("success") is not False})


def _read_prompts(form: Form) -> list[str]:
    prompts = read_json(form.text("prompts") or "[]", _prompts, name="prompts", accepted="a list of texts")
    if len(prompts) > MOST_PROMPTS or any(not 1 <= len(one) <= MOST_PROMPT for one in prompts):
        raise Refused(
            Reason.FIELD_BROKEN, f"prompts must be at most {MOST_PROMPTS} texts of 1 to {MOST_PROMPT} characters."
        )
    return prompts


async def _change_block_list(services: Services, request: Request, what: Ask) -> Answer:
    app = await admitted_app(services, request)
    form = request.form_or_json()
    if form.required("messaging_product", _PRODUCT) != _PRODUCT:
        raise Refused(Reason.FIELD_BROKEN, f"messaging_product must be {_PRODUCT}.")
    users = read_json(
        form.required("block_users", "a list of objects with user"),
        _users,
        name="block_users",
        accepted="a list of objects with user, a phone number",
    )
    if not 1 <= len(users) <= MOST_BLOCKED:
        raise Refused(Reason.FIELD_BROKEN, f"block_users must name 1 to {MOST_BLOCKED} users.")
    told = await _ask_to_block(services, app, what, [one.user for one in users])
    return Answer({**told, "status": "success"})


async def _ask_to_block(services: Services, app: App, what: Ask, users: list[str]) -> dict[str, Any]:
    """Have the operator block or unblock users, and record whom it has, for `userStatus`."""
    body = {"messaging_product": _PRODUCT, "block_users": [{"user": user} for user in users]}
    told = await ask(services, app, what, number_of(app), body=body)
    is_blocked = what is Ask.BLOCK
    changed = changed_by_block(told, "added_users" if is_blocked else "removed_users")
    if changed:
        await services.database.write(partial(set_blocked, app=app, phone_numbers=changed, blocked=is_blocked))
    return told


async def _profile(services: Services, app: App) -> dict[str, Any]:
    told = await ask(services, app, Ask.BUSINESS_PROFILE, number_of(app))
    match told:
        case {"data": [found, *_]} if isinstance(found, dict):
            return cast(dict[str, Any], found)
        case _:
            return {}


async def _profile_answer(services: Services, app: App) -> Answer:
    return Answer({"status": "success", "profile": profile_object(await _profile(services, app))})
