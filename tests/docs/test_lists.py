"""Lists of pages: each item is one, when the page is rendered."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.docs.repository import name_of, pages

RUN_TOGETHER: Final = re.compile(r"[.:;]\s2[.)] [A-Z`]|[:.;] - \w.*[.;,] - \w", re.DOTALL)
"""Items of one list in one paragraph, as after a list was wrapped like a text."""
LISTS: Final = ("bullet_list_open", "ordered_list_open")


def faults_of(text: str) -> Iterator[str]:
    """Yield each paragraph with items that run together, and each that a list follows without an empty line."""
    tokens: list[Token] = MarkdownIt("commonmark").enable("table").parse(text)
    for number, token in enumerate(tokens[1:-1], 1):
        if tokens[number - 1].type != "paragraph_open":
            continue
        paragraph = "".join(_plain(child) for child in token.children or ())
        *_, following = tokens[: number + 3]
        touches = following.type in LISTS and following.level == 0 and _first_line(following) == _end_line(token)
        if RUN_TOGETHER.search(paragraph) or touches:
            yield paragraph


def _first_line(token: Token) -> int:
    assert token.map is not None
    return token.map[0]


def _end_line(token: Token) -> int:
    assert token.map is not None
    return token.map[1]


def _plain(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return "`"
        case _:
            return token.content


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_each_item_of_a_list_is_an_item_when_the_page_is_rendered(page: Path) -> None:
    assert [*faults_of(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "text", ["1. Stop it. 2. Look\nwhy.", "Steps: 1) Stop it; 2) Look.", "It has: - one; - two.", "It has\n- one"]
)
def test_items_that_run_together_are_found(text: str) -> None:
    assert len([*faults_of(text)]) == 1
