"""Changing the password: what it ends is said before, and done with it."""

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
    """The form, and what it does."""
    return await _page(desk, visit, {})


async def change_password(desk: PageTools, visit: PageRequest) -> Response:
    """Change it, and end every other session of the console.

    The old password is checked by argon2id, or it is a client secret: whoever has no password signs in
    with one. Attempts count as attempts to sign in do.

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
    except ApiError as refused:
        wait = refused.retry_after_s or 60
        wrong = {"old": f"There were too many attempts. Wait {wait} s and try again."}
        return await _page(desk, visit, wrong, 429, ends_tokens=ends_tokens)
    if not await _is_right(desk, await _facts(desk, visit), old):
        _log.info("a change of a password was refused", partner_id=partner.id)
        wrong = {"old": "This is not your password."}
        return await _page(desk, visit, wrong, ends_tokens=ends_tokens)
    await attempt.give_back()
    own = hash_of(visit.session.token) if visit.session else ""
    try:
        told = await parts.apis.admin.json(
            "POST",
            f"/admin/partners/{partner.id}/password",
            {"password": new, "end_tokens": ends_tokens, "keep_session": own},
        )
    except ApiResponseError as refused:
        return await _page(desk, visit, {"new": words_of(refused)}, ends_tokens=ends_tokens)
    if ends_tokens:
        parts.apis.forget()
    tokens = told.get("tokens_ended", 0)
    more = f" {tokens} partner {'token has' if tokens == 1 else 'tokens have'} ended." if tokens else ""
    return desk.go(
        "/settings/password",
        f"Your password is changed. {said_of_sessions(told['sessions_ended'])}{more}",
        remedy="The API takes client secrets only from now on: give one to every script that logs in.",
    )  # fmt: skip


def _wrong(old: str, new: str, again: str) -> dict[str, str]:
    """By field, what can be told before anything is asked."""
    if not old or len(old) > MOST:
        return {"old": "Give the password you sign in with."}
    if not new:
        return {"new": "Give the new password."}
    if new == old:
        return {"new": "The new password is the old one; choose another."}
    if new != again:
        return {"again": "This differs from the new password."}
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
