"""The password page: changing the password, and what a change revokes."""

from typing import Final

from starlette.responses import Response

from waypost.base.encryption import hash_of
from waypost.base.telemetry.logs import log
from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.settings.field_errors import words_of
from waypost.console.settings.profile import said_of_sessions
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ApiError
from waypost.store.accounts.partners import LoginFacts, login_facts

MOST: Final = 1024
_log = log("console")


async def show_password(desk: PageTools, visit: PageRequest) -> Response:
    """Return the form, with an explanation of what a change revokes."""
    return await _page(desk, visit, {})


async def change_password(desk: PageTools, visit: PageRequest) -> Response:
    """Change the password, and end every other session of the console.

    The current password is checked with argon2id. A client secret is accepted in its place: partners
    without a password sign in with one. Attempts count toward the limit on sign-in attempts.

    Source: spec, "Authentication", rule 2; decision 0058.
    """
    parts, partner = desk.parts, visit.partner
    old, new = await visit.field("old"), await visit.field("new")
    ends_tokens = await visit.flag("end_tokens")
    wrong = _wrong(old, new, await visit.field("again"))
    if wrong:
        return await _page(desk, visit, wrong, ends_tokens=ends_tokens)
    try:
        address = parts.address_of(visit.request.scope)
        attempt = await parts.attempts.spend(partner.email.lower(), address)
    except ApiError as error:
        wait_s = error.retry_after_s or 60
        wrong = {"old": f"Too many attempts. Try again in {wait_s} s."}
        return await _page(desk, visit, wrong, 429, ends_tokens=ends_tokens)
    if not await _is_right(desk, await _facts(desk, visit), old):
        _log.info("wrong password at a password change", partner_id=partner.id)
        wrong = {"old": "Wrong password."}
        return await _page(desk, visit, wrong, ends_tokens=ends_tokens)
    await attempt.give_back()
    own = hash_of(visit.session.token) if visit.session else ""
    try:
        response = await parts.apis.admin.json(
            "POST",
            f"/admin/partners/{partner.id}/password",
            {"password": new, "end_tokens": ends_tokens, "keep_session": own},
        )
    except ApiResponseError as error:
        return await _page(desk, visit, {"new": words_of(error)}, ends_tokens=ends_tokens)
    if ends_tokens:
        parts.apis.forget()
    tokens = response.get("tokens_ended", 0)
    token_notice = f" {tokens} partner {'token' if tokens == 1 else 'tokens'} revoked." if tokens else ""
    return desk.go(
        "/settings/password",
        f"Password changed. {said_of_sessions(response['sessions_ended'])}{token_notice}",
        remedy="From now on the API accepts only client secrets: update every script that logs in.",
    )  # fmt: skip


def _wrong(old: str, new: str, again: str) -> dict[str, str]:
    """Return errors by field that need no call to find."""
    if not old or len(old) > MOST:
        return {"old": "Enter your current password."}
    if not new:
        return {"new": "Enter a new password."}
    if new == old:
        return {"new": "The new password must differ from the current one."}
    if new != again:
        return {"again": "The passwords do not match."}
    return {}


async def _is_right(desk: PageTools, facts: LoginFacts | None, given: str) -> bool:
    stored = None if facts is None else facts.password_hash
    is_secret = facts is not None and hash_of(given) in facts.secret_hashes
    return await desk.parts.passwords.matches(stored, given) or is_secret


async def _facts(desk: PageTools, visit: PageRequest) -> LoginFacts | None:
    now_ms = desk.parts.clock.now_ms()
    return await desk.parts.database.read(login_facts, visit.partner.email, now_ms)


async def _page(
    desk: PageTools, visit: PageRequest, wrong: dict[str, str], status: int | None = None, *, ends_tokens: bool = False
) -> Response:
    facts = await _facts(desk, visit)
    return await desk.page(
        visit, "settings/password.html", status or (400 if wrong else 200),
        wrong=wrong, ends_tokens=ends_tokens,
        has_changed=facts is not None and facts.password_changed,
        has_password=facts is not None and bool(facts.password_hash),
        secret_count=0 if facts is None else len(facts.secret_hashes),
        is_demo=desk.parts.demo_partner_id == visit.partner.id,
    )  # fmt: skip
