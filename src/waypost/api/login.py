"""Partner login, and the app token that a partner token gives access to."""

from typing import Annotated, Any, NamedTuple, Self

from msgspec import Struct, field

from waypost.api.access_log import rate_limit_address
from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.limits import LoginAttempt
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import Request
from waypost.api.services import Services
from waypost.base.encryption import hash_secret
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.throttled_logging import ThrottledLog
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.domain.partner import MAX_PASSWORD_CHARS, PARTNER_TOKEN_LIFE_MS, Partner
from waypost.store.accounts.partners import add_partner_token, find_login_record
from waypost.wire.responses import success
from waypost.wire.tokens import issue_partner_token

MAX_LOGIN_BODY_BYTES = 16 * 1024  # of a body that is not authenticated yet
MAX_EMAIL_CHARS = 254
_log = ThrottledLog(log("api"))


class AuthenticatedLogin(NamedTuple):
    """A right e-mail address and password or client secret."""

    partner: Partner
    secret_hash: str | None  # of the client secret; None: it was the password
    attempt: LoginAttempt  # counts as failed until it is refunded


operation = Operations("facts 1.4; ledger 1.1", Credential.PARTNER_TOKEN, at_operator=False)
Email = Annotated[
    str,
    Field("The e-mail address of the partner's account.", "demo@waypost.test", "the e-mail address of your account"),
]


class Login(Struct):
    """The credential of a login."""

    email: Email
    password: Annotated[str, Field("The portal password, or a client secret.", "Demo-password-1")] = ""
    secret: Annotated[str, Field("A client secret; accepted in place of `password`.")] = ""


class PartnerAccount(Struct, rename="camel"):
    """The partner's account, with a partner token. Source: spec, "Partner account (login response)"."""

    token: str
    id: int
    name: str
    terms_read: bool = field(name="terms_read")
    admin: bool
    email: str
    activation_read: bool
    billing_type: str
    contact_name: str
    phone_number: str
    enable_customer: bool
    enable_wallet: bool
    enable_inr_wallet: bool
    enable_loader_wallet: bool
    enable_app_onboarding: bool
    is_tpp: bool
    onboard_enabled: bool


class AppToken(Struct, rename="camel"):
    """The token of an app, which does not expire. Source: facts 1.4."""

    token: str
    authoriser_id: str
    requestor_id: str
    created_on: int
    modified_on: int
    expires_on: int
    active: bool


class LoginCall(NamedTuple):
    """A call with a right e-mail address and password or client secret."""

    services: Services
    request: Request
    login: AuthenticatedLogin

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        return cls(services, request, await authenticate(services, request, ("password", "secret")))


@operation(
    "POST",
    "/partner/account/login",
    PartnerAccount,
    source="spec, Partner login; ledger 1.1",
    credential=Credential.NONE,
    rate="login",
    body=Login,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.ACCOUNT_UNKNOWN, ErrorCode.LOGIN_FAILED),
)
async def log_in(call: LoginCall) -> PartnerAccount:
    """Return a partner token for an e-mail address and the first password or a client secret.

    Errors in this order: 429 too many from one IP address, 400 unreadable or missing fields,
    429 too many for one e-mail address from there, 429 too many failures, 403 no such account, 403 a wrong
    password. Both take the same time.

    Source: spec, "Partner login"; ledger 1.1; facts 1.2, also for JSON and the field `secret`; decision 0005.
    """
    services, _, login = call
    partner, now_ms = login.partner, services.clock.now_ms()
    token = issue_partner_token(services.secret_box, partner, jti=services.ids.new(), now_ms=now_ms)
    is_stored = await services.database.write(
        add_partner_token, hash_secret(token), partner.id, now_ms, now_ms + PARTNER_TOKEN_LIFE_MS, login.secret_hash
    )
    if not is_stored:
        raise ApiError(ErrorCode.LOGIN_FAILED, "The client secret has just been revoked.")
    await login.attempt.refund()
    members = (getattr(partner, name) for name in PartnerAccount.__struct_fields__ if name != "token")
    return PartnerAccount(token, *members)


async def authenticate(
    services: Services, request: Request, names: tuple[str, ...], *, needs_secret: bool = False
) -> AuthenticatedLogin:
    """Return the partner whose e-mail address and first password or client secret a request holds.

    The attempt counts as a failure until the caller refunds it.

    Args:
        services: of the request.
        request: a form or JSON with `email`.
        names: of the fields that may hold the password or secret.
        needs_secret: a client secret only, no password.

    Raises:
        ApiError: as `log_in` lists them.
    """
    address = rate_limit_address(services.proxies.client_address(request.scope))
    await services.limiter.spend("login_address", address)
    if len(request.body) > MAX_LOGIN_BODY_BYTES:
        raise ApiError(ErrorCode.BODY_TOO_LARGE, f"The body must be at most {MAX_LOGIN_BODY_BYTES} bytes.")
    form = request.form_or_json()
    email = form.required("email", "the e-mail address of your account").strip().lower()
    secrets = [text for name in names if (text := form.text(name))]
    if not secrets or max(map(len, secrets)) > MAX_PASSWORD_CHARS:
        accepted = f"your password or client secret, at most {MAX_PASSWORD_CHARS} characters"
        raise missing_parameter(names[0], accepted)
    if len(email) > MAX_EMAIL_CHARS:
        raise invalid_field("email", f"at most {MAX_EMAIL_CHARS} characters")
    await services.limiter.spend("login", f"{email} {address}")
    attempt = await services.login_limits.spend(email, address)
    now_ms = services.clock.now_ms()
    facts = await services.database.read(find_login_record, email, now_ms)
    secret_hashes = frozenset[str]() if facts is None else facts.secret_hashes
    secret_hash = next((hash_secret(text) for text in secrets if hash_secret(text) in secret_hashes), None)
    # A changed password opens the portal only. Source: spec, "Authentication", rule 2.
    stored = facts.password_hash if facts and not facts.password_changed and not needs_secret else None
    is_right = secret_hash is not None or await services.passwords.matches(stored, secrets[0])
    if facts is None or not is_right:
        _log.info("a login failed", address=address)
        if facts is None:
            raise ApiError(
                ErrorCode.ACCOUNT_UNKNOWN,
                "No partner has this e-mail address.",
                field="email",
                accepted="the e-mail address of a partner",
            )
        raise ApiError(
            ErrorCode.LOGIN_FAILED,
            "The password is wrong, or the client secret is unknown, expired or revoked.",
            field="password",
            accepted="the partner's password, or one of its client secrets",
        )
    return AuthenticatedLogin(facts.partner, secret_hash, attempt)


@operation(
    "GET",
    f"{APP}/token",
    success(token=AppToken),
    rate="app_token",
    wrong_credential=ErrorCode.INVALID_ACCESS_TOKEN,
    other_app=ErrorCode.NO_PERMISSION,
)
async def get_app_token(call: AppCall) -> dict[str, Any]:
    """Return the app token of one of the partner's apps: the same at every call, until it is revoked.

    Errors in this order: 403 wrong partner token, 403 not the partner's app, 429.
    """
    app = call.app
    token = call.services.secret_box.app_token(app.id, app.token_serial)
    shown = AppToken(token, app.id, str(app.partner_id), app.created_on_ms, app.modified_on_ms, 0, active=True)
    return {"status": "success", "token": shown}
