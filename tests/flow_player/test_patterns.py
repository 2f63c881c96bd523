"""Patterns of inputs, in the dialect of JavaScript, and the structure of markdown; hostile ones take no time."""

import time
from typing import Any

import pytest

from waypost.flow_player.markdown import parse_markdown
from waypost.flow_player.patterns import matches_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        (r"^[0-9]{4}$", "1234", True),
        (r"[A-Z]{2}\d+", "AB12", True),
        (r"[A-Z]{2}\d+", "xAB12", False),
        (r"(?=.*\d)(?=.*[a-z]).{4,8}", "ab12", True),
        (r"(?=.*\d)(?=.*[a-z]).{4,8}", "abcd", False),
        (r"(?!00)\d\d", "00", False),
        (r"\w+(?<!x)", "ax", False),
        (r"(?:a|b)*?c", "ababc", True),
        (r"(\(\d{3}\)|\d{3})-?\d{4}", "(123)-4567", True),
        (r"(?<year>\d{4})", "2026", True),
        (r"\bfoo\b", "foo", True),
        (r"a{2,}", "a", False),
        (r"a{0,2}", "aaa", False),
        (r"a{x}", "a{x}", True),
        (r"[^\s@]+@[^\s@]+", "a@b", True),
        (r"[\w.-]+", "a.b-c", True),
        (r"a.c", "a\nc", False),
        (r"\u0041\x42\t", "AB\t", True),
        (r"", "x", False),
        (r"\p{L}+", "not to be judged", True),
        (r"(a)\1", "not to be judged", True),
        (r"(a+)+b", "a" * 60, False),
        (r"(a*)*b", "a" * 60, False),
        (r"(a|a|aa)+$x", "a" * 60, False),
    ],
)
def test_pattern_matches_as_in_a_browser(pattern: str, text: str, is_match: bool) -> None:
    assert matches_pattern(pattern, text) is is_match


@pytest.mark.parametrize(
    "pattern", ["(" * 5000, "[a-", "((((a{1,99}){1,99}){1,99}){1,99})", "a{9999}{9999}", "\\", "(?'x')"]
)
def test_pattern_that_cannot_be_read_allows_anything(pattern: str) -> None:
    started = time.process_time()

    assert matches_pattern(pattern, "x" * 80)
    assert time.process_time() - started < 2


RICH = """# Title
## Part
### Deep
A **bold _and italic_** ~~old~~ [site](https://example.com) 2*3

- one
- **two**
1. first
2. second
| Name | Age |
|------|:---:|
| Bo | 7 |
![dot](data:image/png;base64,AAAA)
![no](https://example.com/a.png)"""


def test_rich_text_has_its_blocks_and_spans() -> None:
    blocks = parse_markdown(RICH, is_rich=True)

    def plain(spans: list[dict[str, Any]]) -> str:
        return "".join(span["text"] for span in spans)

    kinds = [block["type"] for block in blocks]
    assert kinds == ["heading", "heading", "paragraph", "paragraph", "list", "list", "table", "image", "paragraph"]
    assert [block["level"] for block in blocks[:2]] == [1, 2]
    assert blocks[3]["spans"] == [
        {"text": "A "},
        {"text": "bold ", "bold": True},
        {"text": "and italic", "bold": True, "italic": True},
        {"text": " "},
        {"text": "old", "strikethrough": True},
        {"text": " "},
        {"text": "site", "url": "https://example.com"},
        {"text": " 2*3"},
    ]
    assert [plain(spans) for spans in blocks[4]["items"]] == ["one", "two"]
    assert (blocks[5]["is_ordered"], len(blocks[5]["items"])) == (True, 2)
    assert [plain(cell) for cell in blocks[6]["header"]] == ["Name", "Age"]
    assert [[plain(cell) for cell in cells] for cells in blocks[6]["rows"]] == [["Bo", "7"]]
    assert blocks[7] == {"type": "image", "src": "data:image/png;base64,AAAA", "alt_text": "dot"}


def test_markdown_of_texts_has_no_headings_and_no_unsafe_links() -> None:
    blocks = parse_markdown("# Title\n[x](javascript:alert(1)) <b>raw</b>", is_rich=False)

    assert [block["type"] for block in blocks] == ["paragraph", "paragraph"]
    assert blocks[1]["spans"] == [{"text": "[x](javascript:alert(1)) <b>raw</b>"}]


@pytest.mark.parametrize(
    "text", ["*" * 200_000, "[a](" * 50_000, "**a " * 50_000, "|" * 90_000 + "\n|-|", "- \n" * 50_000]
)
def test_hostile_markdown_takes_no_time(text: str) -> None:
    started = time.process_time()

    assert len(parse_markdown(text, is_rich=True)) <= 500
    assert time.process_time() - started < 2
