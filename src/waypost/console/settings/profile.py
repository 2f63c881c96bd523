"""The profile page: details of the account, its limits, and its console sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.console.page_tools import PageTools
from waypost.console.settings.app import is_number_up_to
from waypost.console.web.page_request import PageRequest
from waypost.domain.errors import ErrorCode
from waypost.domain.partner import MAX_QUOTA, Partner
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
PERIODS: Final = (  # Source: decision 0051
    ("keep_bodies_days",      "Content",  "texts, callbacks, webhooks and files"),
    ("keep_messages_days",    "Messages", "their states and traces, without the content"),
)
QUOTAS: Final = (  # Source: decision 0099
    # in the response  field             label        meaning
    ("messages",       "message_quota",  "Messages",  "wait for the operator"),
    ("callbacks",      "callback_quota", "Callbacks", "wait for your receivers"),
)
# fmt: on


async def show_profile(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the details of the account; only the administrator can change them."""
    return await profile_page(tools, page_request)


async def profile_page(
    tools: PageTools, page_request: PageRequest, *, typed: Mapping[str, str] = {}, wrong: Mapping[str, str] = {}
) -> Response:
    """Return the page, with rejected periods or quotas as they were typed where given."""
    partner, session = page_request.partner, page_request.session
    own = hash_secret(session.token) if session else ""
    sessions = [
        (each.created_on_ms, each.expires_on_ms, each.hash == own)
        for each in await tools.services.sessions.list_sessions(partner.id)
    ]
    periods = await tools.services.apis.admin.json("GET", f"/admin/partners/{partner.id}/retention")
    quotas = await tools.services.apis.admin.json("GET", f"/admin/partners/{partner.id}/quotas")
    return await tools.page(
        page_request, "settings/profile.html", 400 if wrong else 200,
        partner=partner, flags=_flags(partner), sessions=sessions,
        is_demo=tools.services.demo_partner_id == partner.id,
        periods=[(name, label, text, periods[name]) for name, label, text in PERIODS],
        quotas=[(name, label, text, quotas[key]) for key, name, label, text in QUOTAS],
        text_at_quota=ERRORS[ErrorCode.TOO_MANY_REQUESTS].text,
        is_administrator=tools.is_administrator(page_request), typed=typed, wrong=wrong,
    )  # fmt: skip


async def end_other_sessions(tools: PageTools, page_request: PageRequest) -> Response:
    """End all other console sessions of the partner."""
    token = page_request.session.token if page_request.session else ""
    ended = await tools.services.sessions.end_all(page_request.partner.id, except_token=token)
    return tools.redirect("/settings", ended_sessions_notice(ended))


def ended_sessions_notice(ended: int) -> str:
    """Return a notice with the number of other sessions that ended."""
    if not ended:
        return "There were no other sessions."
    return f"{ended} other {'session' if ended == 1 else 'sessions'} ended."


def _flags(partner: Partner) -> list[tuple[str, bool]]:
    return [(label, bool(getattr(partner, name))) for name, label in ACCOUNT_FLAGS]


@dataclass(frozen=True, slots=True)
class _NumberField:
    """A field for a number, or for nothing: the setting of the service then applies."""

    unit: str
    minimum: int
    maximum: int

    def problem(self, text: str) -> str:
        """Return the error of what was typed; empty without one."""
        if not text or is_number_up_to(self.maximum, text, minimum=self.minimum):
            return ""
        return f"Enter a number{self.unit} from {self.minimum} to {self.maximum}, or nothing."


_QUOTA_FIELDS: Final = {field: _NumberField("", 0, MAX_QUOTA) for _, field, _, _ in QUOTAS}


async def change_retention(tools: PageTools, page_request: PageRequest) -> Response:
    """Set the partner's own periods; an empty field is the service's setting."""
    path = f"/admin/partners/{page_request.partner.id}/retention"
    periods = await tools.services.apis.admin.json("GET", path)
    fields = {name: _NumberField(" of days", 1, period["service_days"]) for name, period in periods.items()}
    rejected = await _put_numbers(tools, page_request, path, fields)
    return rejected or tools.redirect(
        "/settings", "Retention periods changed.", hint="The next hourly run applies them."
    )


async def change_quotas(tools: PageTools, page_request: PageRequest) -> Response:
    """Set the partner's own quotas; an empty field is the service's setting."""
    path = f"/admin/partners/{page_request.partner.id}/quotas"
    rejected = await _put_numbers(tools, page_request, path, _QUOTA_FIELDS)
    return rejected or tools.redirect("/settings", "Quotas changed.", hint="They apply at once.")


async def _put_numbers(
    tools: PageTools, page_request: PageRequest, path: str, fields: Mapping[str, _NumberField]
) -> Response | None:
    """Send the numbers of a form to the admin API; return the page with the errors if one is invalid."""
    typed = {name: (await page_request.field(name)).strip() for name in fields}
    problems = {name: field.problem(typed[name]) for name, field in fields.items()}
    wrong = {name: problem for name, problem in problems.items() if problem}
    if wrong:
        return await profile_page(tools, page_request, typed=typed, wrong=wrong)
    body: dict[str, Any] = {name: int(text) if text else None for name, text in typed.items()}
    await tools.services.apis.admin.json("PUT", path, body)
    return None
