"""The text output of the commands: aligned tables and fields, with times in UTC."""

from typing import Any, Final

import pytest

from waypost.cli.tables import format_view

AT_MS: Final = 1_764_000_000_000
AT: Final = "2025-11-24 16:00:00Z"

# fmt: off
VIEWS: Final[tuple[tuple[dict[str, Any], list[str]], ...]] = (  # a response, and its lines
    ({"partners": []}, ["no partners"]),
    ({"api_keys": [{"id": "a1", "name": "shop", "created_on_ms": AT_MS}, {"id": "b", "name": "日本", "created_on_ms": None}]},
     ["ID  NAME  CREATED", f"a1  shop  {AT}", "b   日本  -"]),
    ({"changed": True}, ["changed  yes"]),
    ({"id": 7, "rate_limit": None, "paused_on_ms": AT_MS, "duration_ms": 12}, ["id           7", "rate limit   -", f"paused       {AT}", "duration ms  12"]),
    ({"messages": {"waiting": 0, "quota": 5}, "callbacks": {"waiting": 9, "quota": 5}},
     ["NAME       WAITING  QUOTA", "messages   0        5", "callbacks  9        5"]),
    ({"id": "m", "attempts": [{"status": 200, "at_ms": AT_MS}]}, ["id  m", "", "attempts:", "STATUS  AT", f"200     {AT}"]),
    ({"under_5_s": 0.9975, "over_10_s": 0.0}, ["under 5 s  99.75 %", "over 10 s  0 %"]),
    ({"entries": [], "next": None}, ["no entries"]),
    ({"response": "two\nlines", "more": {"a": [1, 2]}}, ["response  two", "          lines", "more.a    1, 2"]),
    ({"operator_accounts": [
        {"id": "x", "kind": "cloud", "version": "v25.0", "base_url": "http://x", "business_accounts": [
            {"id": "1", "partner_id": 1, "apps": [{"name": "A", "phone_number": "15"}, {"name": "B", "phone_number": "16"}]},
            {"id": "2", "partner_id": 1, "apps": []}]},
        {"id": "y", "kind": "cloud", "version": "v25.0", "base_url": "http://y", "business_accounts": []}]},
     ["ID  KIND   VERSION  BASE URL  BUSINESS ACCOUNT  PARTNER  APP  PHONE NUMBER",
      "x   cloud  v25.0    http://x  1                 1        A    15",
      "x   cloud  v25.0    http://x  1                 1        B    16",
      "x   cloud  v25.0    http://x  2                 1        -    -",
      "y   cloud  v25.0    http://y  -                 -        -    -"]),
)
# fmt: on


@pytest.mark.parametrize(("view", "lines"), VIEWS, ids=range(len(VIEWS)))
def test_response_becomes_aligned_text(view: dict[str, Any], lines: list[str]) -> None:
    assert list(format_view(view)) == lines


def test_cell_of_a_table_is_one_line_and_sends_nothing_to_the_terminal() -> None:
    _, line = format_view(
        {"dead_letters": [{"position": 1, "queue": "q", "ref": "r", "defects": 5, "note": "a\n\x1b[2Jb"}]}
    )

    assert line.split() == ["1", "q", "r", "5", "a", "[2Jb"]
