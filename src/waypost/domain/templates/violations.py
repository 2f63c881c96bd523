"""All rules that a draft breaks, each with a fix hint, for the template editor and the check endpoint."""

from dataclasses import dataclass
from enum import StrEnum

from waypost.domain.app import Hosting
from waypost.domain.errors import ErrorCode
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rules import TEMPLATE_RULES, explain_failure


class RejectedBy(StrEnum):
    """The step that rejects a draft because of a violation (decision 0015)."""

    API = "api"  # at creation, with 400
    REVIEW = "review"  # it is accepted as PENDING, and the operator's review rejects it


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a draft breaks."""

    field: str  # the wire's name, with the place inside `buttons` and `cards`
    rule: str  # its id
    says: str  # the error text
    source: str
    remedy: str  # the fix hint
    refused_by: RejectedBy


def find_violations(draft: TemplateDraft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> list[Violation]:
    """Return all violations of a draft, in the order of the rules; of each rule the first place.

    A missing required field has no other violations.

    Args:
        draft: as it is now.
        strict: true if the service checks the operator's rules at creation.
        hosting: the variant of the channel API of its app.
    """
    violations: list[Violation] = []
    missing: set[str] = set()
    broken: set[str] = set()
    for rule in TEMPLATE_RULES:
        if rule.hosting not in (None, hosting) or rule.field in missing:
            continue
        failure = rule.check(draft)
        if failure is None:
            continue
        broken.add(rule.id)
        if rule.error_code is ErrorCode.FIELD_MISSING:
            missing.add(rule.field)
        if broken.isdisjoint(rule.suppressed_by):
            text = explain_failure(rule, failure)
            rejected_by = RejectedBy.REVIEW if rule.is_operator_rule and not strict else RejectedBy.API
            field = f"{rule.field}{failure.place}"
            violations.append(Violation(field, rule.id, text, rule.source, rule.fix_hint, rejected_by))
    return violations
