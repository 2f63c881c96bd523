"""Decisions are sections of pages by subject: numbered without gaps, complete, and listed."""

import re
from itertools import pairwise
from typing import Final

import pytest

from docs.decision_pages import FOLDER, INDEX, Decision, decisions
from docs.evidence_pages import decisions_page
from tests.docs.repository import anchors_of

DECISIONS: Final = list(decisions().values())
MOST_PAGES: Final = 30
LONGEST: Final = 500
"""Words of one section, its tables left out."""


def number_of(decision: Decision) -> str:
    return decision.number


def test_decisions_are_numbered_from_one_without_gaps() -> None:
    numbers = sorted(int(decision.number) for decision in DECISIONS)

    assert numbers == list(range(1, len(DECISIONS) + 1))


def test_decisions_of_a_page_are_in_the_order_of_their_numbers() -> None:
    pairs = [(one.number, other.number) for one, other in pairwise(DECISIONS) if one.page == other.page]

    assert [pair for pair in pairs if pair != tuple(sorted(pair))] == []


def test_a_page_is_a_subject_and_not_a_decision() -> None:
    assert len({decision.page for decision in DECISIONS}) <= MOST_PAGES
    assert [path.name for path in FOLDER.glob("[0-9]*")] == []


@pytest.mark.parametrize("decision", DECISIONS, ids=number_of)
def test_decision_says_how_we_would_notice_that_it_was_wrong(decision: Decision) -> None:
    choice, *signs = re.split(r"^Wrong if: ", decision.text, flags=re.MULTILINE)

    assert choice.strip() != ""
    assert len(signs) == 1


@pytest.mark.parametrize("decision", DECISIONS, ids=number_of)
def test_decision_is_a_section_and_not_a_page_of_its_own(decision: Decision) -> None:
    prose = re.sub(r"^\|.*$", "", decision.text, flags=re.MULTILINE)

    assert len(prose.split()) <= LONGEST


@pytest.mark.parametrize("decision", DECISIONS, ids=number_of)
def test_link_to_the_decision_leads_to_its_heading(decision: Decision) -> None:
    assert decision.anchor in anchors_of(FOLDER / decision.page)


def test_a_number_in_brackets_is_a_decision() -> None:
    cited = {
        number for decision in DECISIONS for number in re.findall(r"(?<!mode )(?<!U\+)\b0[01]\d\d\b", decision.text)
    }

    assert sorted(cited - set(decisions())) == []


def test_index_of_the_decisions_is_generated() -> None:
    stored = INDEX.read_text(encoding="utf-8")

    assert stored == decisions_page(), "docs/decisions/README.md is out of date: run `make reference`"
