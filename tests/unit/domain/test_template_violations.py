"""All that is wrong with a draft, and what to do about it."""

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


def test_rules_are_suppressed_by_rules_that_are_tried_before_them() -> None:
    tried: set[str] = set()
    for rule in TEMPLATE_RULES:
        assert tried.issuperset(rule.suppressed_by), rule.id
        tried.add(rule.id)


def test_draft_of_the_builders_has_no_findings() -> None:
    assert find_violations(draft()) == []


def test_draft_that_says_nothing_is_told_of_each_field_once() -> None:
    found = find_violations(TemplateDraft())

    fields = [one.field for one in found]
    assert len(fields) == len(set(fields))
    assert {one.refused_by for one in found} == {RejectedBy.API}


def test_all_broken_rules_are_told_and_who_refuses_each() -> None:
    found = find_violations(draft(element_name="Up", footer="x" * 61, content="Hi {{1}}", example="Hi Ann"))

    told = {one.rule: one.refused_by for one in found}
    assert told == {
        "name-characters": RejectedBy.API,
        "footer-length": RejectedBy.API,
        "content-inside": RejectedBy.REVIEW,
        "content-words": RejectedBy.REVIEW,
    }


def test_strict_service_refuses_at_once_what_the_review_would() -> None:
    found = find_violations(
        draft(content="Your code for today is {{1}}", example="Your code for today is 12"), strict=True
    )

    assert [(one.rule, one.refused_by) for one in found] == [("content-inside", RejectedBy.API)]


def test_rule_of_another_hosting_is_not_told() -> None:
    offer = draft(category="MARKETING", is_lto=True, limited_offer_text="Soon", has_expiration=False)

    cloud = {one.rule for one in find_violations(offer)}
    premises = {one.rule for one in find_violations(offer, hosting=Hosting.ON_PREMISES)}

    assert premises - cloud == {"hosted-lto"}
