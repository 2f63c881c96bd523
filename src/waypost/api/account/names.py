"""Endpoints for a number's display name, its official account, and the public key of its flows."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.direct_calls.names import (
    GetDisplayName,
    GetOfficialAccount,
    GetPublicKey,
    RequestDisplayName,
    RequestOfficialAccount,
    SetPublicKey,
)
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.forms import Form, read_json

MIN_NAME_CHARS, MAX_NAME_CHARS = 3, 249  # Source: ledger 1.9, `profile/displayName`
_NAME: Final = re.compile(r"[\w ()-]+")
_TEXTS: Final = ("business_website_url", "primary_country_of_operation")
_OPTIONAL_TEXTS: Final = ("primary_language", "parent_business_or_brand", "additional_supporting_information")
_links: Final = msgspec.json.Decoder(list[str])

# fmt: off
_NAME_RULES: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (  # Source: ledger 1.9: two texts are public, the others are ours
    # broken when                               text
    (lambda name: not name,                     "Display name cannot be empty"),
    (lambda name: len(name) < MIN_NAME_CHARS,   "Display name must be at least 3 characters"),
    (lambda name: len(name) > MAX_NAME_CHARS,   "Display name must be less than 250 characters"),
    (lambda name: not _NAME.fullmatch(name),    "Display name can only contain letters, digits, spaces and the characters - _ ( )"),
    (str.isupper,                               "Display name cannot be all in upper case"),
)
# fmt: on


async def show_display_name(services: Services, request: Request) -> ApiResponse:
    """Return the number's display name, and the one that was requested. Source: ledger 1.9, `profile/displayName`."""
    app = await authorise_app(services, request)
    name = await call_operator(services, app, GetDisplayName(number_of(app)))
    info = {
        "verifiedNameStatus": name.verified_status,
        "requestedName": name.requested_name,
        "requestedNameStatus": name.requested_status,
        "verifiedName": name.verified_name,
    }
    return ApiResponse({"displayNameInfo": info, "status": "success"})


async def request_display_name(services: Services, request: Request) -> ApiResponse:
    """Request another display name for the number; the operator reviews it.

    Errors in this order: 401, 429 fourth in a day, 400 a name that breaks a rule, 400 the operator's error, 503.
    The text of a broken rule is in `error`, as documented, and in `message`.

    Source: ledger 1.9, `profile/displayName`.
    """
    app = await authorise_app(services, request)
    name = (request.form_or_json().text("newDisplayName") or "").strip()
    for is_broken, text in _NAME_RULES:
        if is_broken(name):
            raise ApiError(ErrorCode.INVALID_DISPLAY_NAME, text, members={"error": text})
    await call_operator(services, app, RequestDisplayName(number_of(app), name))
    return ApiResponse({"status": "success"})


async def show_official_account(services: Services, request: Request) -> ApiResponse:
    """Return the number's status as an official business account. Source: ledger 1.9, `oba`."""
    app = await authorise_app(services, request)
    number = number_of(app)
    status = await call_operator(services, app, GetOfficialAccount(number))
    account = {"oba_status": status or "NOT_STARTED"}
    return ApiResponse({"id": number, "official_business_account": account, "status": "success"})


async def request_official_account(services: Services, request: Request) -> ApiResponse:
    """Request that the number becomes an official business account.

    Source: ledger 1.9, `oba`; the operator's page "Official business accounts".
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    members: dict[str, Any] = {name: form.required(name, "a text") for name in _TEXTS}
    members |= {name: text for name in _OPTIONAL_TEXTS if (text := form.text(name))}
    if form.text("supporting_links"):
        members["supporting_links"] = _read_links(form)
    result = await call_operator(services, app, RequestOfficialAccount(number_of(app), members))
    return ApiResponse({"success": result.success})


async def show_public_key(services: Services, request: Request) -> ApiResponse:
    """Return the number's public key; empty if it has none. Source: ledger 1.11."""
    app = await authorise_app(services, request)
    key = await call_operator(services, app, GetPublicKey(number_of(app)))
    encryption = {"business_public_key": key.key, "business_public_key_signature_status": key.signature_status}
    return ApiResponse({"encryption": encryption, "status": "success"})


async def set_public_key(services: Services, request: Request) -> ApiResponse:
    """Set the public key with which the operator encrypts what the number's flows exchange.

    Source: public page "WhatsApp Dynamic Flows"; ledger 1.11.
    """
    app = await authorise_app(services, request)
    key = request.form_or_json().required("public_key", "a public RSA key of 2048 bits in PEM")
    try:
        await call_operator(services, app, SetPublicKey(number_of(app), key))
    except ApiError as error:
        if error.code is not ErrorCode.OPERATOR_REJECTED:
            raise
        members = {"code": error.operator_code, "details": error.explanation}
        raise ApiError(error.code, error.explanation, members=members) from error
    return ApiResponse({"status": "success"})


def _read_links(form: Form) -> list[str]:
    return read_json(form.text("supporting_links") or "[]", _links, name="supporting_links", accepted="a list of URLs")
