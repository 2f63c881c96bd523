"""The password page: changing the password, and what a change revokes."""

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.base.telemetry.logs import log
from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.settings.field_errors import form_error
from waypost.console.settings.profile import ended_sessions_notice
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError
from waypost.domain.partner import MAX_PASSWORD_CHARS
from waypost.store.accounts.partners import LoginRecord, find_login_record

_log = log("console")


async def show_password(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the form, with an explanation of what a change revokes."""
    return await _page(tools, page_request, {}, ends_tokens=True)


async def change_password(tools: PageTools, page_request: PageRequest) -> Response:
    """Change the password, and end every other session of the console.

    The current password is checked with argon2id. A client secret is accepted in its place: partners
    without a password sign in with one. Attempts count toward the limit on sign-in attempts.

    Source: spec, "Authentication", rule 2; decision 0058.
    """
    parts, partner = tools.services, page_request.partner
    old, new = await page_request.field("old"), await page_request.field("new")
    ends_tokens = await page_request.is_checked("end_tokens")
    wrong = _validate(old, new, await page_request.field("again"))
    if wrong:
        return await _page(tools, page_request, wrong, ends_tokens=ends_tokens)
    try:
        address = parts.client_address(page_request.request.scope)
        attempt = await parts.sign_in_limiter.spend(partner.email.lower(), address)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        wrong = {"old": f"Too many attempts. Try again in {wait_s} s."}
        return await _page(tools, page_request, wrong, 429, ends_tokens=ends_tokens)
    if not await _is_current_password(tools, await _read_login_facts(tools, page_request), old):
        _log.info("wrong password at a password change", partner_id=partner.id)
        wrong = {"old": "Wrong password."}
        return await _page(tools, page_request, wrong, ends_tokens=ends_tokens)
    await attempt.refund()
    own = hash_secret(page_request.session.token) if page_request.session else ""
    try:
        response = await parts.apis.admin.json(
            "POST",
            f"/admin/partners/{partner.id}/password",
            {"password": new, "end_tokens": ends_tokens, "keep_session": own},
        )
    except ApiResponseError as error:
        return await _page(tools, page_request, {"new": form_error(error)}, ends_tokens=ends_tokens)
    if ends_tokens:
        parts.apis.clear_partner_tokens()
    tokens = response.get("tokens_ended", 0)
    token_notice = f" {tokens} partner {'token' if tokens == 1 else 'tokens'} revoked." if tokens else ""
    return tools.redirect(
        "/settings/password",
        f"Password changed. {ended_sessions_notice(response['sessions_ended'])}{token_notice}",
        hint="From now on the API accepts only client secrets: update every script that logs in.",
    )  # fmt: skip


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


async def _is_current_password(tools: PageTools, facts: LoginRecord | None, password: str) -> bool:
    stored = None if facts is None else facts.password_hash
    is_secret = facts is not None and hash_secret(password) in facts.secret_hashes
    return await tools.services.passwords.matches(stored, password) or is_secret


async def _read_login_facts(tools: PageTools, page_request: PageRequest) -> LoginRecord | None:
    now_ms = tools.services.clock.now_ms()
    return await tools.services.database.read(find_login_record, page_request.partner.email, now_ms)


async def _page(
    tools: PageTools,
    page_request: PageRequest,
    wrong: dict[str, str],
    status: int | None = None,
    *,
    ends_tokens: bool = False,
) -> Response:
    facts = await _read_login_facts(tools, page_request)
    return await tools.page(
        page_request, "settings/password.html", status or (400 if wrong else 200),
        wrong=wrong, ends_tokens=ends_tokens,
        has_changed=facts is not None and facts.password_changed,
        has_password=facts is not None and bool(facts.password_hash),
        secret_count=0 if facts is None else len(facts.secret_hashes),
        is_demo=tools.services.demo_partner_id == page_request.partner.id,
    )  # fmt: skip
