"""A number's business profile and conversational components."""

import re
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.base.json_values import list_or_none, object_or_none, text_or_none
from waypost.simulator.apis.errors import bad_parameter, no_such_object, too_many_elements
from waypost.simulator.apis.links import is_valid_link, signed_link
from waypost.simulator.apis.parameters import ProductParameters, given_parameters, must, text_between
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call, Download, parse_parameter
from waypost.simulator.media.uploads import find_by_handle
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import requested_fields, unknown_field
from waypost.simulator.state.records import AUTOMATION, PICTURE_PREFIX, PROFILE
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import MESSAGING

operation = GraphOperations()

PICTURES: Final = "profile_pictures"
"""The first path segment of the URLs of profile pictures; they need no token."""
_PICTURE_TYPES: Final = ("image/jpeg", "image/jpg", "image/png")
# Source: the operator's page "Business profiles", `vertical`.
VERTICALS: Final = (
    "UNDEFINED", "OTHER", "AUTO", "BEAUTY", "APPAREL", "EDU", "ENTERTAIN", "EVENT_PLAN", "FINANCE",
    "GROCERY", "GOVT", "HOTEL", "HEALTH", "NONPROFIT", "PROF_SERVICES", "RETAIL", "TRAVEL",
    "RESTAURANT", "ALCOHOL", "ONLINE_GAMBLING", "PHYSICAL_GAMBLING", "OTC_DRUGS",
    "MATRIMONY_SERVICE", "NOT_A_BIZ",
)  # fmt: skip
_EMAIL: Final = re.compile(r"[^@\s]{1,100}@[^@\s]{1,100}\.[^@\s]{1,100}")
_MAX_PROMPTS: Final = 4
_MAX_PROMPT_CHARS: Final = 80
_MAX_COMMANDS: Final = 30
_MAX_COMMAND_NAME_CHARS: Final = 32
_MAX_COMMAND_TEXT_CHARS: Final = 256


def _is_email(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 128 and (not value or _EMAIL.fullmatch(value) is not None)


def _websites(name: str, value: Any) -> Any:
    websites = list_or_none(value)
    if (
        websites is None
        or len(websites) > 2
        or not all(isinstance(site, str) and len(site) <= 256 and re.match(r"https?://\S", site) for site in websites)
    ):
        raise bad_parameter(
            f"Param {name} must be an array of at most 2 addresses with http:// or https://, 256 characters each."
        )
    return websites


class ProfileParameters(ProductParameters, frozen=True):
    """The members of a profile that may be set. Source: the operator's page "Business profiles"."""

    about: Annotated[str, text_between(1, 139)] = ""
    address: Annotated[str, text_between(0, 256)] = ""
    description: Annotated[str, text_between(0, 512)] = ""
    email: Annotated[str, must("be an e-mail address of at most 128 characters", _is_email)] = ""
    vertical: Annotated[str, must(f"be one of {{{', '.join(VERTICALS)}}}", lambda value: value in ("", *VERTICALS))] = (
        ""
    )
    websites: Annotated[tuple[str, ...], _websites] = ()


_PROFILE_FIELDS: Final = ProfileParameters.__struct_fields__[1:]


def _decode_list(value: object) -> object:
    """Return a value, decoded if it is JSON text: the operator accepts a list also as JSON text."""
    return parse_parameter(value) if isinstance(value, str) else value


def _welcome(_name: str, value: Any) -> bool:
    return str(value).lower() == "true"


def _prompts(name: str, value: Any) -> list[Any]:
    prompts = list_or_none(_decode_list(value))
    if prompts is not None and len(prompts) > _MAX_PROMPTS:
        raise too_many_elements(name, _MAX_PROMPTS, len(prompts))
    if prompts is None or not all(
        isinstance(prompt, str) and 0 < len(prompt) <= _MAX_PROMPT_CHARS for prompt in prompts
    ):
        raise bad_parameter(
            f"Param {name} must be an array of at most {_MAX_PROMPTS} texts of 1 to {_MAX_PROMPT_CHARS} characters."
        )
    return prompts


def _commands(_name: str, value: Any) -> list[dict[str, str]]:
    items = list_or_none(_decode_list(value))
    if items is None or len(items) > _MAX_COMMANDS:
        raise bad_parameter(f"Param commands must be an array of at most {_MAX_COMMANDS} commands.")
    commands: list[dict[str, str]] = []
    for number, item in enumerate(items):
        command = object_or_none(item) or {}
        name = text_or_none(command.get("command_name")) or ""
        text = text_or_none(command.get("command_description")) or ""
        for member, value, longest in (
            ("command_name", name, _MAX_COMMAND_NAME_CHARS),
            ("command_description", text, _MAX_COMMAND_TEXT_CHARS),
        ):
            if len(value) > longest:
                raise bad_parameter(f"Param commands[{number}]['{member}'] must be at most {longest} characters long.")
        if not name or not text:
            raise bad_parameter(f"Param commands[{number}] must have a command_name and a command_description.")
        commands.append({"command_name": name, "command_description": text})
    return commands


class AutomationParameters(Struct, frozen=True):
    """A number's conversational components.

    Source: the operator's page "Conversational components"; facts of ice breakers: 4 of 80.
    """

    enable_welcome_message: Annotated[bool, _welcome] = False
    prompts: Annotated[tuple[str, ...], _prompts] = ()
    commands: Annotated[tuple[dict[str, str], ...], _commands] = ()


@operation("profile.read", "GET", Number, "whatsapp_business_profile", permission=MESSAGING)
async def show_profile(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's business profile. Source: the operator's page "Business profiles"."""
    profile = state.record(number.phone_number_id, PROFILE)
    view: dict[str, Any] = {name: profile[name] for name in _PROFILE_FIELDS if name in profile}
    if "picture" in profile:
        key = state.accounts.by_id[number.waba_id].token
        view["profile_picture_url"] = signed_link(
            call.origin, f"/{PICTURES}/{number.phone_number_id}", key, profile["picture"]["name"]
        )
    view["messaging_product"] = "whatsapp"
    names = requested_fields(call)
    for name in names:
        if name not in (*_PROFILE_FIELDS, "profile_picture_url", "messaging_product", "id"):
            raise unknown_field(name, "WhatsAppBusinessProfile")
    if names:
        names.append("messaging_product")
        view = {name: value for name, value in view.items() if name in names}
    return {"data": [view]}


@operation("profile.change", "POST", Number, "whatsapp_business_profile", permission=MESSAGING)
async def change_profile(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Change a number's business profile; absent members stay, and an empty handle removes the picture."""
    changes = given_parameters(ProfileParameters, call.fields)
    profile = state.record(number.phone_number_id, PROFILE)
    old_picture = profile.get("picture", {}).get("name")
    handle = call.fields.get("profile_picture_handle")
    if handle == "":
        profile = {name: value for name, value in profile.items() if name != "picture"}
    elif handle is not None:
        upload = find_by_handle(state, handle) if isinstance(handle, str) else None
        if upload is None or upload.file_type not in _PICTURE_TYPES:
            raise bad_parameter("Param profile_picture_handle must be the handle of an image.")
        # A copy, because the upload expires.
        name = f"{PICTURE_PREFIX}{number.phone_number_id}-{upload.upload_id}"
        await state.files.write(name, await state.files.read(upload.content_name))
        changes["picture"] = {"name": name, "mime_type": upload.file_type, "size_bytes": upload.file_length}
    changed = {**profile, **changes}
    await state.save_record(number.phone_number_id, PROFILE, changed)
    if old_picture not in (None, changed.get("picture", {}).get("name")):
        await state.files.remove(old_picture)
    return GRAPH_SUCCESS


@operation("profile_pictures.read", "GET", "profile_pictures", is_open=True)
async def download_picture(state: SimulatorState, call: Call) -> Download:
    """Return the picture behind a link of `show_profile`."""
    number = state.accounts.numbers.get(call.edge)
    account = state.accounts.by_id.get(number.waba_id) if number is not None else None
    picture = state.record(call.edge, PROFILE).get("picture")
    if (
        account is None
        or picture is None
        or not is_valid_link(call.query, account.token, picture["name"], state.clock.now_ms())
    ):
        raise no_such_object(call.method, call.edge)
    path = state.files.path(picture["name"])
    return Download(picture["mime_type"], picture["size_bytes"], path)


@operation("automation.change", "POST", Number, "conversational_automation")
def change_automation(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Change a number's conversational components; absent ones stay unchanged."""
    changes = given_parameters(AutomationParameters, call.fields)
    if not changes:
        raise bad_parameter("One of the parameters enable_welcome_message, prompts, commands is required.")
    transaction.change_record(number.phone_number_id, AUTOMATION, **changes)
    return GRAPH_SUCCESS
