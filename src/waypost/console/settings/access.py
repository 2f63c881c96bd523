"""Settings pages of what lets people and programs in: password, client secrets, API keys, administrator access."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waypost.base.clock import DAY_MS
from waypost.base.encryption import hash_secret
from waypost.base.telemetry.logs import log
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_request import PageRequest
from waypost.console.settings.app import form_error
from waypost.console.settings.profile import ended_sessions_notice
from waypost.console.sign_in import check_password
from waypost.domain.errors import ApiError
from waypost.domain.partner import MAX_PASSWORD_CHARS
from waypost.store.accounts.credentials import CredentialKind, list_credentials
from waypost.store.accounts.partners import find_login_record

_log = log("console")


async def show_password(
    request: PageRequest, wrong: Mapping[str, str] = {}, status: int = 400, *, ends_tokens: bool = True
) -> Response:
    """Return the form, with an explanation of what a change revokes; with errors by field where given."""
    now_ms, email = request.now_ms(), request.partner.email
    facts = await request.read(find_login_record, email, now_ms)
    return await request.page(
        "settings/password.html", status if wrong else 200,
        wrong=wrong, ends_tokens=ends_tokens,
        has_changed=facts is not None and facts.password_changed,
        has_password=facts is not None and bool(facts.password_hash),
        secret_count=0 if facts is None else len(facts.secret_hashes),
        is_demo=request.services.demo_partner_id == request.partner.id,
    )  # fmt: skip


async def change_password(request: PageRequest) -> Response:
    """Change the password, and end every other session of the console.

    The current password is checked with argon2id. A client secret is accepted in its place: partners
    without a password sign in with one. Attempts count toward the limit on sign-in attempts.

    Source: spec, "Authentication", rule 2; decision 0058.
    """
    services, partner = request.services, request.partner
    old, new = await request.field("old"), await request.field("new")
    ends_tokens = await request.is_checked("end_tokens")
    wrong = _validate(old, new, await request.field("again"))
    if wrong:
        return await show_password(request, wrong, ends_tokens=ends_tokens)
    try:
        address = services.client_address(request.http.scope)
        attempt = await services.sign_in_limiter.spend(partner.email.lower(), address)
    except ApiError as error:
        wrong = {"old": f"Too many attempts. Try again in {error.retry_after_s or 60} s."}
        return await show_password(request, wrong, 429, ends_tokens=ends_tokens)
    _, is_current = await check_password(request, partner.email, old)
    if not is_current:
        _log.info("wrong password at a password change", partner_id=partner.id)
        return await show_password(request, {"old": "Wrong password."}, ends_tokens=ends_tokens)
    await attempt.refund()
    own = hash_secret(request.session.token) if request.session else ""
    try:
        response = await request.admin(
            "POST /admin/partners/{partner_id}/password",
            partner_id=partner.id, password=new, end_tokens=ends_tokens, keep_session=own,
        )  # fmt: skip
    except ApiResponseError as error:
        return await show_password(request, {"new": form_error(error)}, ends_tokens=ends_tokens)
    if ends_tokens:
        services.apis.clear_partner_tokens()
    tokens = response.get("tokens_ended", 0)
    token_notice = f" {tokens} partner {'token' if tokens == 1 else 'tokens'} revoked." if tokens else ""
    notice = f"Password changed. {ended_sessions_notice(response['sessions_ended'])}{token_notice}"
    hint = "From now on the API accepts only client secrets: update every script that logs in."
    return request.redirect("/settings/password", notice, hint=hint)


def _validate(old: str, new: str, again: str) -> dict[str, str]:
    """Return errors by field that need no call to find."""
    if not old or len(old) > MAX_PASSWORD_CHARS:
        return {"old": "Enter your current password."}
    if not new:
        return {"new": "Enter a new password."}
    if new == old:
        return {"new": "The new password must differ from the current one."}
    if new != again:
        return {"again": "The passwords do not match."}
    return {}


CLIENT_SECRETS_PATH: Final = "/settings/secrets"
EXPIRES_SOON_MS: Final = 14 * DAY_MS
SECRET_LIFETIMES: Final = (  # Source: facts 1.3; the vendor advises three months at most
    ("90", "in 90 days"),
    ("30", "in 30 days"),
    ("365", "in 1 year"),
    ("date", "on a date"),
    ("never", "never"),
)


async def show_secrets(
    request: PageRequest,
    *,
    made: str = "",
    chosen: Mapping[str, str] = {"life": "90", "day": ""},
    wrong: Mapping[str, str] = {},
) -> Response:
    """List the secrets by id; with a rejected form, or with the secret that was made, which is shown once."""
    now_ms = request.now_ms()
    secrets = await request.read(list_credentials, CredentialKind.CLIENT_SECRET, request.partner.id)
    return await request.page(
        "settings/secrets.html", 400 if wrong else 200,
        secrets=[(secret, _secret_status(secret.expires_on_ms, now_ms)) for secret in reversed(secrets)],
        lives=SECRET_LIFETIMES, made=made, chosen=chosen, wrong=wrong,
    )  # fmt: skip


async def make_secret(request: PageRequest) -> Response:
    """Create a secret, and show it on the response."""
    life, day = await request.field("life", "90"), (await request.field("day")).strip()
    now_ms, chosen = request.now_ms(), {"life": life, "day": day}
    if life == "date":
        try:
            expires_on_ms = request.zone.midnight_ms(date.fromisoformat(day) + timedelta(days=1))
        except (ValueError, OverflowError):
            expires_on_ms = 0
        if expires_on_ms <= now_ms:
            wrong = {"day": "Enter a future date as YYYY-MM-DD."}
            return await show_secrets(request, chosen=chosen, wrong=wrong)
    elif life == "never":
        expires_on_ms = None
    elif life in dict(SECRET_LIFETIMES):
        expires_on_ms = now_ms + int(life) * DAY_MS
    else:
        return await show_secrets(request, chosen=chosen, wrong={"life": "Choose one of these options."})
    try:
        response = await request.admin(
            "POST /admin/partners/{partner_id}/client-secrets",
            partner_id=request.partner.id, expires_on_ms=expires_on_ms,
        )  # fmt: skip
    except ApiResponseError as error:
        return await show_secrets(request, chosen=chosen, wrong={"life": form_error(error)})
    return await show_secrets(request, made=response["client_secret"])


def _revoked_tokens_notice(response: Mapping[str, Any]) -> str:
    revoked = int(response["tokens_ended"])
    if not revoked:
        return "It had no valid partner tokens."
    return f"{revoked} partner {'token' if revoked == 1 else 'tokens'} issued with it revoked."


REVOKE_CLIENT_SECRET: Final = ActionRow(
    f"{CLIENT_SECRETS_PATH}/{{secret_id}}/revoke",
    does="revoke a client secret",
    call="DELETE /admin/partners/{partner_id}/client-secrets/{secret_id}",
    page=CLIENT_SECRETS_PATH,
    notice="Client secret {secret_id:.8} revoked.",
    hint=_revoked_tokens_notice,
    missing="You have no such client secret.",
)


def _secret_status(expires_on_ms: int | None, now_ms: int) -> str:
    if expires_on_ms is None:
        return "does not expire"
    if expires_on_ms <= now_ms:
        return "expired"
    return "expires soon" if expires_on_ms - now_ms < EXPIRES_SOON_MS else "valid"


API_KEYS_PATH: Final = "/settings/keys"
MAX_KEY_NAME_CHARS: Final = 100
REVOKE_API_KEY: Final = ActionRow(
    f"{API_KEYS_PATH}/{{key_id}}/revoke", "revoke an API key", "DELETE /admin/partners/{partner_id}/api-keys/{key_id}",
    API_KEYS_PATH, "API key {key_id:.8} revoked.", missing="You have no such API key.",
)  # fmt: skip


async def show_keys(request: PageRequest, *, made: str = "", name: str = "", wrong: str = "") -> Response:
    """List the keys by id; with a rejected name, or with the key that was made, which is shown once."""
    keys = await request.read(list_credentials, CredentialKind.API_KEY, request.partner.id)
    return await request.page(
        "settings/keys.html", 400 if wrong else 200,
        keys=list(reversed(keys)), made=made, typed=name, wrong=wrong, address=request.services.public_url,
    )  # fmt: skip


async def make_key(request: PageRequest) -> Response:
    """Create a key, and show it on the response."""
    name = (await request.field("name")).strip()
    if not 1 <= len(name) <= MAX_KEY_NAME_CHARS:
        wrong = f"Enter a name of 1 to {MAX_KEY_NAME_CHARS} characters, such as where the key is used."
        return await show_keys(request, name=name, wrong=wrong)
    operation = "POST /admin/partners/{partner_id}/api-keys"
    response = await request.admin(operation, partner_id=request.partner.id, name=name)
    return await show_keys(request, made=response["api_key"])


ADMINISTRATOR_PATH: Final = "/settings/administrator"
MAX_TOKEN_CHARS: Final = 1024


async def show_administrator(request: PageRequest, wrong: str = "", status: int = 200) -> Response:
    """Return the end of this session's administrator rights, or the form for the token, with its error."""
    session = request.session
    return await request.page(
        "settings/administrator.html", status, wrong=wrong,
        until_ms=None if session is None else session.admin_until_ms,
        has_admin_token=request.services.has_admin_token,
    )  # fmt: skip


async def start_administration(request: PageRequest) -> Response:
    """Check the admin token; wrong ones count toward the same limit as at the admin API."""
    services = request.services
    token = await request.field("token")
    if not services.has_admin_token:
        return await show_administrator(request, "This service has no admin token.", 409)
    if not token or len(token) > MAX_TOKEN_CHARS:
        return await show_administrator(request, "Enter the admin token.", 400)
    address = services.client_address(request.http.scope)
    try:
        await services.sign_in_limiter.check_admin_attempts(address)
        if not services.is_admin_token(token):
            await services.sign_in_limiter.count_wrong_admin_token(address)
            return await show_administrator(request, "Wrong admin token.", 400)
    except ApiError as error:
        text = f"Too many wrong tokens. Try again in {error.retry_after_s or 60} s."
        return await show_administrator(request, text, 429)
    await services.sessions.grant_administration(request.session)
    return request.redirect(ADMINISTRATOR_PATH, "You have administrator rights for one hour.")


async def end_administration(request: PageRequest) -> Response:
    """End the administrator rights of this session."""
    await request.services.sessions.revoke_administration(request.session)
    return request.redirect(ADMINISTRATOR_PATH, "Your administrator rights ended.")


async def show_session(request: PageRequest) -> Response:
    """Return the partner's name, its apps, and the token of the forms of the session."""
    apps = [{"id": app.id, "name": app.name, "phone_number": app.phone_number} for app in request.apps]
    csrf = request.session.csrf if request.session else ""
    return JSONResponse({"partner": request.partner.name, "csrf": csrf, "apps": apps})


async def give_partner_token(request: PageRequest) -> Response:
    """Return a partner token."""
    return JSONResponse({"token": await request.services.apis.partner_token(request.partner.id)})


async def give_app_token(request: PageRequest) -> Response:
    """Return the token of an app, which the messaging API accepts as an API key too."""
    return JSONResponse({"token": request.services.apis.app_token(request.app)})
