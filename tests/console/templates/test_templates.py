"""The templates' pages: the gallery, one template with its history, sending and deleting."""

import asyncio
import json
from typing import Any, Final

import aiohttp
import pytest

from tests.console.conftest import LOOP, Desk, Tabs
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

GALLERY = f"/apps/{demo.APP_ID}/templates"
DEMO = f"{GALLERY}/{demo.TEMPLATE_ID}"
# fmt: off
ORDER = {
    "elementName": "order_update", "category": "UTILITY", "templateType": "TEXT", "vertical": "Orders",
    "content": "Hi {{1}}, your order is on its way.", "example": "Hi Ann, your order is on its way.",
}
# fmt: on


async def make(desk: Desk, **more: str) -> str:
    answer = await desk.api.form("POST", f"/partner/app/{demo.APP_ID}/templates", ORDER | more)
    return answer["template"]["id"]


async def until(desk: Desk, path: str, words: str) -> str:
    """The page once it says so."""
    for _ in range(80):
        page = await desk.get(path)
        if words in page:
            return page
        await asyncio.sleep(0.1)
    raise AssertionError(f"{path} never says {words!r}")


async def test_gallery_draws_each_template_with_what_it_is(desk: Desk) -> None:
    await make(desk, footer="Acme Shop")

    page = await desk.get(GALLERY)

    for shown in (
        "order_update",
        "order_ready",
        "Acme Shop",
        "Yes please",
        "2 templates",
        "en_US · utility · text",
        f'href="{GALLERY}/new"',
        f'href="{DEMO}"',
    ):
        assert shown in page


QUERIES: Final[tuple[tuple[str, list[str]], ...]] = (
    ("q=WAY", ["order_update"]),
    ("q=yes+please", ["order_ready"]),
    ("q=order_r", ["order_ready"]),
    ("language=de", ["order_update"]),
    ("category=UTILITY", ["order_update", "order_ready"]),
    ("category=MARKETING", []),
    ("type=IMAGE", []),
    ("status=REJECTED", []),
    ("page=2", []),
    ("page=nonsense", ["order_update", "order_ready"]),
)


async def test_gallery_is_filtered_by_the_query(desk: Desk) -> None:
    await make(desk, languageCode="de")

    for query, names in QUERIES:
        page = await desk.get(f"{GALLERY}?{query}")
        shown = [n for n in ("order_update", "order_ready") if f"<strong>{n}</strong>" in page]
        assert shown == names, query
        assert names or "No matches" in page


async def test_gallery_is_paged(desk: Desk) -> None:
    for number in range(25):
        name = {"elementName": f"order_{number:02}"}
        await desk.post(f"{GALLERY}/new", {**ORDER, **name, "value-1": "Ann", "do": "submit"})

    first, second = await desk.get(GALLERY), await desk.get(f"{GALLERY}?page=2")

    assert "26 templates, 1 to 24 shown" in first
    assert "order_24" in first
    assert "order_00" not in first
    assert "26 templates, 25 to 26 shown" in second
    assert "<strong>order_00</strong>" in second


async def test_gallery_shows_live_where_a_template_stands(tabs: Tabs, desk: Desk) -> None:
    template_id = await make(desk)
    tab = await tabs(GALLERY)

    await tab.page.locator(f"#status-{template_id}").get_by_text("approved").wait_for()
    await make(desk, elementName="newest")

    await tab.page.get_by_text("Newer templates").wait_for()


async def test_another_partners_template_is_no_other_than_none(desk: Desk) -> None:
    theirs = await another_partners_template(desk)

    for path in (
        f"{GALLERY}/{theirs}",
        f"{GALLERY}/{theirs}/edit",
        f"{GALLERY}/{theirs}/live",
        f"{GALLERY}/new?from={theirs}",
    ):
        await desk.get(path, status=404)
    for act in ("edit", "send", "delete"):
        await desk.post(f"{GALLERY}/{theirs}/{act}", status=404)
    assert theirs not in await desk.get(GALLERY)
    for nothing in ("nothing", demo.APP_ID):
        await desk.get(f"{GALLERY}/{nothing}", status=404)
    await desk.get(f"{GALLERY}/media/1234567890123456", status=404)


async def test_text_that_is_script_is_shown_as_text(desk: Desk) -> None:
    script = "<script>alert(1)</script>"
    template_id = await make(
        desk, content=f"Hi {script} there", example=f"Hi {script} there", vertical=script, footer=script,
        buttons=json.dumps([{"type": "QUICK_REPLY", "text": "<img src=x>"}]),
    )  # fmt: skip

    for path in (GALLERY, f"{GALLERY}/{template_id}", f"{GALLERY}/new?from={template_id}", f"{GALLERY}?q={script}"):
        page = await desk.get(path)
        assert script not in page
        assert "<img src=x>" not in page


async def test_history_tells_each_step_and_the_reason_of_a_rejection(desk: Desk) -> None:
    template_id = await make(desk, content="Your code is {{1}}", example="Your code is 12")

    page = await until(desk, f"{GALLERY}/{template_id}", "Reason:")

    assert "Submitted" in page
    assert "Rejected" in page
    assert "step-bad" in page
    assert "Fix what the reason says" in page


async def test_history_tells_of_an_edit_a_pause_and_a_rating(desk: Desk) -> None:
    template_id = await make(desk)
    path = f"{GALLERY}/{template_id}"
    page = await until(desk, path, "step-good")
    operator_id = page.partition("Operator ID: ")[2].partition("<")[0]
    control = f"/control/templates/{operator_id}"

    await desk.control.json("POST", f"{control}/quality", {"score": "RED"})
    await until(desk, path, "unknown → low")
    await desk.control.json("POST", f"{control}/pause", {})
    await until(desk, path, "Paused")
    await desk.api.form("PUT", f"/partner/app/{demo.APP_ID}/templates/{template_id}", {"footer": "Acme"})

    page = await until(desk, path, "Edited")
    assert "<p>footer</p>" in page


async def test_template_is_sent_from_its_page_and_leads_to_the_trace(desk: Desk) -> None:
    answer = await desk.post(
        f"{DEMO}/send", {"destination": demo.DESTINATION, "param-0": "Ann", "param-1": "4711", "postback-0": "yes-1"}
    )

    path = answer.headers["location"]
    assert path.startswith(f"/apps/{demo.APP_ID}/messages/")
    shown = await inbox(desk)
    assert "Hi Ann, your order 4711 is ready" in json.dumps(shown)


async def inbox(desk: Desk) -> Any:
    for _ in range(50):
        shown = await desk.control.json("GET", f"/control/phones/{demo.DESTINATION}")
        if any(one["type"] == "template" for one in shown["messages"]):
            return shown
        await asyncio.sleep(0.1)
    raise AssertionError("it never came")


async def test_send_that_is_refused_comes_back_with_what_was_typed(desk: Desk) -> None:
    await desk.post(f"{DEMO}/send", {"destination": "12", "param-0": "Anneliese"}, status=400)
    async with desk.http.post(
        desk.base_url + f"{DEMO}/send", data={"csrf": await desk.csrf(), "destination": "12", "param-0": "Anneliese"}
    ) as answer:
        page = await answer.text()

    assert "Anneliese" in page
    assert 'role="alert"' in page


async def test_deleted_template_leaves_the_gallery_and_keeps_its_page(desk: Desk) -> None:
    template_id = await make(desk)

    answer = await desk.post(f"{GALLERY}/{template_id}/delete")

    assert answer.headers["location"] == GALLERY
    assert "order_update" not in (await desk.get(GALLERY)).partition('class="gallery"')[2]
    page = await desk.get(f"{GALLERY}/{template_id}")
    assert "It is deleted" in page
    assert "/delete" not in page


async def test_page_gives_the_requests_that_create_and_send_it_and_no_token(desk: Desk) -> None:
    page = await desk.get(DEMO)

    assert "curl -X POST" in page
    assert "urlopen(request)" in page
    assert f"/partner/app/{demo.APP_ID}/template/msg" in page
    assert desk.running.variables["APP_TOKEN"] not in page


async def another_partners_template(desk: Desk) -> str:
    """A template that is there, of another partner who made it at this console."""
    who = {"email": "other@acme.test", "name": "Other", "password": "Correct-horse-1"}
    partner_id = (await desk.admin.json("POST", "/admin/partners", who))["id"]
    account = {"id": "77", "partner_id": partner_id, "operator_account_id": "demo", "namespace": "n77"}
    await desk.admin.json("POST", "/admin/business-accounts", account)
    app = {"partner_id": partner_id, "name": "Elsewhere", "phone_number": "15550003000",
           "phone_number_id": "78", "business_account_id": "77"}  # fmt: skip
    app_id = (await desk.admin.json("POST", "/admin/apps", app))["id"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        async with http.post(f"{desk.base_url}/sign-in", data=who, allow_redirects=False) as came:
            assert came.status == 303
        path = f"{desk.base_url}/apps/{app_id}/templates/new"
        async with http.get(path) as page:
            csrf = (await page.text()).partition('data-csrf="')[2].partition('"')[0]
        fields = {name: value for name, value in ORDER.items() if name != "example"}
        fields |= {"csrf": csrf, "do": "submit", "value-1": "Ann"}
        async with http.post(path, data=fields, allow_redirects=False) as made:
            assert made.status == 303, await made.text()
            return made.headers["location"].rpartition("/")[2]
