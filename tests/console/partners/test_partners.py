"""The page of partners: a new partner in one form, the checklist of its overview, and who may use the page."""

import asyncio
import html
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Locator, expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.console.settings.test_administrator import TOKEN, SharedSimulator, shared_simulator
from tests.console.simulator.test_simulator_alone import close_site, open_site
from tests.console.support.input_methods import INPUT_METHODS
from tests.support.callback_sink import CallbackSink
from waypost.assembly.dev import demo
from waypost.base.object_ids import kind_of_id
from waypost.cli.commands.listener import NEEDED
from waypost.cli.connections import read_environment

__all__ = ("shared_simulator",)  # fixtures

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

VALUES: Final = {
    "name": "Meadow Bakery", "email": "meadow@bakery.test", "app_name": "MeadowApp", "phone_number": "+1 555 000 1777",
    "key_name": "till",
}  # fmt: skip
ALREADY_TAKEN: Final = "Another partner has this e-mail address."


@pytest.mark.parametrize("method", INPUT_METHODS)
async def test_new_partner_sends_its_first_message_after_six_clicks(
    tabs: Tabs, console: ConsoleClient, method: str
) -> None:
    user = INPUT_METHODS[method]
    tab = await tabs("/", signed_in=False)
    page = tab.page
    clicks: list[str] = []

    async def click(target: Locator) -> None:
        clicks.append(str(target))
        await user.press(target)

    await click(page.get_by_role("button", name="Continue as the demo partner"))
    await click(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Partners"))
    await user.write(page.get_by_role("textbox", name="Partner", exact=True), "Meadow Bakery")
    await click(page.get_by_role("button", name="Create partner"))
    await page.get_by_role("heading", name="Meadow Bakery is ready").wait_for()
    key = await page.locator(".once pre").inner_text()
    await click(page.get_by_role("button", name="Continue as Meadow Bakery"))
    steps = page.locator("#steps .step")
    await expect(steps.nth(0)).to_have_class(re.compile("is-done"))
    await click(page.get_by_role("button", name="Create sample template"))
    await expect(steps.nth(1)).to_contain_text("waits for the operator")
    await expect(steps.nth(1)).to_contain_text("Ready to send.")  # by itself, with the review
    await click(page.get_by_role("button", name="Send template"))
    await page.wait_for_url("**/phones?show=*")

    await page.get_by_text("your order 4711 is packed").first.wait_for()
    assert len(clicks) == 6
    keys = (await console.admin.json("GET", f"/admin/partners/{await find_partner_id(console)}/api-keys"))["api_keys"]
    assert [each["name"] for each in keys] == ["default"]
    assert key not in await console.get("/partners")


async def find_partner_id(console: ConsoleClient, name: str = "Meadow Bakery") -> int:
    partners = (await console.admin.json("GET", "/admin/partners"))["partners"]
    return next(partner["id"] for partner in partners if partner["name"] == name)


async def test_checklist_ticks_the_callback_while_it_is_open(tabs: Tabs, console: ConsoleClient) -> None:
    sink = CallbackSink()
    await sink.open()
    tab = await tabs("/")
    steps = tab.page.locator("#steps .step")
    await expect(steps.nth(3)).not_to_have_class(re.compile("is-done"))

    form = {"modes": "SENT,DELIVERED", "tag": "shop", "url": sink.url, "doCheck": "false"}
    await console.api.form("POST", f"/partner/app/{console.app_id}/subscription", form)
    await console.send_text("Good morning")

    await expect(steps.nth(2)).to_have_class(re.compile("is-done"))
    await expect(steps.nth(3)).to_have_class(re.compile("is-done"))
    await sink.close()


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("name", "", "Enter a name for the partner."),
        ("email", demo.EMAIL, ALREADY_TAKEN),
        ("email", "meadow", "Enter an e-mail address."),
        ("phone_number", demo.SOURCE, "Another app has this number."),
        ("phone_number", "12", "Enter 8 to 15 digits."),
        ("key_name", "", "Enter a name for the key"),
    ],
)
async def test_invalid_partner_is_rejected_with_the_reason_and_nothing_is_created(
    console: ConsoleClient, field: str, value: str, error: str
) -> None:
    before = await console.admin.json("GET", "/admin/operator-accounts")
    body = {"csrf": await console.csrf(), **VALUES, field: value}

    async with console.http.post(console.base_url + "/partners", data=body) as response:
        page = await response.text()

    assert response.status == 400
    assert error in page
    assert len((await console.admin.json("GET", "/admin/partners"))["partners"]) == 1
    assert await console.admin.json("GET", "/admin/operator-accounts") == before


async def test_partner_is_created_once(console: ConsoleClient) -> None:
    first = await console.post("/partners", VALUES, status=200)
    second = await console.post("/partners", {**VALUES, "phone_number": "15550001778"}, status=400)

    assert (first.status, second.status) == (200, 400)
    apps = (await console.admin.json("GET", "/admin/apps"))["apps"]
    assert [app["phone_number"] for app in apps if app["name"] == "MeadowApp"] == ["15550001777"]


async def test_ids_of_a_new_partner_at_the_simulator_are_of_their_kinds(console: ConsoleClient) -> None:
    await console.post("/partners", VALUES, status=200)

    accounts = (await console.control.json("GET", "/control/state"))["accounts"]
    [account] = [each for each in accounts if each["name"] == VALUES["name"]]
    ids = (account["waba_id"], account["app_id"], account["numbers"][0]["phone_number_id"])
    assert [kind_of_id(each) for each in ids] == ["account", "app", "number"]


@pytest.mark.parametrize("password", ["", "Correct-horse-1"])
async def test_new_partner_signs_in_and_listens_with_what_the_page_shows(
    console: ConsoleClient, tmp_path: Path, password: str
) -> None:
    response = await console.post("/partners", {**VALUES, "password": password}, status=200)
    page = html.unescape(await response.text())

    [shown] = re.findall(r"<dt>Password</dt><dd>(.*?)</dd>", page, re.DOTALL)
    generated = re.search(r"<code>(Wp-[0-9a-f]{24})</code>", shown)
    assert (generated is None) == bool(password)
    login = {"email": VALUES["email"], "password": password or (generated[1] if generated else "")}
    async with console.http.post(console.base_url + "/partner/account/login", data=login) as response:
        assert response.status == 200, await response.text()
    [commands] = re.findall(r"<pre tabindex=\"0\">(\(umask.*?)</pre>", page, re.DOTALL)
    write, listen = commands.splitlines()
    await asyncio.to_thread(subprocess.run, ["sh", "-c", write], cwd=tmp_path, check=True)
    file = tmp_path / listen.removeprefix("waypost listen --env-file ")
    assert file.stat().st_mode & 0o777 == 0o600
    variables = read_environment(file, *NEEDED)
    headers = {"Authorization": variables["APP_TOKEN"]}
    url = f"{variables['PARTNER_URL']}/partner/app/{variables['APP_ID']}/subscription"
    async with console.http.get(url, headers=headers) as response:
        assert response.status == 200, await response.text()


async def test_unknown_partner_cannot_be_entered(console: ConsoleClient) -> None:
    for partner_id in ("77", "x", "9" * 4000):
        await console.post(f"/partners/{partner_id}/enter", status=404)


async def test_only_an_administrator_uses_the_page_under_serve(shared_simulator: SharedSimulator) -> None:
    before = [
        (await shared_simulator.site.get("/partners"))[0],
        (await shared_simulator.post_action("/partners", **VALUES))[0],
        (await shared_simulator.post_action("/partners/1/enter"))[0],
    ]
    await shared_simulator.post_action("/settings/administrator", token=TOKEN)
    status, created = await shared_simulator.post_action("/partners", **VALUES)
    entered, _ = await shared_simulator.post_action("/partners/1/enter")

    assert before == [403, 403, 403]
    assert (status, "Meadow Bakery is ready" in created) == (200, True), created
    assert "did not subscribe" not in created
    assert "Continue as" not in created
    assert entered == 404
    recorded = {(entry.action, entry.status) for entry in await shared_simulator.entries()}
    assert {("POST /partners", 403), ("POST /partners", 200)} <= recorded


async def test_page_names_the_command_without_an_operator_account(tmp_path: Any) -> None:
    site, server = await open_site(tmp_path, None, has_operator=False)
    status, page = await site.get("/partners")
    await close_site(site, server)

    assert status == 200
    assert "waypost account operator cloud" in page
    assert "Create partner" not in page


async def test_partner_of_a_real_operator_account_is_created_with_its_number(
    shared_simulator: SharedSimulator, tmp_path: Any
) -> None:
    """The simulator stands for the operator: the service does not know that it is one."""
    account = {"name": "Meadow", "token": "token-of-the-operator", "app_id": "900", "app_secret": "a secret"}
    await shared_simulator.control.json("PUT", "/control/accounts/3000000000000001", account)
    number = {"waba_id": "3000000000000001", "phone_number": "15550001777", "name": "Meadow"}
    await shared_simulator.control.json("PUT", "/control/numbers/3000000000000002", number)
    graph_url = shared_simulator.site.waypost.console.services.simulator_url
    site, server = await open_site(tmp_path / "serve", None, admin_token=TOKEN)
    fields = {
        **VALUES, "password": "Correct-horse-1", "operator_account": "cloud", "phone_number_id": "3000000000000002",
        "business_account_id": "3000000000000001",
    }  # fmt: skip
    operator = {"base_url": graph_url, "token": account["token"], "app_id": "900", "app_secret": "a secret"}
    await site.waypost.console.services.apis.admin.json("PUT", "/admin/operator-accounts/cloud", operator)

    serving = SharedSimulator(site, shared_simulator.control)
    unknown_number = await serving.post_action("/partners", **{**fields, "phone_number_id": "77"})
    created = await serving.post_action("/partners", **fields)

    await close_site(site, server)
    assert unknown_number[0] == 400
    assert "The business account has no such number. Its numbers: 3000000000000002" in unknown_number[1]
    assert (created[0], "Meadow Bakery is ready" in created[1]) == (200, True), created[1]
    assert "did not subscribe" not in created[1]
