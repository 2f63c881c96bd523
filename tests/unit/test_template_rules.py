"""The table of what each draft must satisfy."""

from typing import Any

import pytest

from tests.support.builders import draft
from waypost.domain.buttons import Button, ButtonKind
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template_rules import RULES, check_draft

REPLY = ButtonKind.QUICK_REPLY
URL = Button(ButtonKind.URL, "Look", url="https://acme.test")


def broken(strict: bool = True, **more: Any) -> str | None:
    """What the draft is told, or None when it is taken."""
    try:
        check_draft(draft(**more), strict=strict)
    except Refused as refused:
        return refused.explanation
    return None


def replies(count: int) -> tuple[Button, ...]:
    return tuple(Button(REPLY, f"b{n}") for n in range(count))


def test_draft_of_the_builders_breaks_no_rule() -> None:
    assert broken() is None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.field}-{RULES.index(rule)}")
def test_every_rule_says_where_it_comes_from(rule: Any) -> None:
    assert rule.source


# fmt: off
BOUNDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "element_name":  ({"element_name": "x" * 180}, {"element_name": "x" * 181}),
    "vertical":      ({"vertical": "x" * 180}, {"vertical": "x" * 181}),
    "content":       ({"content": "x" * 1024, "example": "x"}, {"content": "x" * 1025, "example": "x"}),
    "header":        ({"header": "x" * 60}, {"header": "x" * 61}),
    "footer":        ({"footer": "x" * 60}, {"footer": "x" * 61}),
    "buttons":       ({"buttons": replies(10)}, {"buttons": replies(11)}),
    "urls":          ({"buttons": (URL,) * 2}, {"buttons": (URL,) * 3}),
    "label":         ({"buttons": (Button(REPLY, "x" * 25),)}, {"buttons": (Button(REPLY, "x" * 26),)}),
    "header_variables": (
        {"header": "{{1}}!", "example_header": "a!"},
        {"header": "{{1}}{{2}}", "example_header": "ab"},
    ),
}
# fmt: on


@pytest.mark.parametrize("name", BOUNDS)
def test_bound_takes_what_is_on_it_and_refuses_what_is_beyond(name: str) -> None:
    within, beyond = BOUNDS[name]

    assert broken(True, **within) is None
    assert broken(True, **beyond) is not None


@pytest.mark.parametrize(
    "field", ["element_name", "category", "template_type", "vertical", "content", "example"]
)
@pytest.mark.parametrize("nothing", [None, ""])
def test_required_field_is_named_when_it_is_missing(field: str, nothing: str | None) -> None:
    told = broken(True, **{field: nothing})

    assert told is not None
    assert "is required" in told


@pytest.mark.parametrize(
    ("content", "is_taken"),
    [
        ("Hello", True),
        ("Hi {{1}}!", True),
        ("{{1}} and {{2}} and {{1}}!", True),
        ("{{2}} and {{1}}!", True),
        ("Hi {{2}}!", False),
        ("Hi {{0}}!", False),
        ("Hi {{01}}!", False),
        ("Hi {{ 1 }}!", False),
        ("Hi {{name}}!", False),
        ("Hi {{}}!", False),
        ("Hi {{1}!", False),
        ("Hi {1}}!", False),
        ("Hi {1}!", True),
        ("Hi {{\u0661}}!", False),
        ("Hi {{99999}}!", False),
    ],
)
def test_variables_are_numbered_from_1_without_a_gap(content: str, is_taken: bool) -> None:
    told = broken(content=content, example=None) or broken(content=content, example="x")

    assert told is not None
    is_about_content = (broken(content=content, example="x") or "").startswith("content")
    assert is_about_content is not is_taken


@pytest.mark.parametrize(
    ("order", "is_taken"),
    [("QQU", True), ("UQQ", True), ("QUQ", False), ("UQU", False), ("Q", True)],
)
def test_quick_replies_stand_together(order: str, is_taken: bool) -> None:
    buttons = tuple(URL if one == "U" else Button(REPLY, "Yes") for one in order)

    assert (broken(buttons=buttons) is None) is is_taken


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://acme.test", True),
        ("http://acme.test/a?b=c#d", True),
        ("https://acme.test/{{1}}", True),
        ("https://acme.test/?id={{1}}", True),
        ("https://acme.test/{{2}}", False),
        ("https://acme.test/{{1}}/x", False),
        ("https://{{1}}", False),
        ("https://acme.test/a b", False),
        ("ftp://acme.test", False),
        ("acme.test", False),
        ("javascript:alert(1)", False),
        ("https:///x", False),
    ],
)
def test_url_is_absolute_and_its_variable_stands_at_the_end(url: str, is_taken: bool) -> None:
    button = Button(ButtonKind.URL, "Look", url=url, example=("7",))

    assert (broken(buttons=(button,)) is None) is is_taken


@pytest.mark.parametrize(
    ("number", "is_taken"),
    [
        ("+15550001111", True),
        ("15550001111", True),
        ("+1 (555) 000-1111", True),
        ("12345", True),
        ("1234", False),
        ("1" * 20, True),
        ("1" * 21, False),
        ("++1555000", False),
        ("call me", False),
    ],
)
def test_number_to_call_is_a_number(number: str, is_taken: bool) -> None:
    button = Button(ButtonKind.PHONE_NUMBER, "Call", phone_number=number)

    assert (broken(buttons=(button,)) is None) is is_taken


def test_operators_rules_wait_for_the_review_unless_the_service_is_strict() -> None:
    assert broken(strict=False, buttons=replies(11)) is None
    assert broken(strict=True, buttons=replies(11)) is not None


def test_category_beyond_the_three_has_a_reason_of_its_own() -> None:
    with pytest.raises(Refused) as told:
        check_draft(draft(category="PROMO"))

    assert told.value.reason is Reason.INVALID_CATEGORY
