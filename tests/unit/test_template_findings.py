"""All that is wrong with a draft, and what to do about it."""

import pytest

from tests.support.builders import draft
from waypost.domain.app import Hosting
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.rules import RULES
from waypost.domain.templates.violations import RefusedBy, findings_of


@pytest.mark.parametrize("hint", sorted({rule.hint for rule in RULES}))
def test_hint_is_a_sentence(hint: str) -> None:
    assert hint[0].isupper()
    assert hint.endswith(".")


def test_rules_are_suppressed_by_rules_that_are_tried_before_them() -> None:
    tried: set[str] = set()
    for rule in RULES:
        assert tried.issuperset(rule.suppressed_by), rule.id
        tried.add(rule.id)


def test_draft_of_the_builders_has_no_findings() -> None:
    assert findings_of(draft()) == []


def test_draft_that_says_nothing_is_told_of_each_field_once() -> None:
    found = findings_of(Draft())

    fields = [one.field for one in found]
    assert len(fields) == len(set(fields))
    assert {one.refused_by for one in found} == {RefusedBy.API}


def test_all_broken_rules_are_told_and_who_refuses_each() -> None:
    found = findings_of(draft(element_name="Up", footer="x" * 61, content="Hi {{1}}", example="Hi Ann"))

    told = {one.rule: one.refused_by for one in found}
    assert told == {
        "name-characters": RefusedBy.API,
        "footer-length": RefusedBy.API,
        "content-inside": RefusedBy.REVIEW,
        "content-words": RefusedBy.REVIEW,
    }


def test_strict_service_refuses_at_once_what_the_review_would() -> None:
    found = findings_of(draft(content="Your code for today is {{1}}", example="Your code for today is 12"), strict=True)

    assert [(one.rule, one.refused_by) for one in found] == [("content-inside", RefusedBy.API)]


def test_rule_of_another_hosting_is_not_told() -> None:
    offer = draft(category="MARKETING", is_lto=True, limited_offer_text="Soon", has_expiration=False)

    cloud = {one.rule for one in findings_of(offer)}
    premises = {one.rule for one in findings_of(offer, hosting=Hosting.ON_PREMISES)}

    assert premises - cloud == {"hosted-lto"}
