"""The username of an app's number, and the usernames that its business prefers."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple

from waypost.api.apps.settings import set_preferences
from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import StatusFirst, Success
from waypost.base.json_values import coerced_text, list_of, objects_in

MAX_USERNAME_CHARS: Final = 35  # Source: the operator's page "Business usernames"
_STORED_ONLY_HEADERS: Final = (("Waypost-Reason", "Kept; POST username reserves a username at the operator."),)

operation = Operations("ledger 1.9")


class NewUsername(Struct):
    """A username to reserve."""

    username: Annotated[str, Field("The username: 3 to 35 letters, digits, periods and underscores.", "acme.shop")]
    transfer_action: Annotated[
        Literal["", "none", "force_transfer"],
        Field(
            "none, or force_transfer to take it from another number of the business.",
            "none",
            "one of none, force_transfer",
        ),
    ] = ""


class UsernamePreferences(Struct, rename="camel"):
    """The usernames that a business prefers, in their order."""

    username_preference1: Annotated[
        str,
        Field(
            "The username that the business prefers; at most 35 characters.",
            "acmeshop",
            "1 to 35 characters",
            MAX_USERNAME_CHARS,
        ),
    ]
    username_preference2: Annotated[str, Field("The second choice.", "acme_shop", "", MAX_USERNAME_CHARS)] = ""
    username_preference3: Annotated[str, Field("The third choice.", "acme.shop", "", MAX_USERNAME_CHARS)] = ""


class Username(Struct):
    """A username and its status; neither if the number has none."""

    status: str | UnsetType = UNSET
    username: str | UnsetType = UNSET


class UsernameSuggestions(Struct):
    """Usernames that the operator suggests."""

    username_suggestions: list[str]


class Preferences(Struct, rename="camel"):
    """The preferences that are set. Source of the status: ledger 1.9, the documented value."""

    business_phone_number: str
    username_preference1: str | UnsetType = UNSET
    username_preference2: str | UnsetType = UNSET
    username_preference3: str | UnsetType = UNSET
    submission_status: Literal["SubmittedToGupshup", "NotSubmitted"] = "NotSubmitted"


class StoredPreferences(StatusFirst, kw_only=True):
    """The response about preferences."""

    data: Preferences
    message: str | UnsetType = UNSET


@operation("GET", f"{APP}/username", Username)
async def show_username(call: AppCall) -> Username:
    """Return the number's username and its status, as the operator has it; nothing if it has none."""
    return _username(await call.graph("GET", f"{call.number}/username"))


@operation("POST", f"{APP}/username", Username)
async def set_username(call: AppCall, fields: NewUsername) -> Username:
    """Reserve a username for the number, or take it from another number of the business."""
    return _username({"status": "reserved"} | await call.graph("POST", f"{call.number}/username", omit_empty(fields)))


@operation("DELETE", f"{APP}/username", Success)
async def delete_username(call: AppCall) -> Success:
    """Delete the number's username."""
    await call.graph("DELETE", f"{call.number}/username")
    return Success()


@operation("GET", f"{APP}/username/suggestions", UsernameSuggestions)
async def list_username_suggestions(call: AppCall) -> UsernameSuggestions:
    """Return the usernames that the operator suggests."""
    items = objects_in(list_of((await call.graph("GET", f"{call.number}/username_suggestions")).get("data")))
    names = [name for item in items for name in list_of(item.get("username_suggestions"))]
    return UsernameSuggestions([name for name in names if isinstance(name, str)])


@operation("POST", f"{APP}/username/preferences", StoredPreferences, at_operator=False)
async def set_username_preferences(call: AppCall, fields: UsernamePreferences) -> ApiResponse:
    """Store up to three usernames that the business prefers, in their order."""
    names = astuple(fields)
    await set_preferences(call.services, call.app, username_preferences=names)
    stored = StoredPreferences(data=_preferences(call, names), message="Username preferences submitted successfully")
    return ApiResponse(stored, headers=_STORED_ONLY_HEADERS)


@operation("DELETE", f"{APP}/username/preferences", Success, at_operator=False)
async def delete_username_preferences(call: AppCall) -> Success:
    """Delete the stored preferences; the response is the same if there are none."""
    await set_preferences(call.services, call.app, username_preferences=())
    return Success()


@operation("GET", f"{APP}/username/status", StoredPreferences, at_operator=False)
async def show_username_preferences(call: AppCall) -> StoredPreferences:
    """Return the stored preferences and their status."""
    return StoredPreferences(data=_preferences(call, call.app.preferences.username_preferences))


def _username(response: dict[str, Any]) -> Username:
    return Username(*(coerced_text(response[name]) if name in response else UNSET for name in ("status", "username")))


def _preferences(call: AppCall, names: tuple[str, ...]) -> Preferences:
    first, second, third = (name or UNSET for name in (*names, "", "", "")[:3])
    status = "SubmittedToGupshup" if any(names) else "NotSubmitted"
    return Preferences(call.app.phone_number, first, second, third, status)
