"""Text as handsets show it: bold, lists and links; nothing else of a text becomes markup."""

from html.parser import HTMLParser
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waypost.console.bubbles.formatting import emoji_count, first_link, format_text, plain_text, safe_link

ALLOWED: Final = {
    "p", "br", "strong", "em", "s", "code", "a", "ul", "ol", "li", "blockquote", "span",
}  # fmt: skip
MARKUP_TEXTS: Final = st.lists(
    st.sampled_from(
        ["*", "_", "~", "`", "```", "> ", "- ", "1. ", "\n", " ", "a", "b1", "<b>", "&", '"', "'", "{{1}}", "</p>",
         "https://a.test/", "http://", "javascript:x", "<script>", "\u202e", "\0", "é", "🎉", "\r"]
    ),
    max_size=60,
).map("".join)  # fmt: skip


class ParsedMarkup(HTMLParser):
    """Markup as a browser parses it: tags, checked to be closed in order, links, and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(str(markup))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        attributes = dict(attrs)
        assert set(attributes) <= {"href", "target", "rel", "start", "class"}
        if tag == "a":
            self.links.append(attributes["href"] or "")
            assert attributes["rel"] == "noopener noreferrer nofollow"
            assert attributes["target"] == "_blank"
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError("a declaration")


@settings(max_examples=300, deadline=None)
@given(text=MARKUP_TEXTS | st.text(), gaps=st.booleans())
def test_markup_of_any_text_has_only_allowed_tags_and_loses_no_letter(text: str, gaps: bool) -> None:
    parsed = ParsedMarkup(format_text(text, marks_variables=gaps))

    assert parsed.open == []
    assert parsed.tags <= ALLOWED
    assert all(link.startswith(("http://", "https://")) for link in parsed.links)
    remaining = iter(text)
    assert all(char in remaining for char in parsed.text), "the text's characters, in their order"
    assert [char for char in parsed.text if char.isalpha()] == [char for char in text if char.isalpha()]


# fmt: off
FORMATTED_TEXTS: Final = (
    ("*bold* and _so_ ~on~",  "<p><strong>bold</strong> and <em>so</em> <s>on</s></p>"),
    ("*_both_*",              "<p><strong><em>both</em></strong></p>"),
    ("_*both*_",              "<p><em><strong>both</strong></em></p>"),
    ("**x**",                 "<p>*<strong>x</strong>*</p>"),
    ("2*3*4 and a_b_c",       "<p>2*3*4 and a_b_c</p>"),
    ("* not* and *not *",     "<ul><li>not* and *not *</li></ul>"),
    ("(*x*), *y*!",           "<p>(<strong>x</strong>), <strong>y</strong>!</p>"),
    ("*no\nline*",            "<p>*no<br>line*</p>"),
    ("`*x*` ```_y_```",       "<p><code>*x*</code> <code>_y_</code></p>"),
    ("```a\nb``` c",          "<p><code>a\nb</code> c</p>"),
    ("``` open",              "<p>``` open</p>"),
    ("> *q*\n> r\ns",         "<blockquote><strong>q</strong><br>r</blockquote><p>s</p>"),
    ("- a\n* b\n3. c\n4. d",  '<ul><li>a</li><li>b</li></ul><ol start="3"><li>c</li><li>d</li></ol>'),
    ("a\n\nb",                "<p>a<br><br>b</p>"),
    ("a < b & c",             "<p>a &lt; b &amp; c</p>"),
    ("",                      "<p></p>"),
)
# fmt: on


@pytest.mark.parametrize(("text", "markup"), FORMATTED_TEXTS)
def test_marks_are_formatted_as_by_the_channel(text: str, markup: str) -> None:
    assert format_text(text) == markup


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("see https://a.test/b_c_d?e=1&f=2.", "https://a.test/b_c_d?e=1&f=2"),
        ("(http://a.test)", "http://a.test"),
        ("*https://a.test/x*", "https://a.test/x"),
        ("HTTPS://A.test/", "HTTPS://A.test/"),
    ],
)
def test_urls_become_links_without_trailing_punctuation(text: str, url: str) -> None:
    assert ParsedMarkup(format_text(text)).links == [url]


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "//a.test", "https://", "http://[x", "data:text/html,x", "https://a b", ""]
)  # fmt: skip
def test_text_that_is_not_a_web_url_is_not_linked(url: str) -> None:
    assert safe_link(url) is None
    assert ParsedMarkup(format_text(url)).links in ([], ["https://a"])


def test_link_preview_has_host_and_path_of_the_first_url() -> None:
    link = first_link("Look, https://shop.test/teas?of=today! And http://b.test/")

    assert link is not None
    assert (link.host, link.path) == ("shop.test", "/teas?of=today")
    assert first_link("nothing here") is None


def test_variables_are_marked_in_drafts_only() -> None:
    assert "{{1}}" in format_text("Hello {{1}}")
    assert 'class="gap"' not in format_text("Hello {{1}}")
    assert format_text("{{1}}", marks_variables=True) == '<p><span class="gap">{{1}}</span></p>'


@pytest.mark.parametrize(
    ("text", "count"),
    [("🎉", 1), ("👍🏽👍🏽", 2), ("👨‍👩‍👧", 1), ("🇩🇪 ", 1), ("❤️🎉😀", 3), ("😀😀😀😀", 0), ("1", 0), ("a", 0), ("", 0)],
)  # fmt: skip
def test_emoji_of_texts_without_other_characters_are_counted(text: str, count: int) -> None:
    assert emoji_count(text) == count


def test_plain_text_is_one_line_without_marks() -> None:
    assert plain_text("Hi *Ann*,\n- one\n- two <b>\n> so") == "Hi Ann, one two <b> so"
