"""Problems that need attention, each with what happened, what to do, and a link."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.console.messages.failure_explanations import FAILURES, explain_failure
from waypost.console.overview.queries import AppOverview
from waypost.store.queue.job_subjects import QueueName

SECRET_WARNING_MS: Final = 14 * DAY_MS
"""A client secret is listed this long before and after it expires."""
MAX_ATTENTION_ITEMS: Final = 12


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """One problem."""

    id: str  # element id
    severity: str  # error or warning
    what: str  # what happened
    fix_hint: str  # what to do
    path: str = ""  # page of the link
    label: str = ""  # text of the link
    at_ms: int | None = None  # start of the problem; None if unknown
    position: int | None = None  # position of a dead letter that can be retried here


def attention_items(overview: AppOverview) -> list[AttentionItem]:
    """Return the most important problems, the worst first."""
    needs = [need for look in _CHECKS for need in look(overview)]
    order = {"error": 0, "warning": 1}
    return sorted(needs, key=lambda need: order[need.severity])[:MAX_ATTENTION_ITEMS]


def _failed_checks(overview: AppOverview) -> Iterator[AttentionItem]:
    for name, why in overview.not_ready.items():
        text = f"The service is not ready: {why}"
        yield AttentionItem(f"need-check-{name}", "error", text, "Contact the administrator of this service.")


def _missing_number(overview: AppOverview) -> Iterator[AttentionItem]:
    if not overview.app.phone_number:
        yield AttentionItem(
            "need-number", "warning", "The app has no phone number",
            "The administrator must connect one before messages can be sent.",
            f"/apps/{overview.app.id}/settings", "App settings",
        )  # fmt: skip


def _failing_receivers(overview: AppOverview) -> Iterator[AttentionItem]:
    path = f"/apps/{overview.app.id}/callbacks"
    for receiver in overview.receivers:
        if receiver["paused_on_ms"] is not None:
            yield AttentionItem(
                f"need-receiver-{receiver['id']}", "error",
                f"Callbacks to {receiver['tag']} are paused: {receiver['pause_reason'] or 'deliveries kept failing'}",
                "Its callbacks are retained. Fix the endpoint, then resume the subscription.",
                path, "Callbacks", receiver["paused_on_ms"],
            )  # fmt: skip
        elif receiver["failing_since_ms"] is not None and receiver["active"]:
            yield AttentionItem(
                f"need-receiver-{receiver['id']}", "error", f"Callbacks to {receiver['tag']} are failing",
                "They are retried automatically and nothing is lost. Check the responses of the endpoint.",
                path, "Callbacks", receiver["failing_since_ms"],
            )  # fmt: skip


def _failed_messages(overview: AppOverview) -> Iterator[AttentionItem]:
    from_ms = (overview.now_ms // MINUTE_MS - 59) * MINUTE_MS
    counted = overview.counts.count_between(from_ms, overview.now_ms + HOUR_MS)
    by_code: Counter[int | None] = Counter()
    for (state, code), count in counted.items():
        if state == "failed":
            by_code[code] += count
    for code, count in by_code.most_common(5):
        failure = explain_failure(code)
        reason = failure.what if code in FAILURES else overview.counts.reasons.get(code) or failure.what
        suffix = f" (code {code})" if code is not None else ""
        messages = "message" if count == 1 else "messages"
        query = urlencode({"state": "failed", **({} if code is None else {"code": code}), "time": "hour"})
        yield AttentionItem(
            f"need-code-{code}", "error" if code == 500 else "warning",
            f"{count} {messages} failed in the last hour: {reason}{suffix}", failure.fix_hint,
            f"/apps/{overview.app.id}/messages?{query}", "View messages",
        )  # fmt: skip


def _delayed_messages(overview: AppOverview) -> Iterator[AttentionItem]:
    for queue in overview.queues:
        if queue.queue is not QueueName.OUTBOUND or not queue.tries or not queue.note:
            continue
        attempts = "1 attempt" if queue.tries == 1 else f"{queue.tries} attempts"
        yield AttentionItem(
            "need-delayed", "warning", f"Sending is delayed after {attempts}: {queue.note}",
            "It is retried automatically and nothing is lost.",
            f"/apps/{overview.app.id}/messages?state=accepted", "Waiting messages",
        )  # fmt: skip


def _limited_requests(overview: AppOverview) -> Iterator[AttentionItem]:
    for rate in overview.limited:
        requests = "1 request was" if rate.requests == 1 else f"{rate.requests} requests were"
        change = "`waypost app rates` changes the app's"
        yield AttentionItem(
            f"need-rate-{rate.name}", "warning",
            f"{requests} limited in the last 10 minutes: more than the rate {rate.name} allows (status 429)",
            f"Wait as Retry-After says. {change}; `waypost dev --no-rates` has none." if overview.is_demo
            else f"Wait as Retry-After says. {change}, for the administrator.",
            f"/apps/{overview.app.id}/settings#rates", "Rates of the app",
            at_ms=rate.last_ms,
        )  # fmt: skip


def _dead_letters(overview: AppOverview) -> Iterator[AttentionItem]:
    for letter in overview.dead_letters[:5]:
        yield AttentionItem(
            f"need-dead-letter-{letter.position}", "error",
            f"A job became a dead letter: {letter.note or 'no reason recorded'}",
            f"Retry it after the service has been fixed. It concerns {letter.ref}.",
            position=letter.position,
        )  # fmt: skip


_TEMPLATE_PROBLEMS: Final = {  # severity, what happened, what to do
    "REJECTED": ("warning", "was rejected", "Fix the problem that the reviewer named, then submit it again."),
    "FAILED": ("warning", "could not be submitted", "Fix the problem that the operator named, then submit it again."),
    "PAUSED": (
        "error",
        "is paused",
        "It resumes automatically after some hours. Improve its text, or it may be disabled.",
    ),
    "DISABLED": ("error", "is disabled", "It was paused too often. Create a new template."),
    "FLAGGED": ("warning", "is flagged", "Its quality is low. It is paused if the quality does not improve."),
    "LOCKED": ("warning", "is locked", "Check it in the operator's console."),
    "APPROVED": ("warning", "has low quality", "Send it to fewer people or improve its text, or it may be paused."),
}


def _template_problems(overview: AppOverview) -> Iterator[AttentionItem]:
    for template in overview.problem_templates[:6]:
        severity, problem, fix_hint = _TEMPLATE_PROBLEMS[template.status]
        reason = f": {template.reason}" if template.reason and template.status in ("REJECTED", "FAILED") else ""
        yield AttentionItem(
            f"need-template-{template.id}", severity,
            f"Template {template.element_name} ({template.language_code}) {problem}{reason}", fix_hint,
            f"/apps/{overview.app.id}/templates/{template.id}", "View template", template.modified_on_ms,
        )  # fmt: skip


def _expiring_secrets(overview: AppOverview) -> Iterator[AttentionItem]:
    for secret in overview.secrets:
        left_ms = None if secret.expires_on_ms is None else secret.expires_on_ms - overview.now_ms
        if left_ms is None or not -SECRET_WARNING_MS < left_ms < SECRET_WARNING_MS:
            continue
        has_expired = left_ms <= 0
        yield AttentionItem(
            f"need-secret-{secret.id}", "error" if has_expired else "warning",
            f"Client secret {secret.id[:8]} {'has expired' if has_expired else 'expires soon'}",
            "If it is in use, create a new one and replace it. Otherwise revoke it.",
            "/settings/secrets", "Client secrets", secret.expires_on_ms,
        )  # fmt: skip


_CHECKS: Final[tuple[Callable[[AppOverview], Iterator[AttentionItem]], ...]] = (
    _failed_checks,
    _missing_number,
    _failing_receivers,
    _dead_letters,
    _limited_requests,
    _template_problems,
    _failed_messages,
    _delayed_messages,
    _expiring_secrets,
)
