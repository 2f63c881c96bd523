"""The profile page: details of the account, its limits, and its console sessions."""

import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.client.operations import DeclaredField, find_operation
from waypost.console.page_request import PageRequest
from waypost.console.settings.app import is_number_up_to
from waypost.domain.errors import ErrorCode
from waypost.domain.partner import MAX_QUOTA
from waypost.wire.errors import ERRORS

# fmt: off
ACCOUNT_FLAGS: Final = (  # Source: spec, "Partner account (login response)"; none changes what we do
    ("admin",                 "Account administrator"),
    ("terms_read",            "Terms read"),
    ("activation_read",       "Activation notice read"),
    ("enable_customer",       "Customers enabled"),
    ("enable_wallet",         "Wallet enabled"),
    ("enable_inr_wallet",     "INR wallet enabled"),
    ("enable_loader_wallet",  "Loader wallet enabled"),
    ("enable_app_onboarding", "App onboarding enabled"),
    ("is_tpp",                "Third-party provider"),
    ("onboard_enabled",       "Onboarding enabled"),
)
# fmt: on
_LABEL_END: Final = re.compile(r": | that ")
"""The end of a label in a meaning, such as `Messages that wait for the operator.`"""
_RETENTION: Final = "/admin/partners/{partner_id}/retention"  # Source: decision 0051
_QUOTAS: Final = "/admin/partners/{partner_id}/quotas"  # Source: decision 0099


async def show_profile(
    request: PageRequest, *, typed: Mapping[str, str] = {}, wrong: Mapping[str, str] = {}
) -> Response:
    """Return the details of the account, with rejected periods or quotas as typed where given."""
    partner, session = request.partner, request.session
    periods = await request.admin(f"GET {_RETENTION}", partner_id=partner.id)
    quotas = await request.admin(f"GET {_QUOTAS}", partner_id=partner.id)
    return await request.page(
        "settings/profile.html", 400 if wrong else 200,
        partner=partner, flags=ACCOUNT_FLAGS, sessions=await request.services.sessions.list_sessions(partner.id),
        own_hash=hash_secret(session.token) if session else "",
        is_demo=request.services.demo_partner_id == partner.id,
        periods=_declared_rows(_RETENTION, periods), quotas=_declared_rows(_QUOTAS, quotas),
        text_at_quota=ERRORS[ErrorCode.TOO_MANY_REQUESTS].text,
        typed=typed, wrong=wrong,
    )  # fmt: skip


def _declared_fields(path: str) -> Mapping[str, DeclaredField]:
    return find_operation(f"PUT {path}").fields or {}


def _declared_rows(path: str, values: Mapping[str, Any]) -> list[tuple[str, str, str, Any]]:
    """Return name, label, meaning and value of each number that the operation sets, as the admin API declares it.

    Args:
        values: as the admin API returns them, which is in the order of the fields.
    """
    rows: list[tuple[str, str, str, Any]] = []
    for (name, field), value in zip(_declared_fields(path).items(), values.values(), strict=True):
        label, text = _LABEL_END.split(field.meaning, 1)
        rows.append((name, label, text, value))
    return rows


async def end_other_sessions(request: PageRequest) -> Response:
    """End all other console sessions of the partner."""
    token = request.session.token if request.session else ""
    ended = await request.services.sessions.end_all(request.partner.id, except_token=token)
    return request.redirect("/settings", ended_sessions_notice(ended))


def ended_sessions_notice(ended: int) -> str:
    """Return a notice with the number of other sessions that ended."""
    if not ended:
        return "There were no other sessions."
    return f"{ended} other {'session' if ended == 1 else 'sessions'} ended."


async def change_retention(request: PageRequest) -> Response:
    """Set the partner's own periods; an empty field is the service's setting."""
    periods = await request.admin(f"GET {_RETENTION}", partner_id=request.partner.id)
    ranges = {name: (1, period["service_days"]) for name, period in periods.items()}
    rejected = await _put_numbers(request, _RETENTION, " of days", ranges)
    hint = "The next hourly run applies them."
    return rejected or request.redirect("/settings", "Retention periods changed.", hint=hint)


async def change_quotas(request: PageRequest) -> Response:
    """Set the partner's own quotas; an empty field is the service's setting."""
    ranges = dict.fromkeys(_declared_fields(_QUOTAS), (0, MAX_QUOTA))
    rejected = await _put_numbers(request, _QUOTAS, "", ranges)
    return rejected or request.redirect("/settings", "Quotas changed.", hint="They apply at once.")


async def _put_numbers(
    request: PageRequest, path: str, unit: str, ranges: Mapping[str, tuple[int, int]]
) -> Response | None:
    """Send the numbers of a form to the admin API, empty fields as null; return the page if a number is invalid.

    Args:
        ranges: minimum and maximum by field.
    """
    typed = {name: (await request.field(name)).strip() for name in ranges}
    wrong = {
        name: f"Enter a number{unit} from {minimum} to {maximum}, or nothing."
        for name, (minimum, maximum) in ranges.items()
        if typed[name] and not is_number_up_to(maximum, typed[name], minimum=minimum)
    }
    if wrong:
        return await show_profile(request, typed=typed, wrong=wrong)
    numbers = {name: int(text) if text else None for name, text in typed.items()}
    await request.admin(f"PUT {path}", partner_id=request.partner.id, **numbers)
    return None
