"""Checks of an operator account: token, usage, business accounts with numbers and templates, and the webhook."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlencode, urlsplit

from waypost.admin.doctor.local import CheckResult, CheckState, failed_call_results, failure, is_local, ok, warning
from waypost.admin.operator_accounts import OperatorCallFailed, call_operator, callback_url
from waypost.admin.provisioning import AdminContext
from waypost.base.clock import DAY_MS
from waypost.client.api_client import ApiUnreachable, ClientResponse, HttpTransport
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import (
    CheckToken,
    GetBusinessAccount,
    GetSubscription,
    ListMissingFields,
    ListNumbers,
    ListTemplates,
    OperatorNumber,
    TemplateDetail,
)
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.phone_number import read_phone_number
from waypost.domain.templates.template import Template, TemplateFilter, TemplateStatus
from waypost.notifications.template_changes import name_and_language
from waypost.notifications.template_sync import LISTED_AS_APPROVED
from waypost.store.templates.templates import find_templates, queued_template_ids

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
            hours = days * 24
            remaining = f"{days:.1f} days" if days >= 1 else f"{hours:.1f} hours" if hours >= 1 else "less than an hour"
            return [warning(subject, f"valid, and expires in {remaining}", fix_hint)]
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


async def check_numbers(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: Sequence[App]
) -> list[CheckResult]:
    """Check the number of each app; several results if a number has several problems."""
    subject = f"{account.id}: numbers of {owner.id}"
    try:
        numbers = await call_operator(context.operators, account, ListNumbers(owner.id))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    return [result for app in apps for result in _check_number(context, account, app, numbers)]


def _check_number(
    context: AdminContext, account: OperatorAccount, app: App, numbers: Sequence[OperatorNumber]
) -> list[CheckResult]:
    subject = f"{account.id}: number +{app.phone_number} of {app.name}"
    connect = f"waypost app connect {app.id} NUMBER NUMBER_ID {app.business_account_id}"
    number = {listed.id: listed for listed in numbers}.get(app.phone_number_id)
    if number is None:
        listed_numbers = ", ".join(f"{listed.id} ({listed.display_number})" for listed in numbers) or "none"
        text = f"the operator has no number {app.phone_number_id}; it has {listed_numbers}"
        return [failure(subject, text, connect)]
    results: list[CheckResult] = []
    if read_phone_number(number.display_number) not in (None, app.phone_number):
        text = f"{app.phone_number_id} is {number.display_number} at the operator"
        results.append(failure(subject, text, connect))
    results += [
        CheckResult(
            subject, CheckState.WRONG if problem.is_serious else CheckState.WARNING, problem.text, problem.fix_hint
        )
        for problem in number.problems
    ]
    ours = app.throughput or context.per_second
    if number.per_second is not None and ours > number.per_second:  # messages above it fail with an error
        text = f"we send {ours} messages a second, and the operator accepts {number.per_second}"
        fix_hint = f"set per_second of the app, or WAYPOST_PER_SECOND, to {number.per_second}"
        results.append(failure(subject, text, fix_hint))
    return results or [ok(subject, f"connected; {number.summary}")]


MAX_NAMED_TEMPLATES: Final = 5
"""The number of templates named in one result."""

_REJECTED_STATUSES: Final = frozenset({TemplateStatus.REJECTED, TemplateStatus.FAILED})


async def check_templates(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[CheckResult]:
    """Report templates whose status differs at the operator, and those it does not have."""
    subject = f"{account.id}: templates of {owner.id}"
    try:
        listed = await call_operator(context.operators, account, ListTemplates(owner.id, TemplateDetail.STATUS))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    read = context.database.read
    pending_ids = await read(queued_template_ids, owner.id)
    stored = await read(find_templates, owner.partner_id, owner.id, TemplateFilter())
    templates = [template for template in stored if template.id not in pending_ids]
    by_id = {remote.id: remote for remote in listed}
    by_name = {(remote.name, remote.language.replace("-", "_")): remote for remote in listed}
    missing: list[str] = []
    differing: list[str] = []
    for template in templates:
        remote = by_id.get(template.operator_template_id or "") or by_name.get(name_and_language(template))
        if remote is None and template.operator_template_id is None and template.status in _REJECTED_STATUSES:
            continue  # the operator never took it, so that it is no fault that it is not listed
        if remote is None:
            missing.append(_template_label(template))
        elif (
            template.status not in LISTED_AS_APPROVED
            and OPERATOR_STATUSES.get(remote.status, template.status) is not template.status
        ):
            differing.append(f"{_template_label(template)} is {template.status} here and {remote.status} there")
    app_id = apps[0].id if apps else "APP_ID"
    align = f"waypost app operator {app_id} {account.id}"
    results: list[CheckResult] = []
    if differing:
        text = f"{len(differing)} with another status: {_shorten_list(differing)}"
        results.append(warning(subject, text, f"to apply the operator's status: {align}"))
    if missing:
        text = f"the operator does not have {len(missing)}: {_shorten_list(missing)}"
        results.append(warning(subject, text, f"to submit them: {align} --submit-templates"))
    return results or [ok(subject, f"{len(templates)}, all the same as at the operator")]


def _template_label(template: Template) -> str:
    name, language = name_and_language(template)
    return f"{name} ({language})"


def _shorten_list(texts: list[str]) -> str:
    more = len(texts) - MAX_NAMED_TEMPLATES
    return ", ".join(texts[:MAX_NAMED_TEMPLATES]) + (f" and {more} more" if more > 0 else "")


HANDSHAKE_TIMEOUT_S: Final = 10


async def check_webhook_subscription(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: tuple[App, ...]
) -> list[CheckResult]:
    """Check that our app at the operator is subscribed to the business account, with our webhook URL."""
    subject = f"{account.id}: webhook of {owner.id}"
    fix_hint = f"waypost account subscribe {owner.id}"
    try:
        subscription = await call_operator(context.operators, account, GetSubscription(owner.id))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    if not subscription.is_subscribed:
        others = ", ".join(subscription.others) or "none"
        text = f"the operator app {subscription.subscriber} is not subscribed; subscribed: {others}"
        return [failure(subject, text, fix_hint)]
    expected = callback_url(context, account.id)
    urls = {subscription.urls[app.phone_number_id] for app in apps if app.phone_number_id in subscription.urls}
    if not urls and "" in subscription.urls:
        urls = {subscription.urls[""]}
    if not urls:
        text = "subscribed; the operator does not return the address"
        return [warning(subject, text, f"to make sure: {fix_hint}")]
    other_urls = sorted(urls - {expected})
    if other_urls:
        text = f"is sent to {other_urls[0]}, and ours is {expected}"
        return [failure(subject, text, fix_hint)]
    return [ok(subject, f"subscribed at {expected}")]


async def check_webhook_fields(context: AdminContext, account: OperatorAccount) -> list[CheckResult]:
    """Check that our app at the operator is subscribed to every webhook field that we need."""
    subject = f"{account.id}: webhook fields"
    try:
        missing = await call_operator(context.operators, account, ListMissingFields())
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    if not missing:
        return [ok(subject, "all that the service needs are subscribed")]
    text = "not subscribed: " + "; ".join(f"{field.name} ({field.consequence})" for field in missing)
    fix_hint = "subscribe to them in the app's configuration at the operator"
    is_serious = any(field.is_serious for field in missing)
    return [failure(subject, text, fix_hint) if is_serious else warning(subject, text, fix_hint)]


async def check_handshake(context: AdminContext, account: OperatorAccount) -> list[CheckResult]:
    """Check that our public URL returns the challenge, and rejects a wrong verify token."""
    subject, address = f"{account.id}: our address", callback_url(context, account.id)
    fix_hint = "start the service, and set WAYPOST_PUBLIC_URL to where the operator reaches it"
    if urlsplit(address).scheme != "https" and not is_local(account.base_url):
        text = f"{address} is not https, and the operator calls only https"
        return [failure(subject, text, fix_hint)]
    challenge = secrets.token_hex(8)
    query = context.operators.adapter(account).handshake(account, challenge, is_right=True)
    wrong_query = context.operators.adapter(account).handshake(account, challenge, is_right=False)
    if query is None or wrong_query is None:
        return []
    try:
        right_response = await _send_handshake(address, query)
        wrong_response = await _send_handshake(address, wrong_query)
    except ApiUnreachable:
        return [failure(subject, f"{address} cannot be reached", fix_hint)]
    if right_response.status != 200 or right_response.body != challenge.encode():
        text = f"{address} does not return the challenge; its response is {right_response.status}"
        return [failure(subject, text, f"another service may run there; {fix_hint}")]
    if wrong_response.status == 200:
        text = f"{address} accepts a wrong verify token"
        return [failure(subject, text, f"another service may run there; {fix_hint}")]
    return [ok(subject, f"{address} passes the handshake, and rejects a wrong verify token")]


async def _send_handshake(address: str, query: Mapping[str, str]) -> ClientResponse:
    parts = urlsplit(address)
    call = HttpTransport(f"{parts.scheme}://{parts.netloc}", timeout_s=HANDSHAKE_TIMEOUT_S)
    return await call("GET", f"{parts.path}?{urlencode(query)}", {}, None)
