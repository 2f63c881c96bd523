"""An operator account: its token, and the business accounts that the token opens."""

from typing import Final

from waypost.admin.doctor.check_result import Finding, ok, warning, wrong
from waypost.admin.doctor.error_explanations import refused
from waypost.admin.operator_requests import NotTold, ask
from waypost.admin.provisioning import AdminContext
from waypost.base.clock import DAY_MS
from waypost.domain.app import BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import CheckToken, GetBusinessAccount

SOON_DAYS: Final = 7
NEAR_PERCENT: Final = 80


async def look_at_token(context: AdminContext, account: OperatorAccount) -> list[Finding]:
    """Whether the token is valid, until when, and what it may do. Source: operator's page "Debug-Token"."""
    about = f"{account.id}: token"
    try:
        token = await ask(context.operators, account, CheckToken())
    except NotTold as error:
        return refused(about, account.id, error)
    if token is None:
        return []  # the other calls show whether it works
    remedy = f"make a new token for the system user, then: waypost account token {account.id}"
    if not token.is_valid:
        return [wrong(about, f"not valid: {token.reason or 'the operator does not say why'}", remedy)]
    if token.missing_permissions:
        return [wrong(about, f"lacks the permission {' and '.join(token.missing_permissions)}", remedy)]
    if token.expires_at_s:
        days = (token.expires_at_s * 1000 - context.clock.now_ms()) / DAY_MS
        if days <= 0:
            return [wrong(about, "has expired", remedy)]
        if days < SOON_DAYS:
            return [warning(about, f"valid, and expires in {_shortly(days)}", remedy)]
        return [ok(about, f"valid, expires in {days:.0f} days")]
    return [ok(about, "valid, does not expire")]


async def look_at_business(context: AdminContext, account: OperatorAccount, owner: BusinessAccount) -> list[Finding]:
    """Whether the operator has the business account, and calls its namespace as we do."""
    about = f"{account.id}: business account {owner.id}"
    try:
        business = await ask(context.operators, account, GetBusinessAccount(owner.id))
    except NotTold as error:
        return refused(about, account.id, error)
    if business.namespace and business.namespace != owner.namespace:
        text = f"its namespace is {business.namespace} at the operator and {owner.namespace} here"
        remedy = "switch one of its apps away and back: waypost app operator"
        return [warning(about, text, remedy)]
    if business.review:
        remedy = "see the review in the operator's console"
        return [warning(about, f"the operator's review says {business.review}", remedy)]
    return [ok(about, f"is there: {business.name or 'no name'}")]


def look_at_usage(context: AdminContext, account: OperatorAccount) -> list[Finding]:
    """How near its limits the account was when the operator last said."""
    about = f"{account.id}: usage"
    findings: list[Finding] = []
    for one in context.operators.of(account).usage(account.id):
        whose = f"{one.business_id} ({one.type})" if one.business_id else "the operator app"
        text = f"{one.percent} % of the calls of {whose}"
        if one.regain_minutes:
            remedy = f"wait {one.regain_minutes} minutes; nothing is lost"
            findings.append(warning(about, f"used up: {text}", remedy))
        elif one.percent >= NEAR_PERCENT:
            remedy = "ask for less: fewer template edits, fewer syncs"
            findings.append(warning(about, f"near the limit: {text}", remedy))
        else:
            findings.append(ok(about, text))
    return findings


def _shortly(days: float) -> str:
    hours = days * 24
    return f"{days:.1f} days" if days >= 1 else f"{hours:.1f} hours" if hours >= 1 else "less than an hour"
