"""A partner's universal tokens: create by a client secret, list, revoke."""

from functools import partial
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Struct

from waypost.api.apps.keys import (
    MAX_KEY_NAME_CHARS,
    ListedToken,
    TokenFilter,
    TokenItself,
    TokenName,
    chosen_token,
    listed_tokens,
    scope_of,
)
from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.login import Email, authenticate
from waypost.api.operation import Operations, OwnPartnerCall, PartnerCall
from waypost.api.requests import Request
from waypost.api.services import Services
from waypost.base.clock import DAY_MS
from waypost.base.encryption import UNIVERSAL_TOKEN_PREFIX, hash_secret
from waypost.domain.app import KeyStatus
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
from waypost.wire.responses import success

MIN_LIFE_MS: Final = 60_000  # Source: ledger 1.11
MAX_LIFE_MS: Final = 60 * DAY_MS


operation = Operations("ledger 1.11", Credential.PARTNER_TOKEN, at_operator=False)
_PARTNER: Final = "/partner/{partner_id}/auth"
_own_operation = partial(
    operation,
    rate="universal_tokens",
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_PARTNER),
    wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS,
)


class NewUniversalToken(Struct, rename="camel"):
    """A universal token to create, and the credential for it."""

    email: Email
    client_secret: Annotated[str, Field("A client secret of the partner's account; the password is not accepted.")]
    name: Annotated[
        str,
        Field(
            "A name for the token, unique among the partner's active ones.",
            "night-job",
            "a name, unique among your active tokens",
            max_chars=MAX_KEY_NAME_CHARS,
        ),
    ]
    expiry: Annotated[
        int | None,
        Field(
            "The expiry time in milliseconds since the epoch: 60 seconds to 60 days from now; 60 days when absent.",
            "1790000000000",
        ),
    ] = None


class ChosenUniversalToken(Struct):
    """One of the partner's universal tokens."""

    id: Annotated[
        str,
        Field(
            "The id of one of the partner's universal tokens; exactly one of `id`, `name` and `token` is sent.",
            "0123456789abcdef",
        ),
    ] = ""
    name: TokenName = ""
    token: TokenItself = ""


class SecretCall(PartnerCall):
    """A call about the partner whose e-mail address and client secret it has."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        login = await authenticate(services, request, ("clientSecret",), needs_secret=True)
        await login.attempt.refund()
        call = cls(services, request, login.partner.id)
        call.check_path()
        request.note_caller(login.partner.id)
        await request.spend(services.limiter, str(login.partner.id))
        return call


@operation(
    "POST",
    f"{_PARTNER}/token",
    success(token=str, id=str),
    credential=Credential.NONE,
    rate="mint_token",
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.ACCOUNT_UNKNOWN,
        ErrorCode.LOGIN_FAILED,
        ErrorCode.FORBIDDEN_PARTNER,
        ErrorCode.TOKEN_NAME_IN_USE,
        ErrorCode.TOO_MANY_TOKENS,
    ),
)
async def create_universal_token(call: SecretCall, fields: NewUniversalToken) -> dict[str, Any]:
    """Create a universal token for an e-mail address and a client secret; shown only once.

    Errors in this order: those of the login, 403 another partner's path, 429, 400 a missing or invalid field, 409 a
    duplicate name, 409 three are active.
    """
    services, name, now_ms = call.services, fields.name, call.services.clock.now_ms()
    expires_on_ms = now_ms + MAX_LIFE_MS if fields.expiry is None else fields.expiry
    if not MIN_LIFE_MS <= expires_on_ms - now_ms <= MAX_LIFE_MS:
        raise invalid_field("expiry", "milliseconds since the epoch, from 60 seconds to 60 days from now")
    token = UNIVERSAL_TOKEN_PREFIX + services.ids.secret()
    add = partial(
        add_universal_token,
        partner_id=call.partner_id,
        token_hash=hash_secret(token),
        now_ms=now_ms,
        name=name,
        expires_on_ms=expires_on_ms,
        is_name_unique=True,
    )
    try:
        token_id = await services.database.write(add)
    except DuplicateTokenName as error:
        text = f"name {name} is taken by an active token; choose another."
        raise ApiError(ErrorCode.TOKEN_NAME_IN_USE, text, field="name") from error
    except TooManyTokens as error:
        text = f"At most {MAX_UNIVERSAL_TOKENS} universal tokens may be active per partner; revoke one first."
        raise ApiError(ErrorCode.TOO_MANY_TOKENS, text) from error
    return {"status": "success", "token": token, "id": token_id}


@_own_operation("GET", f"{_PARTNER}/tokens", list[ListedToken])
async def list_universal_tokens(call: OwnPartnerCall, query: TokenFilter) -> list[ListedToken]:
    """Return the partner's universal tokens as a bare list, newest first, without the tokens themselves.

    Errors in this order: 401, 403 another partner's path, 429, 400 an unknown status.
    """
    services, _, partner_id = call
    partner = await services.database.read(partner_by_id, partner_id)
    tokens = await services.database.read(list_credentials, CredentialKind.UNIVERSAL_TOKEN, partner_id)
    return listed_tokens(services, query, reversed(tokens), partner)


@_own_operation("POST", f"{_PARTNER}/revoke", success(scope=Literal["id", "name", "jti"]))
async def revoke_universal_token(call: OwnPartnerCall, fields: ChosenUniversalToken) -> dict[str, Any]:
    """Revoke one of the partner's universal tokens at once; app tokens that it has made stay valid.

    Errors in this order: 401, 403 another partner's path, 429, 400 not exactly one field, 400 no such token.
    """
    services, _, partner_id = call
    name, text = chosen_token(fields)
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
    return {"status": "success", "scope": scope_of(name)}
