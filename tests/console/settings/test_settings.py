"""The settings pages: what each action does and ends, and that other partners' settings are not accessible."""

import re
from typing import Any

import aiohttp
import pytest

from tests.console.conftest import LOOP, ConsoleClient, Tabs
from tests.support.polling import poll_until
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


def read_quotas(page: str) -> list[str]:
    """Return what waits, the limit and the badges of messages and of callbacks."""
    card = page.partition('id="quotas"')[2].partition("</dl>")[0]
    values = re.findall(r"<dd>(.*?)<br>", card)
    return [" ".join(re.sub(r"<[^>]*>", " ", value).split()) for value in values]


def find_rate(page: str, name: str) -> str:
    """Return the texts of a row of the list of rates, separated by spaces."""
    row = re.search(rf"<li><span><code>{name}</code>.*?</li>", page, re.DOTALL)
    assert row, page
    return " ".join(re.sub(r"<form.*?</form>|<[^>]*>", " ", row[0], flags=re.DOTALL).split())


async def log_in(console: ConsoleClient, password: str) -> dict[str, Any]:
    """Log in to the partner API."""
    api = ApiClient(HttpTransport(console.base_url), {})
    fields = {"email": demo.EMAIL, "password": password}
    return await api.form("POST", "/partner/account/login", fields)


async def test_administrator_changes_the_retention_periods_of_the_partner(console: ConsoleClient) -> None:
    changed = {"keep_bodies_days": "7", "keep_messages_days": ""}
    longer = {"keep_bodies_days": "7", "keep_messages_days": "401"}
    no_number = {"keep_bodies_days": "a week", "keep_messages_days": ""}

    await console.post("/settings/retention", changed)
    page = await console.get("/settings")
    rejected = [
        await post_for_page(console, "/settings/retention", fields, status=400) for fields in (longer, no_number)
    ]

    assert re.search(r"<dt>Content</dt><dd>7 days.*own period", page)
    assert re.search(r"<dt>Messages</dt><dd>400 days<br>", page)
    assert "Enter a number of days from 1 to 400, or nothing." in rejected[0]
    assert "Enter a number of days from 1 to 30, or nothing." in rejected[1]
    assert 'value="a week"' in rejected[1]


async def test_administrator_changes_the_quotas_of_the_partner(console: ConsoleClient) -> None:
    """The page shows what waits now, the limit, and what is responded once it is reached."""
    before = await console.get("/settings")

    await console.post("/settings/quotas", {"message_quota": "0", "callback_quota": "2500"})
    changed = await console.get("/settings")
    stored = await console.admin.json("GET", "/admin/partners/1/quotas")
    rejected = await post_for_page(
        console, "/settings/quotas", {"message_quota": "-1", "callback_quota": "1000000001"}, status=400
    )
    await console.post("/settings/quotas", {"message_quota": "", "callback_quota": ""})
    reset = await console.get("/settings")

    assert read_quotas(before) == read_quotas(reset) == ["0 of 1 000 000", "0 of 4 000 000"]
    assert read_quotas(changed) == ["0 of any number own quota", "0 of 2 500 own quota"]
    assert {name: quota["own_quota"] for name, quota in stored.items()} == {"messages": 0, "callbacks": 2500}
    assert rejected.count("Enter a number from 0 to 1000000000, or nothing.") == 2
    assert 'value="1000000001"' in rejected
    assert "status 429 with the text <code>Too Many Requests</code>" in before


async def test_reached_quota_is_marked(console: ConsoleClient) -> None:
    """A frozen clock keeps a message waiting: the quota of one is reached, and the next message gets the text shown."""
    await console.control.json("POST", "/control/clock/freeze", {})
    await console.post("/settings/quotas", {"message_quota": "1", "callback_quota": ""})
    await console.control.json(
        "POST", "/control/faults", {"on": "call", "call": "messages.send", "what": {"error": 130429}}
    )
    await console.send_text("waits")

    page = await console.get("/settings")
    with pytest.raises(ApiResponseError) as error:
        await console.send_text("is rejected")

    assert read_quotas(page)[0] == "1 of 1 reached own quota"
    assert (error.value.status, error.value.message) == (429, "Too Many Requests")


async def test_administrator_gives_an_app_rates_of_its_own_and_resets_them(console: ConsoleClient) -> None:
    """The page shows each row with its source; a change is in force at once."""
    settings = f"/apps/{console.app_id}/settings"

    await console.post(settings + "/rates", {"rate": "template_sync", "requests": "3", "period_s": "90"})
    changed = await console.get(settings)
    await console.post(settings + "/rates", {"rate": "templates", "requests": "25", "period_s": "60"})
    stored = await console.admin.json("GET", f"/admin/apps/{console.app_id}/rates")
    await console.post(settings + "/rates/reset", {"rate": "template_sync"})
    one_reset = await console.get(settings)
    await console.post(settings + "/rates/reset-all")
    all_reset = await console.get(settings)

    assert "template_sync: now 3 in 90 s." in changed
    assert find_rate(changed, "template_sync") == "template_sync documented: 1 per hour 3 in 90 s this app"
    assert find_rate(changed, "templates") == "templates 10 per minute"
    assert {row["rate"]: row["app"] for row in stored["rates"] if row["source"] == "app"} == {
        "template_sync": "3/90s", "templates": "25/60s",
    }  # fmt: skip
    assert find_rate(one_reset, "template_sync") == "template_sync 1 per hour"
    assert find_rate(one_reset, "templates") == "templates documented: 10 per minute 25 per minute this app"
    assert find_rate(all_reset, "templates") == "templates 10 per minute"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"rate": "templates", "requests": "0", "period_s": "60"}, "Enter a number from 1 to 1000000."),
        ({"rate": "templates", "requests": "5", "period_s": "86401"}, "Enter a number from 1 to 86400."),
        ({"rate": "templates", "requests": "many", "period_s": ""}, "Enter a number from 1 to 86400."),
        ({"rate": "login", "requests": "5", "period_s": "60"}, "there is no rate login that can be set"),
    ],
)
async def test_rejected_rate_is_shown_at_its_field(console: ConsoleClient, fields: dict[str, str], error: str) -> None:
    page = await post_for_page(console, f"/apps/{console.app_id}/settings/rates", fields, status=400)

    assert error in page
    assert 'aria-invalid="true"' in page
    assert f'value="{fields["requests"]}"' in page
    assert "this app</span>" not in page


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
        assert error.value.status == 403
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
        ("short", "Name must have 6 to 150 characters"),
        ("Wa/post", "Name must hold letters, digits, spaces, - and _ only."),
        (demo.APP_NAME, "Name is taken by another of your apps"),
        ("", "Name is required"),
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
    assert "Name one is taken by an active key" in duplicate
    assert "At most 2 keys may be active per app" in third
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


async def test_app_is_switched_to_another_operator_account_and_back_after_its_checks(
    tabs: Tabs, console: ConsoleClient
) -> None:
    account = {
        "base_url": console.running.graph_url, "token": demo.GRAPH_TOKEN, "app_id": demo.GRAPH_APP_ID,
        "app_secret": demo.GRAPH_APP_SECRET, "verify_token": demo.VERIFY_TOKEN,
    }  # fmt: skip
    await console.admin.json("PUT", "/admin/operator-accounts/second", account)

    path = f"/apps/{console.app_id}/settings/operator"
    tab = await tabs("/settings/operator")
    page = tab.page

    await page.get_by_role("link", name="Switch WaypostDemo").click()
    await page.get_by_role("link", name="Check second").click()
    await page.locator("#checks").get_by_text("second: token").wait_for()
    before = (await console.admin.json("GET", "/admin/operator-accounts"))["operator_accounts"]
    await page.get_by_label("Name of the app, to confirm").fill("Another")
    await page.get_by_role("button", name="Switch WaypostDemo to second").click()
    await page.get_by_text("Enter WaypostDemo to switch the app.").wait_for()
    assert (await console.admin.json("GET", "/admin/operator-accounts"))["operator_accounts"] == before
    tab.errors.clear()  # the browser reports the 400

    await page.get_by_label("Name of the app, to confirm").fill("WaypostDemo")
    await page.get_by_role("button", name="Switch WaypostDemo to second").click()
    await page.get_by_text("WaypostDemo now uses operator account second.").wait_for()
    assert "/operator/webhook/second" in await console.get("/settings/operator")
    assert "subscribed at" in await console.get("/settings/operator?check=1")

    await console.post(path, {"operator_account_id": "demo", "typed": "WaypostDemo"})
    assert "now uses operator account demo" in await console.get(path)


async def test_switch_that_cannot_succeed_is_not_offered(console: ConsoleClient) -> None:
    account = {"base_url": console.running.graph_url, "token": "unknown", "app_id": "1", "app_secret": "x"}
    await console.admin.json("PUT", "/admin/operator-accounts/broken", account)
    path = f"/apps/{console.app_id}/settings/operator"

    page = await console.get(f"{path}?to=broken")
    await console.post(path, {"operator_account_id": "broken", "typed": "WaypostDemo"}, status=400)

    assert "WaypostDemo cannot be switched:" in page
    assert "broken: token" in page
    assert "to confirm" not in page
    assert "/operator/webhook/demo" in await console.get("/settings/operator")


async def test_every_tab_of_the_settings_fits_a_narrow_window(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/settings", width=360)
    for path in ("", "/password", "/secrets", "/keys", "/apps", "/operator", "/personal-data"):
        page = await tab.go(f"/settings{path}")
        over = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, path


async def test_personal_data_of_a_recipient_is_exported_and_erased_once_its_number_was_typed_twice(
    tabs: Tabs, console: ConsoleClient
) -> None:
    written = {"to": demo.SOURCE, "text": "a question to be erased"}
    await console.control.json("POST", f"/control/phones/{demo.DESTINATION}/messages", written)

    async def export() -> str:
        return await post_for_page(console, "/settings/personal-data/export", {"number": f"+{demo.DESTINATION}"})

    await poll_until(export, lambda text: "a question to be erased" in text)
    fields = {"erased": demo.DESTINATION, "typed": demo.DESTINATION[:-1]}
    refused = await post_for_page(console, "/settings/personal-data/erase", fields, status=400)
    invalid = await post_for_page(console, "/settings/personal-data/export", {"number": "12"}, status=400)

    tab = await tabs("/settings/personal-data")
    for label in ("Phone number", "Enter it again to confirm"):
        await tab.page.locator("form[action$=erase]").get_by_label(label).fill(f"+{demo.DESTINATION}")
    await tab.page.get_by_role("button", name="Erase").click()
    await tab.page.get_by_text("Nothing is stored about").wait_for()

    assert "Enter the same number again" in refused
    assert "8 to 15 digits" in invalid
    assert await export() == ""


async def test_overview_shows_which_rate_has_limited_requests(console: ConsoleClient) -> None:
    templates = f"/partner/app/{console.app_id}/templates"
    for _ in range(10):
        await console.api.json("GET", templates)
    with pytest.raises(ApiResponseError, match="429"):
        await console.api.json("GET", templates)

    page = await console.get(f"/apps/{console.app_id}")

    assert "1 request was limited in the last 10 minutes: more than the rate templates allows" in page
    assert f'href="/apps/{console.app_id}/settings#rates"' in page
    assert "--no-rates" in page
