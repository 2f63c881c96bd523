"""The settings pages: what each action does and ends, and that other partners' settings are not accessible."""

import re
from typing import Any

import aiohttp
import pytest

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from waypost.assembly.dev import demo
from waypost.client.api_client import ApiClient, ApiResponseError, HttpTransport

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

NEW = "Another-horse-2"
SECRET = re.compile(r'data-copy="([^"]+)"')


async def post_for_page(console: ConsoleClient, path: str, fields: dict[str, str], *, status: int = 200) -> str:
    """Post an action; return the page that it responds with."""
    response = await console.post(path, fields, status=status)
    return await response.text()


def find_secret(page: str, before: str) -> str:
    """Return the secret that a page shows once, after some text."""
    match = SECRET.search(page.partition(before)[2])
    assert match, page
    return match[1]


async def log_in(console: ConsoleClient, password: str) -> dict[str, Any]:
    """Log in to the partner API."""
    api = ApiClient(HttpTransport(console.base_url), {})
    fields = {"email": demo.EMAIL, "password": password}
    return await api.form("POST", "/partner/account/login", fields)


async def test_changed_password_is_for_the_console_only_and_ends_other_sessions(console: ConsoleClient) -> None:
    await log_in(console, demo.PASSWORD)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        await other.post(console.base_url + "/enter", allow_redirects=False)
        fields = {"old": demo.PASSWORD, "new": NEW, "again": NEW}

        await console.post("/settings/password", fields)

        async with other.get(console.base_url + "/settings", allow_redirects=False) as response:
            assert response.status == 303
            assert response.headers["location"].startswith("/sign-in")
    page = await console.get("/settings/password")
    assert "Password changed. 1 other session ended." in page
    for password in (demo.PASSWORD, NEW):
        with pytest.raises(ApiResponseError) as error:
            await log_in(console, password)
        assert error.value.status == 401
    async with aiohttp.ClientSession() as http:
        for password, status in ((demo.PASSWORD, 401), (NEW, 303)):
            async with http.post(
                console.base_url + "/sign-in", data={"email": demo.EMAIL, "password": password}, allow_redirects=False
            ) as response:
                assert response.status == status


async def test_partner_tokens_end_with_the_password_on_request(console: ConsoleClient) -> None:
    token = (await log_in(console, demo.CLIENT_SECRET))["token"]
    partner = ApiClient(HttpTransport(console.base_url), {"Authorization": token})
    await partner.json("GET", "/partner/account/api/partnerApps")
    fields = {"old": demo.PASSWORD, "new": NEW, "again": NEW, "end_tokens": "on"}

    await console.post("/settings/password", fields)

    with pytest.raises(ApiResponseError):
        await partner.json("GET", "/partner/account/api/partnerApps")
    assert "partner token" in await console.get("/settings/password")
    await post_for_page(console, f"/apps/{console.app_id}/settings/token", {})  # the console has a new token


async def test_password_set_by_the_administrator_ends_sessions_until_the_next_sign_in(console: ConsoleClient) -> None:
    await console.post("/settings/apps", {"name": "Second shop"})
    body = {"password": NEW, "end_tokens": True}
    ended = await console.admin.json("POST", "/admin/partners/1/password", body)

    async with console.http.get(console.base_url + "/settings", allow_redirects=False) as response:
        assert response.headers["location"].startswith("/sign-in")
    async with console.http.post(console.base_url + "/enter", allow_redirects=False):
        await console.post("/settings/apps", {"name": "Third shop"})
    assert (ended["tokens_ended"], ended["sessions_ended"]) == (1, 1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"old": "", "new": NEW, "again": NEW}, "Enter your current password."),
        ({"old": "Wrong-horse-1", "new": NEW, "again": NEW}, "Wrong password."),
        ({"old": demo.PASSWORD, "new": "short", "again": "short"}, "an upper-case letter"),
        ({"old": demo.PASSWORD, "new": NEW, "again": NEW + "x"}, "The passwords do not match."),
        ({"old": demo.PASSWORD, "new": demo.PASSWORD, "again": demo.PASSWORD}, "must differ from the current one"),
    ],
)
async def test_password_form_shows_the_error_at_its_field(
    console: ConsoleClient, fields: dict[str, str], error: str
) -> None:
    page = await post_for_page(console, "/settings/password", fields, status=400)

    assert error in page
    assert 'aria-invalid="true"' in page
    await log_in(console, demo.PASSWORD)


async def test_attempts_at_the_old_password_are_rate_limited(console: ConsoleClient) -> None:
    fields = {"old": "Wrong-horse-1", "new": NEW, "again": NEW}
    for _ in range(10):
        await post_for_page(console, "/settings/password", fields, status=400)

    page = await post_for_page(console, "/settings/password", {**fields, "old": demo.PASSWORD}, status=429)

    assert "Too many attempts." in page


async def test_all_other_sessions_are_ended_by_one_click(console: ConsoleClient) -> None:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        await other.post(console.base_url + "/enter", allow_redirects=False)
        assert "Sign out everywhere else" in await console.get("/settings")

        await console.post("/settings/sessions/end-others")

        async with other.get(console.base_url + "/settings", allow_redirects=False) as response:
            assert response.status == 303
    assert "1 other session ended." in await console.get("/settings")


async def test_client_secret_is_shown_once_and_works_until_it_is_revoked(console: ConsoleClient) -> None:
    page = await post_for_page(console, "/settings/secrets", {"life": "30"})
    secret = find_secret(page, "Your new client secret")

    assert (await log_in(console, secret))["token"]
    listed = await console.get("/settings/secrets")
    assert secret not in listed
    ids = re.findall(r"/settings/secrets/([0-9a-f]{16})/revoke", listed)
    assert len(ids) == 2
    await console.post(f"/settings/secrets/{ids[0]}/revoke")
    with pytest.raises(ApiResponseError):
        await log_in(console, secret)
    await console.post(f"/settings/secrets/{ids[0]}/revoke", status=404)


async def test_client_secret_can_expire_only_on_a_future_date(console: ConsoleClient) -> None:
    past = await post_for_page(console, "/settings/secrets", {"life": "date", "day": "2020-01-01"}, status=400)
    invalid = await post_for_page(console, "/settings/secrets", {"life": "date", "day": "soon"}, status=400)
    page = await post_for_page(console, "/settings/secrets", {"life": "date", "day": "2099-12-31"})

    assert "Enter a future date" in past
    assert "Enter a future date" in invalid
    assert "2100-01-01 00:00:00.000 UTC" in page


async def test_api_key_is_shown_once_and_works_until_it_is_revoked(console: ConsoleClient) -> None:
    page = await post_for_page(console, "/settings/keys", {"name": "shop & <till>"})
    key = find_secret(page, "Your new API key")
    assert "shop &amp; &lt;till&gt;" in page
    sending = ApiClient(HttpTransport(console.base_url), {"apikey": key})
    fields = {
        "channel": "whatsapp", "source": demo.SOURCE, "destination": console.phone,
        "src.name": demo.APP_NAME, "message": '{"type":"text","text":"Hello"}',
    }  # fmt: skip

    assert (await sending.form("POST", "/wa/api/v1/msg", fields))["messageId"]
    listed = await console.get("/settings/keys")
    assert key not in listed
    key_id = re.findall(r"/settings/keys/([0-9a-f]{16})/revoke", listed)[0]
    await console.post(f"/settings/keys/{key_id}/revoke")
    with pytest.raises(ApiResponseError):
        await sending.form("POST", "/wa/api/v1/msg", fields)


async def test_api_key_needs_a_name(console: ConsoleClient) -> None:
    page = await post_for_page(console, "/settings/keys", {"name": " "}, status=400)

    assert "Enter a name of 1 to 100 characters" in page


async def test_app_is_created_renamed_and_deleted(console: ConsoleClient) -> None:
    response = await console.post("/settings/apps", {"name": "Second shop"})
    path = response.headers["location"]
    assert "sandbox" in await console.get(path)

    await console.post(path, {"name": "Third shop", "template_messaging": "on"})
    assert "Third shop" in await console.get("/settings/apps")
    rejected = await post_for_page(console, f"{path}/delete", {"typed": "Second shop"}, status=400)
    assert "Enter Third shop to delete the app." in rejected
    await console.post(f"{path}/delete", {"typed": "Third shop"})

    await console.get(path, status=404)
    assert "Third shop" not in await console.get("/settings/apps")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("short", "between 6 to 150 characters"),
        ("Wa/post", "Invalid characters"),
        (demo.APP_NAME, "Bot Already Exists"),
        ("", "name"),
    ],
)
async def test_app_with_an_invalid_name_is_not_created(console: ConsoleClient, name: str, error: str) -> None:
    page = await post_for_page(console, "/settings/apps", {"name": name}, status=400)

    assert error in page
    assert 'aria-invalid="true"' in page


async def test_live_app_cannot_be_deleted_by_its_partner(console: ConsoleClient) -> None:
    page = await console.get(f"/apps/{console.app_id}/settings")
    assert "Only the administrator can delete a live app" in page

    await console.post(f"/apps/{console.app_id}/settings/delete", {"typed": demo.APP_NAME}, status=403)

    await console.get(f"/apps/{console.app_id}/settings")


async def test_app_token_is_shown_on_demand_and_renewed(console: ConsoleClient) -> None:
    path = f"/apps/{console.app_id}/settings"
    old = console.running.variables["APP_TOKEN"]
    assert old not in await console.get(path)

    shown = await post_for_page(console, f"{path}/token", {})
    new = find_secret(await post_for_page(console, f"{path}/token/renew", {}), "App token of")

    assert old in shown
    assert new != old
    with pytest.raises(ApiResponseError):
        await console.api.json("GET", f"/partner/app/{console.app_id}/templates")
    api = ApiClient(HttpTransport(console.base_url), {"Authorization": new})
    assert (await api.json("GET", f"/partner/app/{console.app_id}/templates"))["templates"]


async def test_additional_keys_are_two_at_most_and_work_until_they_are_revoked(console: ConsoleClient) -> None:
    path = f"/apps/{console.app_id}/settings"
    key = find_secret(await post_for_page(console, f"{path}/keys", {"key_name": "one"}), "Your new key")
    api = ApiClient(HttpTransport(console.base_url), {"Authorization": key})
    assert (await api.json("GET", f"/partner/app/{console.app_id}/templates"))["templates"]

    duplicate = await post_for_page(console, f"{path}/keys", {"key_name": "one"}, status=400)
    await post_for_page(console, f"{path}/keys", {"key_name": "two"})
    third = await post_for_page(console, f"{path}/keys", {"key_name": "three"}, status=400)
    page = await console.get(path)
    ids = re.findall(r"/settings/keys/([^/]+)/revoke", page)
    for key_id in ids:
        await console.post(f"{path}/keys/{key_id}/revoke")

    assert key not in page
    assert "one is taken by an active one" in duplicate
    assert "At most 2 may be active" in third
    assert len(ids) == 2
    with pytest.raises(ApiResponseError):
        await api.json("GET", f"/partner/app/{console.app_id}/templates")
    await console.post(f"{path}/keys/none/revoke", status=404)


@pytest.mark.parametrize("hours", ["1", "24"])
async def test_expiring_token_works_until_it_is_revoked(console: ConsoleClient, hours: str) -> None:
    path = f"/apps/{console.app_id}/settings"
    page = await post_for_page(console, f"{path}/tokens", {"token_name": "night", "hours": hours})
    token = find_secret(page, "Your new expiring token")
    api = ApiClient(HttpTransport(console.base_url), {"Authorization": token})
    assert (await api.json("GET", f"/partner/app/{console.app_id}/templates"))["templates"]

    token_id = re.findall(r"/settings/tokens/([^/]+)/revoke", await console.get(path))[0]
    await console.post(f"{path}/tokens/{token_id}/revoke")

    with pytest.raises(ApiResponseError):
        await api.json("GET", f"/partner/app/{console.app_id}/templates")
    assert "revoked" in await console.get(path)


async def test_settings_of_another_partner_are_not_accessible(console: ConsoleClient) -> None:
    body = {"email": "ada@other.test", "name": "Other", "password": NEW}
    other = (await console.admin.json("POST", "/admin/partners", body))["id"]
    await console.admin.json(
        "PUT", "/admin/operator-accounts/theirs",
        {"base_url": "https://operator.example", "token": "t", "app_id": "9", "app_secret": "s"},
    )  # fmt: skip
    account = {"id": "777", "partner_id": other, "operator_account_id": "theirs", "namespace": "n"}
    await console.admin.json("POST", "/admin/business-accounts", account)
    app = {
        "partner_id": other, "name": "TheirShop", "phone_number": "15559990000",
        "phone_number_id": "778", "business_account_id": "777",
    }  # fmt: skip
    app_id = (await console.admin.json("POST", "/admin/apps", app))["id"]
    path = f"/admin/partners/{other}"
    await console.admin.json("POST", f"{path}/client-secrets", {})
    await console.admin.json("POST", f"{path}/api-keys", {"name": "theirs"})
    secret = (await console.admin.json("GET", f"{path}/client-secrets"))["client_secrets"][0]["id"]
    key = (await console.admin.json("GET", f"{path}/api-keys"))["api_keys"][0]["id"]

    await console.get(f"/apps/{app_id}", status=404)
    await console.get(f"/apps/{app_id}/settings", status=404)
    for act in ("", "/delete", "/token", "/token/renew", "/keys", "/tokens", "/operator"):
        await console.post(f"/apps/{app_id}/settings{act}", {"name": "Mine now"}, status=404)
    await console.post(f"/settings/secrets/{secret}/revoke", status=404)
    await console.post(f"/settings/keys/{key}/revoke", status=404)
    for page in ("/settings/apps", "/settings/keys", "/settings/secrets"):
        shown = await console.get(page)
        assert not any(text in shown for text in ("TheirShop", "theirs", secret, key))
    operator = (await console.get("/settings/operator?check=1")).partition('id="health"')
    assert "operator.example" not in operator[0] + operator[2]
    assert "<code>777</code>" not in operator[0] + operator[2]


async def test_operator_page_shows_the_operator_and_the_result_of_a_check(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/settings/operator")
    await tab.page.get_by_role("heading", name="Simulator", exact=True).wait_for()

    await tab.page.get_by_role("link", name="Check now").click()

    await tab.page.get_by_text("valid, does not expire").wait_for()
    webhook = f"{console.base_url}/operator/webhook/demo"
    assert await tab.page.locator(f'[data-copy="{webhook}"]').count()


async def test_demo_app_can_be_switched_to_another_operator_account(console: ConsoleClient) -> None:
    account = {
        "base_url": console.running.graph_url, "token": demo.GRAPH_TOKEN, "app_id": demo.GRAPH_APP_ID,
        "app_secret": demo.GRAPH_APP_SECRET, "verify_token": demo.VERIFY_TOKEN,
    }  # fmt: skip
    await console.admin.json("PUT", "/admin/operator-accounts/second", account)

    await console.post(f"/apps/{console.app_id}/settings/operator", {"operator_account_id": "second"})

    page = await console.get("/settings/operator")
    assert "WaypostDemo now uses operator account second." in page
    assert "/operator/webhook/second" in page


async def test_every_tab_of_the_settings_fits_a_narrow_window(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/settings", width=360)
    for path in ("", "/password", "/secrets", "/keys", "/apps", "/operator"):
        page = await tab.go(f"/settings{path}")
        over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, path
