"""The templates' pages: the gallery, one template with its history, sending and deleting."""

import asyncio
import json
from typing import Any, Final

import aiohttp
import pytest

from tests.console.conftest import LOOP, ConsoleClient, Tabs
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


async def create_template(console: ConsoleClient, **more: str) -> str:
    response = await console.api.form("POST", f"/partner/app/{demo.APP_ID}/templates", ORDER | more)
    return response["template"]["id"]


async def wait_for_text(console: ConsoleClient, path: str, text: str) -> str:
    """Return the page as soon as it contains a text."""
    for _ in range(80):
        page = await console.get(path)
        if text in page:
            return page
        await asyncio.sleep(0.1)
    raise AssertionError(f"{path} never shows {text!r}")


async def test_gallery_shows_each_template_with_its_attributes(console: ConsoleClient) -> None:
    await create_template(console, footer="Acme Shop")

    page = await console.get(GALLERY)

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


async def test_gallery_is_filtered_by_the_query(console: ConsoleClient) -> None:
    await create_template(console, languageCode="de")

    for query, names in QUERIES:
        page = await console.get(f"{GALLERY}?{query}")
        shown = [n for n in ("order_update", "order_ready") if f"<strong>{n}</strong>" in page]
        assert shown == names, query
        assert names or "No matches" in page


async def test_gallery_is_paged(console: ConsoleClient) -> None:
    for number in range(25):
        name = {"elementName": f"order_{number:02}"}
        await console.post(f"{GALLERY}/new", {**ORDER, **name, "value-1": "Ann", "do": "submit"})

    first, second = await console.get(GALLERY), await console.get(f"{GALLERY}?page=2")

    assert "26 templates, 1 to 24 shown" in first
    assert "order_24" in first
    assert "order_00" not in first
    assert "26 templates, 25 to 26 shown" in second
    assert "<strong>order_00</strong>" in second


async def test_gallery_updates_the_status_of_a_template_live(tabs: Tabs, console: ConsoleClient) -> None:
    template_id = await create_template(console)
    tab = await tabs(GALLERY)

    await tab.page.locator(f"#status-{template_id}").get_by_text("approved").wait_for()
    await create_template(console, elementName="newest")

    await tab.page.get_by_text("Newer templates").wait_for()


async def test_template_of_another_partner_is_not_found(console: ConsoleClient) -> None:
    foreign_id = await create_template_of_another_partner(console)

    for path in (
        f"{GALLERY}/{foreign_id}",
        f"{GALLERY}/{foreign_id}/edit",
        f"{GALLERY}/{foreign_id}/live",
        f"{GALLERY}/new?from={foreign_id}",
    ):
        await console.get(path, status=404)
    for act in ("edit", "send", "delete"):
        await console.post(f"{GALLERY}/{foreign_id}/{act}", status=404)
    assert foreign_id not in await console.get(GALLERY)
    for missing_id in ("nothing", demo.APP_ID):
        await console.get(f"{GALLERY}/{missing_id}", status=404)
    await console.get(f"{GALLERY}/media/1234567890123456", status=404)


async def test_script_in_a_template_is_shown_as_text(console: ConsoleClient) -> None:
    script = "<script>alert(1)</script>"
    template_id = await create_template(
        console, content=f"Hi {script} there", example=f"Hi {script} there", vertical=script, footer=script,
        buttons=json.dumps([{"type": "QUICK_REPLY", "text": "<img src=x>"}]),
    )  # fmt: skip

    for path in (GALLERY, f"{GALLERY}/{template_id}", f"{GALLERY}/new?from={template_id}", f"{GALLERY}?q={script}"):
        page = await console.get(path)
        assert script not in page
        assert "<img src=x>" not in page


async def test_history_shows_each_step_and_the_reason_of_a_rejection(console: ConsoleClient) -> None:
    template_id = await create_template(console, content="Your code is {{1}}", example="Your code is 12")

    page = await wait_for_text(console, f"{GALLERY}/{template_id}", "Reason:")

    assert "Submitted" in page
    assert "Rejected" in page
    assert "step-bad" in page
    assert "Fix what the reason says" in page


async def test_history_shows_an_edit_a_pause_and_a_quality_change(console: ConsoleClient) -> None:
    template_id = await create_template(console)
    path = f"{GALLERY}/{template_id}"
    page = await wait_for_text(console, path, "step-good")
    operator_id = page.partition("Operator ID: ")[2].partition("<")[0]
    control = f"/control/templates/{operator_id}"

    await console.control.json("POST", f"{control}/quality", {"score": "RED"})
    await wait_for_text(console, path, "unknown → low")
    await console.control.json("POST", f"{control}/pause", {})
    await wait_for_text(console, path, "Paused")
    await console.api.form("PUT", f"/partner/app/{demo.APP_ID}/templates/{template_id}", {"footer": "Acme"})

    page = await wait_for_text(console, path, "Edited")
    assert "<p>footer</p>" in page


async def test_template_is_sent_from_its_page_and_redirects_to_the_trace(console: ConsoleClient) -> None:
    response = await console.post(
        f"{DEMO}/send", {"destination": demo.DESTINATION, "param-0": "Ann", "param-1": "4711", "postback-0": "yes-1"}
    )

    path = response.headers["location"]
    assert path.startswith(f"/apps/{demo.APP_ID}/messages/")
    shown = await wait_for_template_message(console)
    assert "Hi Ann, your order 4711 is ready" in json.dumps(shown)


async def wait_for_template_message(console: ConsoleClient) -> Any:
    for _ in range(50):
        shown = await console.control.json("GET", f"/control/phones/{demo.DESTINATION}")
        if any(message["type"] == "template" for message in shown["messages"]):
            return shown
        await asyncio.sleep(0.1)
    raise AssertionError("no template message arrived")


async def test_rejected_send_keeps_its_input(console: ConsoleClient) -> None:
    await console.post(f"{DEMO}/send", {"destination": "12", "param-0": "Anneliese"}, status=400)
    async with console.http.post(
        console.base_url + f"{DEMO}/send",
        data={"csrf": await console.csrf(), "destination": "12", "param-0": "Anneliese"},
    ) as response:
        page = await response.text()

    assert "Anneliese" in page
    assert 'role="alert"' in page


async def test_deleted_template_leaves_the_gallery_and_keeps_its_page(console: ConsoleClient) -> None:
    template_id = await create_template(console)

    response = await console.post(f"{GALLERY}/{template_id}/delete")

    assert response.headers["location"] == GALLERY
    assert "order_update" not in (await console.get(GALLERY)).partition('class="gallery"')[2]
    page = await console.get(f"{GALLERY}/{template_id}")
    assert "It is deleted" in page
    assert "/delete" not in page


async def test_page_shows_the_requests_that_create_and_send_it_without_a_token(console: ConsoleClient) -> None:
    page = await console.get(DEMO)

    assert "curl -X POST" in page
    assert "urlopen(request)" in page
    assert f"/partner/app/{demo.APP_ID}/template/msg" in page
    assert console.running.variables["APP_TOKEN"] not in page


async def create_template_of_another_partner(console: ConsoleClient) -> str:
    """Create a template of another partner at this console; return its ID."""
    partner = {"email": "other@acme.test", "name": "Other", "password": "Correct-horse-1"}
    partner_id = (await console.admin.json("POST", "/admin/partners", partner))["id"]
    account = {"id": "77", "partner_id": partner_id, "operator_account_id": "demo", "namespace": "n77"}
    await console.admin.json("POST", "/admin/business-accounts", account)
    app = {"partner_id": partner_id, "name": "Elsewhere", "phone_number": "15550003000",
           "phone_number_id": "78", "business_account_id": "77"}  # fmt: skip
    app_id = (await console.admin.json("POST", "/admin/apps", app))["id"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        async with http.post(f"{console.base_url}/sign-in", data=partner, allow_redirects=False) as signed_in:
            assert signed_in.status == 303
        path = f"{console.base_url}/apps/{app_id}/templates/new"
        async with http.get(path) as page:
            csrf = (await page.text()).partition('data-csrf="')[2].partition('"')[0]
        fields = {name: value for name, value in ORDER.items() if name != "example"}
        fields |= {"csrf": csrf, "do": "submit", "value-1": "Ann"}
        async with http.post(path, data=fields, allow_redirects=False) as created:
            assert created.status == 303, await created.text()
            return created.headers["location"].rpartition("/")[2]
