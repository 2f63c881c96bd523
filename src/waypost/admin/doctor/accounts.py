"""Checks of an operator account: its token, its business accounts, and its usage of call limits."""

from typing import Final

from waypost.admin.doctor.check_result import CheckResult, failed_call_results, failure, ok, warning
from waypost.admin.operator_requests import OperatorCallFailed, call_operator
from waypost.admin.provisioning import AdminContext
from waypost.base.clock import DAY_MS
from waypost.domain.app import BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import CheckToken, GetBusinessAccount

EXPIRY_WARNING_DAYS: Final = 7
USAGE_WARNING_PERCENT: Final = 80


async def check_token(context: AdminContext, account: OperatorAccount) -> list[CheckResult]:
    """Check the token's validity, expiry and permissions. Source: operator's page "Debug-Token"."""
    subject = f"{account.id}: token"
    try:
        token = await call_operator(context.operators, account, CheckToken())
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    if token is None:
        return []  # the other calls show if it works
    fix_hint = f"create a new token for the system user, then: waypost account token {account.id}"
    if not token.is_valid:
        return [failure(subject, f"not valid: {token.reason or 'the operator gives no reason'}", fix_hint)]
    if token.missing_permissions:
        return [failure(subject, f"lacks the permission {' and '.join(token.missing_permissions)}", fix_hint)]
    if token.expires_at_s:
        days = (token.expires_at_s * 1000 - context.clock.now_ms()) / DAY_MS
        if days <= 0:
            return [failure(subject, "has expired", fix_hint)]
        if days < EXPIRY_WARNING_DAYS:
            return [warning(subject, f"valid, and expires in {_format_remaining(days)}", fix_hint)]
        return [ok(subject, f"valid, expires in {days:.0f} days")]
    return [ok(subject, "valid, does not expire")]


async def check_business_account(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount
) -> list[CheckResult]:
    """Check that the operator has the business account, with the same namespace as ours."""
    subject = f"{account.id}: business account {owner.id}"
    try:
        business = await call_operator(context.operators, account, GetBusinessAccount(owner.id))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    if business.namespace and business.namespace != owner.namespace:
        text = f"its namespace is {business.namespace} at the operator and {owner.namespace} here"
        fix_hint = "switch one of its apps to another operator account and back: waypost app operator"
        return [warning(subject, text, fix_hint)]
    if business.review:
        fix_hint = "see the review in the operator's console"
        return [warning(subject, f"its review at the operator is {business.review}", fix_hint)]
    return [ok(subject, f"exists: {business.name or 'no name'}")]


def check_usage(context: AdminContext, account: OperatorAccount) -> list[CheckResult]:
    """Check how close the account was to its call limits at the operator's last report."""
    subject = f"{account.id}: usage"
    results: list[CheckResult] = []
    for usage in context.operators.adapter(account).usage(account.id):
        scope = f"{usage.business_id} ({usage.type})" if usage.business_id else "the operator app"
        text = f"{usage.percent} % of the calls of {scope}"
        if usage.minutes_until_reset:
            fix_hint = f"wait {usage.minutes_until_reset} minutes; nothing is lost"
            results.append(warning(subject, f"used up: {text}", fix_hint))
        elif usage.percent >= USAGE_WARNING_PERCENT:
            fix_hint = "make fewer calls: fewer template edits, fewer syncs"
            results.append(warning(subject, f"near the limit: {text}", fix_hint))
        else:
            results.append(ok(subject, text))
    return results


def _format_remaining(days: float) -> str:
    hours = days * 24
    return f"{days:.1f} days" if days >= 1 else f"{hours:.1f} hours" if hours >= 1 else "less than an hour"
