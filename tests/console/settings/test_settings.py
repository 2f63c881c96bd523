"""The partner portal: what each act does, what it ends, and that nothing of another's is there."""

import re
from typing import Any

import aiohttp
import pytest

from tests.console.conftest import LOOP, Desk, Tabs
from waypost.assembly.dev import demo
from waypost.client.api_client import ApiClient, ApiResponseError, HttpTransport

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NEW = "Another-horse-2"
SECRET = re.compile(r'data-copy="([^"]+)"')


async def told(desk: Desk, path: str, fields: dict[str, str], *, status: int = 200) -> str:
    """What an act answers with where it shows a page."""
    answer = await desk.post(path, fields, status=status)
    return await answer.text()


def secret_in(page: str, before: str) -> str:
    """What the page shows this once, below its heading."""
    found = SECRET.search(page.partition(before)[2])
    assert found, page
    return found[1]


async def log_in(desk: Desk, password: str) -> dict[str, Any]:
    """As a script does."""
    door = ApiClient(HttpTransport(desk.base_url), {})
    fields = {"email": demo.EMAIL, "password": password}
    return await door.form("POST", "/partner/account/login", fields)


async def test_changed_password_opens_the_console_only_and_ends_other_sessions(desk: Desk) -> None:
    await log_in(desk, demo.PASSWORD)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        await other.post(desk.base_url + "/enter", allow_redirects=False)
        fields = {"old": demo.PASSWORD, "new": NEW, "again": NEW}

        await desk.post("/settings/password", fields)

        async with other.get(desk.base_url + "/settings", allow_redirects=False) as answer:
            assert answer.status == 303
            assert answer.headers["location"].startswith("/sign-in")
    page = await desk.get("/settings/password")
    assert "Password changed. 1 other session ended." in page
    for password in (demo.PASSWORD, NEW):
        with pytest.raises(ApiResponseError) as refused:
            await log_in(desk, password)
        assert refused.value.status == 401
    async with aiohttp.ClientSession() as somebody:
        for password, status in ((demo.PASSWORD, 401), (NEW, 303)):
            async with somebody.post(
                desk.base_url + "/sign-in", data={"email": demo.EMAIL, "password": password}, allow_redirects=False
            ) as answer:
                assert answer.status == status


async def test_partner_tokens_end_with_the_password_where_that_is_wanted(desk: Desk) -> None:
    token = (await log_in(desk, demo.CLIENT_SECRET))["token"]
    partner = ApiClient(HttpTransport(desk.base_url), {"Authorization": token})
    await partner.json("GET", "/partner/account/api/partnerApps")
    fields = {"old": demo.PASSWORD, "new": NEW, "again": NEW, "end_tokens": "on"}

    await desk.post("/settings/password", fields)

    with pytest.raises(ApiResponseError):
        await partner.json("GET", "/partner/account/api/partnerApps")
    assert "partner token" in await desk.get("/settings/password")
    await told(desk, f"/apps/{desk.app_id}/settings/token", {})  # the console has got a new one


async def test_administrators_new_password_ends_sessions_and_whoever_enters_again_goes_on(desk: Desk) -> None:
    await desk.post("/settings/apps", {"name": "Second shop"})
    body = {"password": NEW, "end_tokens": True}
    ended = await desk.admin.json("POST", "/admin/partners/1/password", body)

    async with desk.http.get(desk.base_url + "/settings", allow_redirects=False) as answer:
        assert answer.headers["location"].startswith("/sign-in")
    async with desk.http.post(desk.base_url + "/enter", allow_redirects=False):
        await desk.post("/settings/apps", {"name": "Third shop"})
    assert (ended["tokens_ended"], ended["sessions_ended"]) == (1, 1)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"old": "", "new": NEW, "again": NEW}, "Enter your current password."),
        ({"old": "Wrong-horse-1", "new": NEW, "again": NEW}, "Wrong password."),
        ({"old": demo.PASSWORD, "new": "short", "again": "short"}, "an upper-case letter"),
        ({"old": demo.PASSWORD, "new": NEW, "again": NEW + "x"}, "The passwords do not match."),
        ({"old": demo.PASSWORD, "new": demo.PASSWORD, "again": demo.PASSWORD}, "must differ from the current one"),
    ],
)
async def test_password_form_says_at_its_field_what_is_wrong(desk: Desk, fields: dict[str, str], says: str) -> None:
    page = await told(desk, "/settings/password", fields, status=400)

    assert says in page
    assert 'aria-invalid="true"' in page
    await log_in(desk, demo.PASSWORD)


async def test_attempts_at_the_old_password_are_limited(desk: Desk) -> None:
    fields = {"old": "Wrong-horse-1", "new": NEW, "again": NEW}
    for _ in range(10):
        await told(desk, "/settings/password", fields, status=400)

    page = await told(desk, "/settings/password", {**fields, "old": demo.PASSWORD}, status=429)

    assert "Too many attempts." in page


async def test_everybody_else_is_signed_out_by_one_click(desk: Desk) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        await other.post(desk.base_url + "/enter", allow_redirects=False)
        assert "Sign out everywhere else" in await desk.get("/settings")

        await desk.post("/settings/sessions/end-others")

        async with other.get(desk.base_url + "/settings", allow_redirects=False) as answer:
            assert answer.status == 303
    assert "1 other session ended." in await desk.get("/settings")


async def test_client_secret_is_shown_once_logs_in_and_is_revoked(desk: Desk) -> None:
    page = await told(desk, "/settings/secrets", {"life": "30"})
    secret = secret_in(page, "Your new client secret")

    assert (await log_in(desk, secret))["token"]
    listed = await desk.get("/settings/secrets")
    assert secret not in listed
    ids = re.findall(r"/settings/secrets/([0-9a-f]{16})/revoke", listed)
    assert len(ids) == 2
    await desk.post(f"/settings/secrets/{ids[0]}/revoke")
    with pytest.raises(ApiResponseError):
        await log_in(desk, secret)
    await desk.post(f"/settings/secrets/{ids[0]}/revoke", status=404)


async def test_client_secret_may_end_on_a_day_that_has_not_passed(desk: Desk) -> None:
    past = await told(desk, "/settings/secrets", {"life": "date", "day": "2020-01-01"}, status=400)
    none = await told(desk, "/settings/secrets", {"life": "date", "day": "soon"}, status=400)
    page = await told(desk, "/settings/secrets", {"life": "date", "day": "2099-12-31"})

    assert "Enter a future date" in past
    assert "Enter a future date" in none
    assert "2100-01-01 00:00:00.000 UTC" in page


async def test_api_key_is_shown_once_sends_and_is_revoked(desk: Desk) -> None:
    page = await told(desk, "/settings/keys", {"name": "shop & <till>"})
    key = secret_in(page, "Your new API key")
    assert "shop &amp; &lt;till&gt;" in page
    sending = ApiClient(HttpTransport(desk.base_url), {"apikey": key})
    fields = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": desk.phone,
        "src.name": demo.APP_NAME, "message": '{"type":"text","text":"Hello"}',
    }  # fmt: skip

    assert (await sending.form("POST", "/wa/api/v1/msg", fields))["messageId"]
    listed = await desk.get("/settings/keys")
    assert key not in listed
    key_id = re.findall(r"/settings/keys/([0-9a-f]{16})/revoke", listed)[0]
    await desk.post(f"/settings/keys/{key_id}/revoke")
    with pytest.raises(ApiResponseError):
        await sending.form("POST", "/wa/api/v1/msg", fields)


async def test_api_key_needs_a_name(desk: Desk) -> None:
    page = await told(desk, "/settings/keys", {"name": " "}, status=400)

    assert "Enter a name of 1 to 100 characters" in page


async def test_app_is_made_renamed_and_deleted(desk: Desk) -> None:
    made = await desk.post("/settings/apps", {"name": "Second shop"})
    path = made.headers["location"]
    assert "sandbox" in await desk.get(path)

    await desk.post(path, {"name": "Third shop", "template_messaging": "on"})
    assert "Third shop" in await desk.get("/settings/apps")
    wrong = await told(desk, f"{path}/delete", {"typed": "Second shop"}, status=400)
    assert "Enter Third shop to delete the app." in wrong
    await desk.post(f"{path}/delete", {"typed": "Third shop"})

    await desk.get(path, status=404)
    assert "Third shop" not in await desk.get("/settings/apps")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("short", "between 6 to 150 characters"),
        ("Wa/post", "Invalid characters"),
        (demo.APP_NAME, "Bot Already Exists"),
        ("", "name"),
    ],
)
async def test_app_is_not_made_under_a_name_that_may_not_be(desk: Desk, name: str, says: str) -> None:
    page = await told(desk, "/settings/apps", {"name": name}, status=400)

    assert says in page
    assert 'aria-invalid="true"' in page


async def test_live_app_is_not_deleted_by_its_partner(desk: Desk) -> None:
    page = await desk.get(f"/apps/{desk.app_id}/settings")
    assert "Only the administrator can delete a live app" in page

    await desk.post(f"/apps/{desk.app_id}/settings/delete", {"typed": demo.APP_NAME}, status=403)

    await desk.get(f"/apps/{desk.app_id}/settings")


async def test_app_token_is_shown_on_demand_and_renewed(desk: Desk) -> None:
    path = f"/apps/{desk.app_id}/settings"
    old = desk.running.variables["APP_TOKEN"]
    assert old not in await desk.get(path)

    shown = await told(desk, f"{path}/token", {})
    new = secret_in(await told(desk, f"{path}/token/renew", {}), "App token of")

    assert old in shown
    assert new != old
    with pytest.raises(ApiResponseError):
        await desk.api.json("GET", f"/partner/app/{desk.app_id}/templates")
    door = ApiClient(HttpTransport(desk.base_url), {"Authorization": new})
    assert (await door.json("GET", f"/partner/app/{desk.app_id}/templates"))["templates"]


async def test_second_keys_open_the_app_are_two_at_most_and_are_revoked(desk: Desk) -> None:
    path = f"/apps/{desk.app_id}/settings"
    key = secret_in(await told(desk, f"{path}/keys", {"key_name": "one"}), "Your new key")
    door = ApiClient(HttpTransport(desk.base_url), {"Authorization": key})
    assert (await door.json("GET", f"/partner/app/{desk.app_id}/templates"))["templates"]

    taken = await told(desk, f"{path}/keys", {"key_name": "one"}, status=400)
    await told(desk, f"{path}/keys", {"key_name": "two"})
    third = await told(desk, f"{path}/keys", {"key_name": "three"}, status=400)
    page = await desk.get(path)
    ids = re.findall(r"/settings/keys/([^/]+)/revoke", page)
    for one in ids:
        await desk.post(f"{path}/keys/{one}/revoke")

    assert key not in page
    assert "one is taken by an active one" in taken
    assert "At most 2 may be active" in third
    assert len(ids) == 2
    with pytest.raises(ApiResponseError):
        await door.json("GET", f"/partner/app/{desk.app_id}/templates")
    await desk.post(f"{path}/keys/none/revoke", status=404)


@pytest.mark.parametrize("hours", ["1", "24"])
async def test_token_that_expires_opens_the_app_and_is_revoked(desk: Desk, hours: str) -> None:
    path = f"/apps/{desk.app_id}/settings"
    page = await told(desk, f"{path}/tokens", {"token_name": "night", "hours": hours})
    token = secret_in(page, "Your new expiring token")
    door = ApiClient(HttpTransport(desk.base_url), {"Authorization": token})
    assert (await door.json("GET", f"/partner/app/{desk.app_id}/templates"))["templates"]

    token_id = re.findall(r"/settings/tokens/([^/]+)/revoke", await desk.get(path))[0]
    await desk.post(f"{path}/tokens/{token_id}/revoke")

    with pytest.raises(ApiResponseError):
        await door.json("GET", f"/partner/app/{desk.app_id}/templates")
    assert "revoked" in await desk.get(path)


async def test_another_partners_things_are_not_there(desk: Desk) -> None:
    body = {"email": "ada@other.test", "name": "Other", "password": NEW}
    other = (await desk.admin.json("POST", "/admin/partners", body))["id"]
    await desk.admin.json(
        "PUT", "/admin/operator-accounts/theirs",
        {"base_url": "https://operator.example", "token": "t", "app_id": "9", "app_secret": "s"},
    )  # fmt: skip
    account = {"id": "777", "partner_id": other, "operator_account_id": "theirs", "namespace": "n"}
    await desk.admin.json("POST", "/admin/business-accounts", account)
    wish = {
        "partner_id": other, "name": "TheirShop", "phone_number": "15559990000",
        "phone_number_id": "778", "business_account_id": "777",
    }  # fmt: skip
    app_id = (await desk.admin.json("POST", "/admin/apps", wish))["id"]
    path = f"/admin/partners/{other}"
    await desk.admin.json("POST", f"{path}/client-secrets", {})
    await desk.admin.json("POST", f"{path}/api-keys", {"name": "theirs"})
    secret = (await desk.admin.json("GET", f"{path}/client-secrets"))["client_secrets"][0]["id"]
    key = (await desk.admin.json("GET", f"{path}/api-keys"))["api_keys"][0]["id"]

    await desk.get(f"/apps/{app_id}", status=404)
    await desk.get(f"/apps/{app_id}/settings", status=404)
    for act in ("", "/delete", "/token", "/token/renew", "/keys", "/tokens", "/operator"):
        await desk.post(f"/apps/{app_id}/settings{act}", {"name": "Mine now"}, status=404)
    await desk.post(f"/settings/secrets/{secret}/revoke", status=404)
    await desk.post(f"/settings/keys/{key}/revoke", status=404)
    for page in ("/settings/apps", "/settings/keys", "/settings/secrets"):
        shown = await desk.get(page)
        assert not any(one in shown for one in ("TheirShop", "theirs", secret, key))
    operator = (await desk.get("/settings/operator?check=1")).partition('id="health"')
    assert "operator.example" not in operator[0] + operator[2]
    assert "<code>777</code>" not in operator[0] + operator[2]


async def test_operator_page_says_who_carries_the_app_and_what_a_check_finds(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/settings/operator")
    await tab.page.get_by_role("heading", name="Simulator", exact=True).wait_for()

    await tab.page.get_by_role("link", name="Check now").click()

    await tab.page.get_by_text("valid, does not expire").wait_for()
    webhook = f"{desk.base_url}/operator/webhook/demo"
    assert await tab.page.locator(f'[data-copy="{webhook}"]').count()


async def test_demonstrations_app_is_switched_to_another_operator_account(desk: Desk) -> None:
    facts = {
        "base_url": desk.running.graph_url, "token": demo.GRAPH_TOKEN, "app_id": demo.GRAPH_APP_ID,
        "app_secret": demo.GRAPH_APP_SECRET, "verify_token": demo.VERIFY_TOKEN,
    }  # fmt: skip
    await desk.admin.json("PUT", "/admin/operator-accounts/second", facts)

    await desk.post(f"/apps/{desk.app_id}/settings/operator", {"operator_account_id": "second"})

    page = await desk.get("/settings/operator")
    assert "WaypostDemo now uses operator account second." in page
    assert "/operator/webhook/second" in page


async def test_every_tab_of_the_settings_fits_a_narrow_window(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/settings", width=360)
    for path in ("", "/password", "/secrets", "/keys", "/apps", "/operator"):
        page = await tab.go(f"/settings{path}")
        over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, path
