"""Times are shown in the reader's zone: on every page, in live updates, filters, days and charts."""

import re
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from typing import Final

import aiohttp
import msgspec
import pytest

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.console.support.addresses import addresses
from tests.console.support.scene import Scene
from waypost.console.conversations.thread import THREAD_FORM
from waypost.console.list_filters import FilterContext
from waypost.console.messages.listing import MESSAGE_FORM
from waypost.console.overview.queries import LONGEST_DAY_MS, count_start_ms
from waypost.console.route import RouteKind
from waypost.console.web.zones import (
    MAX_TIME_MS,
    UTC_ZONE,
    DisplayZone,
    day_text,
    find_zone,
    read_time_field,
    reader_zone,
    time_element,
    zone_context,
)

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

# fmt: off
HOUR_MS: Final = 3_600_000
BEFORE_SUMMER_MS: Final = 1_774_746_000_000  # 2026-03-29 01:00 UTC, when summer time begins in Berlin
AFTER_SUMMER_MS: Final = 1_792_890_000_000   # 2026-10-25 01:00 UTC, when it ends
SHOWN: Final = (
    # zone                  time               text
    ("UTC",                 0,                 "1970-01-01 00:00:00.000 UTC"),
    ("Asia/Kolkata",        1,                 "1970-01-01 05:30:00.001 UTC+05:30"),
    ("Asia/Calcutta",       1,                 "1970-01-01 05:30:00.001 UTC+05:30"),  # a former name, as Chromium gives it
    ("Asia/Kathmandu",      AFTER_SUMMER_MS,   "2026-10-25 06:45:00.000 UTC+05:45"),
    ("America/St_Johns",    AFTER_SUMMER_MS,   "2026-10-24 22:30:00.000 UTC-02:30"),
    ("Australia/Lord_Howe", BEFORE_SUMMER_MS,  "2026-03-29 12:00:00.000 UTC+11:00"),  # summer time of half an hour
    ("Australia/Lord_Howe", AFTER_SUMMER_MS - 120 * 86_400_000, "2026-06-27 11:30:00.000 UTC+10:30"),
    ("Europe/Berlin",       BEFORE_SUMMER_MS - 1, "2026-03-29 01:59:59.999 UTC+01:00"),
    ("Europe/Berlin",       BEFORE_SUMMER_MS,  "2026-03-29 03:00:00.000 UTC+02:00"),
    ("Europe/Berlin",       AFTER_SUMMER_MS,   "2026-10-25 02:00:00.000 UTC+01:00"),
    ("Asia/Tokyo",          MAX_TIME_MS,       "9999-12-31 23:59:59.999 UTC"),
)
FIELDS: Final = (
    # zone                  field                        is end  UTC
    ("Asia/Kolkata",        "2026-11-22T14:05",          False,  "2026-11-22T08:35:00"),
    ("Europe/Berlin",       "2026-10-25T02:30",          False,  "2026-10-25T00:30:00"),  # exists twice
    ("Europe/Berlin",       "2026-10-25T02:30",          True,   "2026-10-25T01:30:00"),
    ("Europe/Berlin",       "2026-03-29T02:30",          False,  "2026-03-29T01:30:00"),  # does not exist
    ("Europe/Berlin",       "2026-11-22T14:05+05:30",    False,  "2026-11-22T08:35:00"),
    ("Pacific/Kiritimati",  "0001-01-01T00:00",          False,  "1970-01-01T00:00:00"),
    ("Pacific/Pago_Pago",   "9999-12-31T23:59",          False,  "9999-12-31T23:59:59"),
)
DAYS: Final = (
    # zone                 day           begins at (UTC)         hours
    ("UTC",                "2026-03-29", "2026-03-29T00:00:00",  24),
    ("Europe/Berlin",      "2026-03-29", "2026-03-28T23:00:00",  23),
    ("Europe/Berlin",      "2026-10-25", "2026-10-24T22:00:00",  25),
    ("Asia/Kathmandu",     "2026-03-29", "2026-03-28T18:15:00",  24),
    ("Africa/Cairo",       "2026-04-24", "2026-04-23T22:00:00",  23),  # summer time begins at midnight: 00:00 is missing
    ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00", 24.5),
)
NO_ZONES: Final = ("", "Mars/Olympus", "Europe", "../../etc/passwd", "/etc/localtime", "zone.tab", "tzdata.zi", "x" * 300,
                   "a/b/c/d/e", "Europe/Berlin\n", "<script>")
# fmt: on
NEPAL: Final = "Asia/Kathmandu"
TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}:\d\d\b|\bUTC\b")
OPEN_TAGS: Final = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
NOT_READ: Final = frozenset({"time", "svg", "pre", "code", "textarea", "script", "style", "noscript", "as it is"})
"""Elements whose text is a time, is no prose, or is another program's."""
AS_THEY_ARE: Final = ("bar-zone", "header-list", "headers")
"""Classes of the switch, which names zones, and of the headers of requests and responses."""


class TimeReader(HTMLParser):
    """Collects the times of a page that are not in `<time>`, and the tooltips of those that are."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.bare: list[str] = []
        self.tooltips: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in OPEN_TAGS:
            return
        given = dict(attrs)
        self.inside.append("as it is" if given.get("class") in AS_THEY_ARE else tag)
        if tag == "time":
            assert given.get("datetime"), attrs
            self.tooltips.append(given["title"] or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPEN_TAGS and self.inside:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not NOT_READ.intersection(self.inside) and TIME.search(data):
            self.bare.append(" ".join(data.split()))


def zone(name: str) -> DisplayZone:
    found = find_zone(name)
    assert found is not None, name
    return found


def utc_text(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(tzinfo=None).isoformat()


@pytest.mark.parametrize(("name", "at_ms", "text"), SHOWN)
async def test_time_is_shown_with_its_difference_to_utc(name: str, at_ms: int, text: str) -> None:
    assert zone(name).exact(at_ms) == text


@pytest.mark.parametrize(("name", "text", "is_end", "expected"), FIELDS)
async def test_field_is_read_in_the_zone(name: str, text: str, is_end: bool, expected: str) -> None:
    assert utc_text(zone(name).parse_field_ms(text, is_end=is_end)) == expected


@pytest.mark.parametrize(("name", "day", "begins", "hours"), DAYS)
async def test_day_begins_at_its_first_moment_and_may_have_another_length(
    name: str, day: str, begins: str, hours: float
) -> None:
    filters = THREAD_FORM.read({"day": day}, FilterContext(AFTER_SUMMER_MS, zone(name), True))
    assert filters.search.from_ms is not None
    assert filters.search.until_ms is not None

    assert utc_text(filters.search.from_ms) == begins
    assert filters.search.until_ms - filters.search.from_ms == hours * HOUR_MS
    assert zone(name).day_start_ms(filters.search.until_ms - 1) == filters.search.from_ms
    assert count_start_ms(filters.search.until_ms - 1) <= filters.search.from_ms


@pytest.mark.parametrize("name", NO_ZONES)
async def test_any_other_name_is_no_zone(name: str) -> None:
    assert find_zone(name) is None
    assert reader_zone({"waypost_zone": name}) is UTC_ZONE


async def test_choice_of_utc_is_stronger_than_the_zone_of_the_browser() -> None:
    assert reader_zone({}) is UTC_ZONE
    assert reader_zone({"waypost_zone": NEPAL}).name == NEPAL
    assert reader_zone({"waypost_zone": NEPAL, "waypost_times": "utc"}) is UTC_ZONE
    assert reader_zone({"waypost_zone": NEPAL, "waypost_times": "local"}).name == NEPAL


async def test_element_has_the_exact_time_in_the_zone_and_in_utc() -> None:
    with zone_context(zone("America/New_York")):
        shown = time_element(BEFORE_SUMMER_MS, "minute")
        day = day_text(BEFORE_SUMMER_MS - 6 * HOUR_MS)

    assert shown == (
        '<time datetime="2026-03-29T01:00:00.000+00:00" title="2026-03-28 21:00:00.000 UTC-04:00 (America/New York), '
        '2026-03-29 01:00:00.000 UTC">21:00</time>'
    )
    assert day == "2026-03-28"
    assert time_element(None) == ""
    assert 'data-at-ms="5"' in time_element(5)


async def test_time_of_another_day_has_its_date() -> None:
    texts = [
        re.sub("<.*?>", "", time_element(at, "moment", BEFORE_SUMMER_MS))
        for at in (BEFORE_SUMMER_MS, BEFORE_SUMMER_MS - 48 * HOUR_MS, 0)
    ]

    assert texts == ["01:00", "27 Mar 01:00", "1 Jan 1970 00:00"]


async def test_times_of_a_link_keep_their_zone_and_are_shown_in_the_readers() -> None:
    link = {"from": "2026-11-22T14:05", "until": "2026-11-22T15:00", "zone": "Asia/Kolkata"}

    filters = MESSAGE_FORM.read(link, FilterContext(AFTER_SUMMER_MS, zone("Europe/Berlin"), True))
    own = MESSAGE_FORM.read({"from": "2026-11-22T14:05"}, FilterContext(AFTER_SUMMER_MS, zone("Europe/Berlin"), True))

    assert (filters.given["from"], filters.given["until"]) == ("2026-11-22T09:35:00", "2026-11-22T10:30:00")
    assert filters.given["zone"] == "Europe/Berlin"
    assert filters.search.from_ms is not None
    assert utc_text(filters.search.from_ms) == "2026-11-22T08:35:00"
    assert own.search.from_ms is not None
    assert utc_text(own.search.from_ms) == "2026-11-22T13:05:00"
    assert read_time_field({"zone": NEPAL}, "from", UTC_ZONE) == (None, "")


async def test_filter_without_times_is_not_set_by_the_zone_of_its_form() -> None:
    filters = MESSAGE_FORM.read({"zone": NEPAL, "q": ""}, FilterContext(AFTER_SUMMER_MS, UTC_ZONE, True))

    assert not filters.is_set
    assert not filters.has_more


async def test_today_begins_at_the_readers_midnight() -> None:
    filters = MESSAGE_FORM.read({"time": "today"}, FilterContext(AFTER_SUMMER_MS, zone("Australia/Lord_Howe"), True))

    assert filters.search.from_ms is not None
    assert filters.search.from_ms == zone("Australia/Lord_Howe").midnight_ms(date(2026, 10, 25))
    assert AFTER_SUMMER_MS - filters.search.from_ms < LONGEST_DAY_MS


async def test_every_time_of_every_page_and_update_is_an_element_in_the_readers_zone(scene: Scene) -> None:
    problems: list[str] = []
    tooltips: list[str] = []

    for address in addresses(scene.values, RouteKind.PAGE, RouteKind.LIVE):
        if address.row.kind is RouteKind.PAGE:
            text = await fetch(scene.console, address.path)
        else:
            text = await fetch_first_update(scene.console, address.path)
        reader = TimeReader()
        reader.feed(text)
        tooltips += reader.tooltips
        problems += [f"{address.path}: {found}" for found in reader.bare]
        problems += [f"{address.path}: tooltip {one}" for one in reader.tooltips if f"UTC+05:45 ({NEPAL}), " not in one]

    assert len(tooltips) > 100
    assert not problems, "\n".join(problems)


async def fetch(console: ConsoleClient, path: str) -> str:
    cookie = {"waypost_zone": NEPAL}
    async with console.http.get(console.base_url + path, cookies=cookie) as response:
        assert response.status == 200, path
        return await response.text()


async def fetch_first_update(console: ConsoleClient, path: str) -> str:
    """Return the elements of the first update of a live stream; empty if it has none."""
    cookie = {"waypost_zone": NEPAL}
    event = b""
    async with console.http.get(console.base_url + path, cookies=cookie) as response:
        async for line in response.content:
            if line.startswith((b"event:", b": ")):
                event = line
            if event.startswith(b": "):
                return ""
            if event == b"event: pieces\n" and line.startswith(b"data: "):
                return "".join(piece["html"] for piece in msgspec.json.decode(line[6:]))
    return ""


async def test_without_a_zone_times_are_utc_and_the_page_says_so(console: ConsoleClient) -> None:
    page = await console.get("/settings")
    async with aiohttp.ClientSession() as anonymous, anonymous.get(console.base_url + "/sign-in") as response:
        sign_in = await response.text()

    assert 'title="Times are UTC: without JavaScript, your time zone is unknown."' in page
    assert "/js/zone.js" in sign_in


async def test_switch_shows_utc_and_is_remembered(tabs: Tabs, console: ConsoleClient) -> None:
    await console.send_text("Good evening")
    path = f"/apps/{console.app_id}/messages?state=&q="
    tab = await tabs(path, timezone_id="Asia/Kolkata")
    page = tab.page
    switch = page.locator(".bar-zone button")
    await switch.get_by_text("Asia/Calcutta").wait_for()
    shown = page.locator("#rows time").first

    local = await shown.get_attribute("title")
    await switch.click()
    await page.locator("html[data-zone=UTC]").wait_for()
    utc = await shown.get_attribute("title")
    address = page.url
    await tab.go("/phones")
    is_remembered = await page.locator("html").get_attribute("data-zone")
    await page.locator(".bar-zone button").get_by_text("UTC", exact=True).first.click()
    await page.locator("html[data-zone='Asia/Calcutta']").wait_for()

    assert local is not None
    assert utc is not None
    assert "UTC+05:30 (Asia/Calcutta), " in local
    assert local.endswith(utc)
    assert address.endswith(path)
    assert is_remembered == "UTC"
    assert tab.errors == []


async def test_handset_has_the_clock_of_the_readers_zone(tabs: Tabs, console: ConsoleClient) -> None:
    await console.send_text("Good evening")
    tab = await tabs(f"/phones?show={console.phone}", timezone_id="Asia/Kathmandu")
    page = tab.page
    await page.locator("html[data-zone^=Asia]").wait_for()

    clock = page.locator("[data-handset-clock] time").first
    expected = "() => new Intl.DateTimeFormat('sv', {hour: '2-digit', minute: '2-digit', timeZone: 'Asia/Kathmandu'})"
    await page.wait_for_function(
        f"""() => document.querySelector('[data-handset-clock] time')?.textContent
            === ({expected})().format(Date.now())"""
    )

    assert "UTC+05:45" in (await clock.get_attribute("title") or "")
    assert await page.locator(".phones-head").get_by_text("Times: Asia/Kat").count() == 1
    assert tab.errors == []


async def test_without_scripts_times_are_utc(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs(f"/apps/{console.app_id}/messages", java_script_enabled=False, timezone_id="Asia/Kolkata")

    said = await tab.page.locator(".nav-foot > noscript p").inner_text()

    assert said == "Times are UTC: without JavaScript, your time zone is unknown."
    assert await tab.page.locator(".bar-zone button").count() == 0
    assert await tab.page.locator(".bar-zone").text_content() == "Times: UTC"
