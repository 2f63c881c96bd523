"""Names of a number: the display name, the official business account, and the username."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import astuple

from waypost.api.apps.settings import set_preferences
from waypost.api.authorisation import Credential
from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, KEY_APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.base.json_values import boolean_of, coerced_text, list_of, object_of, objects_in
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.responses import Success, response, success

MIN_NAME_CHARS, MAX_NAME_CHARS = 3, 249  # Source: ledger 1.9, `profile/displayName`
_NAME: Final = re.compile(r"[\w ()-]+")
_NAME_RULES: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (  # Source: ledger 1.9: two texts are public
    (lambda name: not name, "Display name cannot be empty"),
    (lambda name: len(name) < MIN_NAME_CHARS, "Display name must be at least 3 characters"),
    (lambda name: len(name) > MAX_NAME_CHARS, "Display name must be less than 250 characters"),
    (
        lambda name: not _NAME.fullmatch(name),
        "Display name can only contain letters, digits, spaces and the characters - _ ( )",
    ),
    (str.isupper, "Display name cannot be all in upper case"),
)
_KEY_SOURCE: Final = 'public page "WhatsApp Dynamic Flows"; ledger 1.11'

operation = Operations("ledger 1.9")
_STATUS: Final = Literal["success"]


class NewDisplayName(Struct, rename="camel"):
    """A display name to request."""

    new_display_name: Annotated[
        str,
        Field(
            "The display name to request: 3 to 249 letters, digits, spaces and - _ ( ), not all in upper case.",
            "Acme Spare Parts",
            strip=True,
            is_required=True,
        ),
    ] = ""


class NewOfficialAccount(Struct):
    """A request for an official business account. Source: the operator's page "Official business accounts"."""

    business_website_url: Annotated[str, Field("The website of the business.", "https://shop.example", "a text")]
    primary_country_of_operation: Annotated[
        str, Field("The country where the business is mostly active.", "United States of America", "a text")
    ]
    primary_language: Annotated[str, Field("The language of the business.", "English")] = ""
    parent_business_or_brand: Annotated[str, Field("The business or brand that it belongs to.", "Acme")] = ""
    additional_supporting_information: Annotated[
        str, Field("What else speaks for the request.", "Also in the trade press.")
    ] = ""
    supporting_links: Annotated[
        list[str] | None,
        Field(
            "URLs of articles about the business, as a JSON array of at most 5.",
            '["https://press.example/acme"]',
            "a list of URLs",
        ),
    ] = None


_KEY_EXAMPLE: Final = (
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAqDB24EXvpiTPwb4aNr0l\n"
    "6tqnm6TrTFCFmj6+6o6HjBDfJLqjNbSXjO6RrJu4ApqSqCTEveP2fD42EHZ/YuJO\n"
    "0HUeMJjRgwB6LnCL8BqANAuvzVna7BlwCX77nc69nnELF4JbXL7isFFTMl6oDCVG\n"
    "0qOaMT0QOu265sJ3/ioOnm9v7V8oib+J8n54ddGcAQxis+2XCgbQFlwOXe0KimWW\n"
    "mS1c3EQ7sybTGuYFp8RHddSEAWYdJXCnvT2mdsQUsUAwp8oFtguM2Jnio5HYDViJ\n"
    "+jQuML3aE/tEp6lul8HJ9fQ+EDpeVtWwWCLaAEYAKo+m/dLHOKOP+vc7tkeZDlJI\n"
    "4wIDAQAB\n"
    "-----END PUBLIC KEY-----"
)


class NewPublicKey(Struct):
    """The key with which the operator encrypts what a number's flows exchange."""

    public_key: Annotated[str, Field("A public RSA key of 2048 bits in PEM.", _KEY_EXAMPLE)]


class DisplayNameInfo(Struct, rename="camel"):
    """A number's display name, and the one that was requested."""

    verified_name_status: str
    requested_name: str
    requested_name_status: str
    verified_name: str


class Encryption(Struct):
    """The public key of a number, empty if it has none, and whether its signature is valid."""

    business_public_key: str
    business_public_key_signature_status: str


_PUBLIC_KEY: Final = response(encryption=Encryption, status=_STATUS)


@operation("GET", f"{APP}/profile/displayName", response(displayNameInfo=DisplayNameInfo, status=_STATUS))
async def show_display_name(call: AppCall) -> dict[str, Any]:
    """Return the number's display name, and the one that was requested."""
    members = ("name_status", "new_display_name", "new_name_status", "verified_name")
    number = await call.graph("GET", call.number, query={"fields": ",".join(members)})
    info = DisplayNameInfo(*(coerced_text(number.get(name)) for name in members))
    return {"displayNameInfo": info, "status": "success"}


@operation("POST", f"{APP}/profile/displayName", Success, rate="display_name", errors=(ErrorCode.INVALID_DISPLAY_NAME,))
async def request_display_name(call: AppCall, fields: NewDisplayName) -> None:
    """Request another display name for the number; the operator reviews it.

    The text of a broken rule is in `error`, as documented, and in `message`.
    """
    for is_broken, text in _NAME_RULES:
        if is_broken(fields.new_display_name):
            raise ApiError(ErrorCode.INVALID_DISPLAY_NAME, text, members={"error": text})
    await call.graph(
        "POST", call.number, {"new_display_name": fields.new_display_name, "messaging_product": "whatsapp"}
    )


@operation("GET", f"{APP}/oba", response(id=str, official_business_account=response(oba_status=str), status=_STATUS))
async def show_official_account(call: AppCall) -> dict[str, Any]:
    """Return the number's status as an official business account."""
    number = await call.graph("GET", call.number, query={"fields": "official_business_account"})
    status = coerced_text(object_of(number.get("official_business_account")).get("oba_status"))
    account = {"oba_status": status or "NOT_STARTED"}
    return {"id": call.number, "official_business_account": account, "status": "success"}


@operation("POST", f"{APP}/oba", response(success=bool))
async def request_official_account(call: AppCall, fields: NewOfficialAccount) -> dict[str, Any]:
    """Request that the number becomes an official business account."""
    result = await call.graph("POST", f"{call.number}/official_business_account", omit_empty(fields))
    return {"success": boolean_of(result.get("success"), default=True)}


@operation("GET", f"{APP}/flows/publicKey", _PUBLIC_KEY, source=_KEY_SOURCE)
@operation("GET", f"{APP}/flows/public_key", _PUBLIC_KEY, source="ledger 1.11; this spelling is ours")
async def show_public_key(call: AppCall) -> dict[str, Any]:
    """Return the number's public key; empty if it has none."""
    found = await call.graph("GET", f"{call.number}/whatsapp_business_encryption")
    key = next(iter(objects_in(list_of(found.get("data")))), found)  # older versions: not in a list
    encryption = {name: coerced_text(key.get(name)) for name in Encryption.__struct_fields__}
    return {"encryption": encryption, "status": "success"}


@operation("POST", f"{APP}/flows/publicKey", Success, source=_KEY_SOURCE)
@operation("POST", f"{KEY_APP}/flows/public_key", Success, source=_KEY_SOURCE, credential=Credential.API_KEY)
@operation("POST", f"{APP}/flows/public_key", Success, source=_KEY_SOURCE)
async def set_public_key(call: AppCall, fields: NewPublicKey) -> None:
    """Set the public key with which the operator encrypts what the number's flows exchange."""
    body = {"business_public_key": fields.public_key}
    try:
        await call.graph("POST", f"{call.number}/whatsapp_business_encryption", body)
    except ApiError as error:
        if error.code is not ErrorCode.OPERATOR_REJECTED:
            raise
        members = {"code": error.operator_code, "details": error.explanation}
        raise ApiError(error.code, error.explanation, members=members) from error


MAX_USERNAME_CHARS: Final = 35  # Source: the operator's page "Business usernames"
_STORED_ONLY_HEADERS: Final = (("Waypost-Reason", "Kept; POST username reserves a username at the operator."),)

username_operation = Operations("ledger 1.9")


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


class Preferences(Struct, rename="camel"):
    """The preferences that are set. Source of the status: ledger 1.9, the documented value."""

    business_phone_number: str
    username_preference1: str | UnsetType = UNSET
    username_preference2: str | UnsetType = UNSET
    username_preference3: str | UnsetType = UNSET
    submission_status: Literal["SubmittedToGupshup", "NotSubmitted"] = "NotSubmitted"


_STORED_PREFERENCES: Final = success(data=Preferences, message=str | UnsetType)


@username_operation("GET", f"{APP}/username", Username)
async def show_username(call: AppCall) -> Username:
    """Return the number's username and its status, as the operator has it; nothing if it has none."""
    return _username(await call.graph("GET", f"{call.number}/username"))


@username_operation("POST", f"{APP}/username", Username)
async def set_username(call: AppCall, fields: NewUsername) -> Username:
    """Reserve a username for the number, or take it from another number of the business."""
    return _username({"status": "reserved"} | await call.graph("POST", f"{call.number}/username", omit_empty(fields)))


@username_operation("DELETE", f"{APP}/username", Success)
async def delete_username(call: AppCall) -> None:
    """Delete the number's username."""
    await call.graph("DELETE", f"{call.number}/username")


@username_operation("GET", f"{APP}/username/suggestions", response(username_suggestions=list[str]))
async def list_username_suggestions(call: AppCall) -> dict[str, Any]:
    """Return the usernames that the operator suggests."""
    items = objects_in(list_of((await call.graph("GET", f"{call.number}/username_suggestions")).get("data")))
    names = [name for item in items for name in list_of(item.get("username_suggestions"))]
    return {"username_suggestions": [name for name in names if isinstance(name, str)]}


@username_operation("POST", f"{APP}/username/preferences", _STORED_PREFERENCES, at_operator=False)
async def set_username_preferences(call: AppCall, fields: UsernamePreferences) -> ApiResponse:
    """Store up to three usernames that the business prefers, in their order."""
    names = astuple(fields)
    await set_preferences(call.services, call.app, username_preferences=names)
    stored = {"data": _preferences(call, names), "message": "Username preferences submitted successfully"}
    return ApiResponse({"status": "success", **stored}, headers=_STORED_ONLY_HEADERS)


@username_operation("DELETE", f"{APP}/username/preferences", Success, at_operator=False)
async def delete_username_preferences(call: AppCall) -> None:
    """Delete the stored preferences; the response is the same if there are none."""
    await set_preferences(call.services, call.app, username_preferences=())


@username_operation("GET", f"{APP}/username/status", _STORED_PREFERENCES, at_operator=False)
async def show_username_preferences(call: AppCall) -> dict[str, Any]:
    """Return the stored preferences and their status."""
    return {"status": "success", "data": _preferences(call, call.app.preferences.username_preferences)}


def _username(found: dict[str, Any]) -> Username:
    return Username(*(coerced_text(found[name]) if name in found else UNSET for name in ("status", "username")))


def _preferences(call: AppCall, names: tuple[str, ...]) -> Preferences:
    first, second, third = (name or UNSET for name in (*names, "", "", "")[:3])
    status = "SubmittedToGupshup" if any(names) else "NotSubmitted"
    return Preferences(call.app.phone_number, first, second, third, status)
