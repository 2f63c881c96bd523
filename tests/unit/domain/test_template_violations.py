"""All violations of a draft, with their fix hints."""

import pytest

from tests.support.builders import draft
from waypost.domain.app import Hosting
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rules import TEMPLATE_RULES
from waypost.domain.templates.violations import RejectedBy, find_violations


@pytest.mark.parametrize("hint", sorted({rule.fix_hint for rule in TEMPLATE_RULES}))
def test_hint_is_a_sentence(hint: str) -> None:
    assert hint[0].isupper()
    assert hint.endswith(".")


def test_rules_are_suppressed_by_rules_that_are_checked_before_them() -> None:
    checked: set[str] = set()
    for rule in TEMPLATE_RULES:
        assert checked.issuperset(rule.suppressed_by), rule.id
        checked.add(rule.id)


def test_draft_of_the_builders_has_no_violations() -> None:
    assert find_violations(draft()) == []


def test_empty_draft_has_one_violation_of_each_field() -> None:
    violations = find_violations(TemplateDraft())

    fields = [violation.field for violation in violations]
    assert len(fields) == len(set(fields))
    assert {violation.refused_by for violation in violations} == {RejectedBy.API}


def test_all_broken_rules_are_reported_with_who_rejects_each() -> None:
    violations = find_violations(draft(element_name="Up", footer="x" * 61, content="Hi {{1}}", example="Hi Ann"))

    rejecters = {violation.rule: violation.refused_by for violation in violations}
    assert rejecters == {
        "name-characters": RejectedBy.API,
        "footer-length": RejectedBy.API,
        "content-inside": RejectedBy.REVIEW,
        "content-words": RejectedBy.REVIEW,
    }


def test_strict_service_rejects_at_once_what_the_review_would() -> None:
    violations = find_violations(
        draft(content="Your code for today is {{1}}", example="Your code for today is 12"), strict=True
    )

    assert [(violation.rule, violation.refused_by) for violation in violations] == [("content-inside", RejectedBy.API)]


def test_rule_of_another_hosting_is_not_reported() -> None:
    offer = draft(category="MARKETING", is_lto=True, limited_offer_text="Soon", has_expiration=False)

    cloud = {violation.rule for violation in find_violations(offer)}
    premises = {violation.rule for violation in find_violations(offer, hosting=Hosting.ON_PREMISES)}

    assert premises - cloud == {"hosted-lto"}
