"""Every rule that a draft breaks, with what to do about each: for whoever is still writing it."""

from dataclasses import dataclass
from enum import StrEnum

from waypost.domain.app import Hosting
from waypost.domain.errors import ErrorCode
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.rules import RULES, Rule, told


class RefusedBy(StrEnum):
    """Who refuses a draft for a finding (decision 0015)."""

    API = "api"  # at creation, with 400
    REVIEW = "review"  # it is taken as PENDING, and the operator's review rejects it


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a draft breaks.

    Attributes:
        field: the wire's name, with the place inside `buttons` and `cards`.
        rule: its id.
        says: what the draft is told.
    """

    field: str
    rule: str
    says: str
    source: str
    remedy: str
    refused_by: RefusedBy


def findings_of(draft: Draft, *, strict: bool = False, hosting: Hosting = Hosting.CLOUD) -> list[Finding]:
    """All that is wrong with a draft, in the order of the table; of each rule the first place.

    Where a required field is missing, nothing else is said of it.

    Args:
        draft: as it is now.
        strict: whether the service holds drafts to the operator's rules at creation.
        hosting: which variant of the channel API its app is on.
    """
    found: list[Finding] = []
    missing: set[str] = set()
    broken: set[str] = set()
    for rule in RULES:
        if rule.hosting not in (None, hosting) or rule.field in missing:
            continue
        wrong = rule.must(draft)
        if wrong is None:
            continue
        broken.add(rule.id)
        if rule.reason is ErrorCode.FIELD_MISSING:
            missing.add(rule.field)
        if broken.isdisjoint(rule.suppressed_by):
            said = told(rule, wrong)
            by = _refused_by(rule, strict)
            field = f"{rule.field}{wrong.place}"
            found.append(Finding(field, rule.id, said, rule.source, rule.hint, by))
    return found


def _refused_by(rule: Rule, strict: bool) -> RefusedBy:
    return RefusedBy.REVIEW if rule.operators and not strict else RefusedBy.API
