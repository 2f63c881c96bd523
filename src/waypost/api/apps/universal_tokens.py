"""Endpoints for a partner's universal tokens: create by a client secret, list, revoke."""

from functools import partial
from typing import Final

from waypost.api.apps.keys import checked_name, chosen_token, listed_tokens, scope_of
from waypost.api.auth.authorisation import authorise_partner
from waypost.api.auth.login import authenticate
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.base.clock import DAY_MS
from waypost.base.encryption import UNIVERSAL_TOKEN_PREFIX, hash_secret
from waypost.domain.app import KeyStatus
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.store.accounts.credentials import (
    CREDENTIAL_ID_CHARS,
    MAX_UNIVERSAL_TOKENS,
    CredentialKind,
    DuplicateTokenName,
    TooManyTokens,
    add_universal_token,
    list_credentials,
)
from waypost.store.accounts.credentials import revoke_universal_token as revoke_stored_token
from waypost.store.accounts.partners import partner_by_id

MIN_LIFE_MS: Final = 60_000  # Source: ledger 1.11
MAX_LIFE_MS: Final = 60 * DAY_MS


async def mint_universal_token(services: Services, request: Request) -> ApiResponse:
    """Create a universal token for an e-mail address and a client secret; shown only once.

    Errors in this order: those of the login, 403 another partner's path, 429, 400 a missing or invalid field, 409 a
    duplicate name, 409 three are active.

    Source: ledger 1.11.
    """
    login = await authenticate(services, request, ("clientSecret",), needs_secret=True)
    await login.attempt.refund()
    _check_path(request, login.partner.id)
    form = request.form_or_json()
    request.note_caller(login.partner.id)
    await request.spend(services.limiter, str(login.partner.id))
    name = checked_name(form.required("name", "a name, unique among your active tokens"))
    now_ms = services.clock.now_ms()
    text = form.text("expiry")
    expires_on_ms = read_integer(text, "expiry") if text else now_ms + MAX_LIFE_MS
    if not MIN_LIFE_MS <= expires_on_ms - now_ms <= MAX_LIFE_MS:
        raise invalid_field("expiry", "milliseconds since the epoch, from 60 seconds to 60 days from now")
    token = UNIVERSAL_TOKEN_PREFIX + services.ids.secret()
    add = partial(
        add_universal_token,
        partner_id=login.partner.id,
        token_hash=hash_secret(token),
        now_ms=now_ms,
        name=name,
        expires_on_ms=expires_on_ms,
        is_name_unique=True,
    )
    try:
        token_id = await services.database.write(add)
    except DuplicateTokenName as error:
        text = f"name {name} is taken by an active one; choose another."
        raise ApiError(ErrorCode.TOKEN_NAME_IN_USE, text, field="name") from error
    except TooManyTokens as error:
        text = f"At most {MAX_UNIVERSAL_TOKENS} may be active per partner; revoke one first."
        raise ApiError(ErrorCode.TOO_MANY_TOKENS, text) from error
    return ApiResponse({"status": "success", "token": token, "id": token_id})


async def list_universal_tokens(services: Services, request: Request) -> ApiResponse:
    """Return the partner's universal tokens as a bare list, newest first, without the tokens themselves.

    Errors in this order: 401, 403 another partner's path, 429, 400 an unknown status.

    Source: ledger 1.11.
    """
    partner_id = await _authorise(services, request)
    partner = await services.database.read(partner_by_id, partner_id)
    tokens = await services.database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, partner_id)
    return ApiResponse(listed_tokens(services, request, reversed(tokens), partner))


async def revoke_universal_token(services: Services, request: Request) -> ApiResponse:
    """Revoke one of the partner's universal tokens at once; app tokens that it has made stay valid.

    Errors in this order: 401, 403 another partner's path, 429, 400 not exactly one field, 400 no such token.

    Source: ledger 1.11.
    """
    partner_id = await _authorise(services, request)
    name, text = chosen_token(request.form_or_json())
    token_id, now_ms = text, services.clock.now_ms()
    if name == "token":
        token_id = hash_secret(text)[:CREDENTIAL_ID_CHARS]
    elif name == "name":
        tokens = await services.database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, partner_id)
        active = (token.id for token in tokens if token.name == text and token.status(now_ms) is KeyStatus.ACTIVE)
        token_id = next(active, "")
    if not await services.database.write(revoke_stored_token, partner_id, token_id, now_ms):
        raise invalid_field(name, f"the {name} of one of your universal tokens")
    services.directory.invalidate()
    return ApiResponse({"status": "success", "scope": scope_of(name)})


async def _authorise(services: Services, request: Request) -> int:
    """Return the partner of the request's token, who must be the one in the path; spend one request of the rate."""
    partner_id = await authorise_partner(services, request)
    _check_path(request, partner_id)
    return partner_id


def _check_path(request: Request, partner_id: int) -> None:
    if request.path["partner_id"] != str(partner_id):
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "The path must name the partner of the credential.")
