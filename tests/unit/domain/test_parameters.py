"""Splitting a send's parameters over its template: a table, and that nothing is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import draft
from waypost.domain.templates.buttons import VIEW_CATALOG_BUTTON, VIEW_ITEMS_BUTTON, ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import (
    CardParameters,
    TemplateParameters,
    parameter_count_range,
    split_parameters,
)

URL = TemplateButton(ButtonKind.URL, "Go", url="https://a.test/{{1}}")
PLAIN = TemplateButton(ButtonKind.URL, "Go", url="https://a.test")
REPLY = TemplateButton(ButtonKind.QUICK_REPLY, "Yes")
COPY = TemplateButton(ButtonKind.COPY_CODE, "Copy")
OTP = TemplateButton(ButtonKind.OTP, "Copy code", otp_type="COPY_CODE")

NOTHING = draft(content="Hi.")
FULL = draft(header="{{1}}!", content="{{1}} {{2}} {{1}}", buttons=(REPLY, URL, PLAIN, URL))
OFFER = draft(content="{{1}}", buttons=(COPY, URL))
CODE = draft(content="{{1}} is your verification code.", buttons=(OTP,))
CATALOGUE = draft(content="{{1}}", buttons=(VIEW_CATALOG_BUTTON,))
PRODUCTS = draft(content="Hi.", buttons=(VIEW_ITEMS_BUTTON,))
CARDS = draft(
    content="{{1}}", cards=(Card(body="{{1}} {{2}}", buttons=(REPLY, URL)), Card(body="Hi", buttons=(REPLY, URL)))
)


@pytest.mark.parametrize(
    ("of", "params", "expected"),
    [
        (NOTHING, "", TemplateParameters()),
        (NOTHING, "a", TemplateParameters(body=("a",))),
        (FULL, "a b c d e", TemplateParameters(("a",), ("b", "c"), {1: "d", 3: "e"})),
        (FULL, "a b c d e f", TemplateParameters(("a",), ("b", "c", "d"), {1: "e", 3: "f"})),
        (FULL, "a b c d", TemplateParameters(("a",), ("b", "c"), {1: "d"})),
        (FULL, "a", TemplateParameters(("a",))),
        (OFFER, "a b c", TemplateParameters(body=("a",), buttons={1: "b", 0: "c"})),
        (OFFER, "a b", TemplateParameters(body=("a",), buttons={1: "b"})),
        (CODE, "a", TemplateParameters(body=("a",), buttons={0: "a"})),
        (CODE, "a b", TemplateParameters(body=("a",), buttons={0: "b"})),
        (CODE, "a b c", TemplateParameters(body=("a", "b"), buttons={0: "c"})),
        (CODE, "", TemplateParameters()),
        (CATALOGUE, "a", TemplateParameters(body=("a",))),
        (CATALOGUE, "a b", TemplateParameters(body=("a",), thumbnail="b")),
        (CATALOGUE, "a b c", TemplateParameters(body=("a", "b"), thumbnail="c")),
        (PRODUCTS, "a", TemplateParameters(thumbnail="a")),
        (
            CARDS,
            "a b c d e",
            TemplateParameters(body=("a",), cards=(CardParameters(("b", "c"), {1: "d"}), CardParameters((), {1: "e"}))),
        ),
        (CARDS, "a b", TemplateParameters(body=("a",), cards=(CardParameters(("b",)), CardParameters()))),
    ],
)
def test_parameters_are_assigned_in_the_order_of_the_template(
    of: TemplateDraft, params: str, expected: TemplateParameters
) -> None:
    split = split_parameters(of, params.split())

    if not of.cards:
        assert split == expected
    else:
        assert (split.body, split.cards) == (expected.body, expected.cards)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (NOTHING, (0, 0)),
        (FULL, (5, 5)),
        (OFFER, (3, 3)),
        (CODE, (1, 2)),
        (CATALOGUE, (1, 2)),
        (PRODUCTS, (0, 1)),
        (CARDS, (5, 5)),
    ],
)
def test_template_has_a_range_of_parameter_counts(of: TemplateDraft, expected: tuple[int, int]) -> None:
    assert parameter_count_range(of) == expected


@given(
    of=st.sampled_from([NOTHING, FULL, OFFER, CATALOGUE, PRODUCTS, CARDS]),
    params=st.lists(st.text(max_size=3), max_size=12),
)
def test_every_parameter_is_assigned_once(of: TemplateDraft, params: list[str]) -> None:
    split = split_parameters(of, params)

    assigned = [*split.header, *split.body, *split.buttons.values()]
    assigned += [] if split.thumbnail is None else [split.thumbnail]
    for card in split.cards:
        assigned += [*card.body, *card.buttons.values()]
    assert sorted(assigned) == sorted(params)
