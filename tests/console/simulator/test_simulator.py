"""The simulator pages: template reviews, faults, clock, fleets, snapshots and rules."""

import json
import re
from datetime import UTC, datetime

import aiohttp
import pytest
from playwright.async_api import expect

from tests.console.conftest import LOOP, ConsoleClient, Tabs, answer_question
from tests.support.polling import poll_until
from waypost.assembly.dev import demo
from waypost.console.web.assets import Assets

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PAGES = ("", "/faults", "/faults/new/call/error", "/clock", "/fleets", "/snapshots", "/rules")


async def test_pending_template_is_approved_on_its_page(tabs: Tabs, console: ConsoleClient) -> None:
    await set_manual_review(console)
    tab = await tabs("/simulator")

    await create_template(console, "order_update")
    card = tab.page.locator("#waiting article").filter(has_text="order_update")
    await card.get_by_role("button", name="Approve").click()

    await tab.page.locator("#others summary").filter(has_text="order_update").wait_for()
    await card.wait_for(state="detached")
    assert (await get_template(console, "order_update"))["status"] == "APPROVED"


async def test_rejection_being_typed_is_kept_while_other_templates_arrive(tabs: Tabs, console: ConsoleClient) -> None:
    await set_manual_review(console)
    await create_template(console, "first")
    tab = await tabs("/simulator")
    await tab.page.get_by_text("Reject…").click()
    await tab.page.get_by_label("Explanation").fill("Too loud.")
    await tab.page.get_by_label("Recommendation").fill("Say it softly.")

    await create_template(console, "second")
    await tab.page.locator("#waiting article").nth(1).wait_for()
    await tab.page.get_by_role("button", name="Reject", exact=True).first.click()

    await tab.page.locator("#others summary").filter(has_text="first").wait_for()
    rejected = await get_template(console, "first")
    assert (rejected["status"], rejected["rejected_reason"]) == ("REJECTED", "INVALID_FORMAT")


async def test_pause_quality_category_and_pacing_are_applied_at_the_operator(console: ConsoleClient) -> None:
    template = await get_template(console, "order_ready")
    base = f"/simulator/templates/{template['id']}"

    await console.post(f"{base}/quality", {"score": "YELLOW"})
    await console.post(f"{base}/category", {"category": "MARKETING", "when": "announced"})
    await console.post(f"{base}/pace", {"for_s": "", "verdict": "drop"})
    paced = await get_template(console, "order_ready")
    await console.post(f"{base}/release")
    await console.post(f"{base}/pause")
    paused = await get_template(console, "order_ready")

    assert (paced["quality"], paced["correct_category"], paced["is_paced"]) == ("YELLOW", "MARKETING", True)
    assert (paused["status"], paused["is_paced"]) == ("PAUSED", False)


async def test_template_of_another_account_is_not_found(console: ConsoleClient) -> None:
    await console.control.json(
        "PUT", "/control/accounts/1000000000000009",
        {"name": "Other", "token": "other", "app_id": "77", "app_secret": "s"},
    )  # fmt: skip
    async with (
        aiohttp.ClientSession() as http,
        http.post(
            f"{console.running.graph_url}/v23.0/1000000000000009/message_templates",
            headers={"Authorization": "Bearer other"},
            json={
                "name": "not_yours", "language": "en_US", "category": "UTILITY",
                "components": [{"type": "BODY", "text": "Hello there"}],
            },
        ) as response,
    ):  # fmt: skip
        other = await response.json()

    page = await console.get("/simulator")
    await console.post(f"/simulator/templates/{other['id']}/disable", status=404)

    assert "not_yours" not in page
    assert (await get_template(console, "not_yours"))["status"] != "DISABLED"


async def test_markup_in_a_template_is_shown_as_text(console: ConsoleClient) -> None:
    await set_manual_review(console)
    await create_template(console, "sly", content="<script>alert(1)</script> hello")

    page = await console.get("/simulator")

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page


async def test_preset_fault_is_armed_shown_counted_and_disarmed(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/simulator/faults")

    recipe = tab.page.locator("article").filter(has_text="Every third message throttled")
    await recipe.get_by_role("button", name="Arm").click()
    await tab.page.get_by_text("1 fault armed").wait_for()
    for text in ("one", "two", "three"):
        await console.send_text(text)
    await tab.page.locator("#armed .sim-counts").filter(has_text="fired 1 of").wait_for()
    await tab.page.locator("#armed").get_by_role("button", name="Disarm").click()

    await tab.page.locator("#armed-none").wait_for()
    assert (await console.control.json("GET", "/control/faults"))["faults"] == []


async def test_every_preset_fault_can_be_armed_and_is_described_by_a_sentence(console: ConsoleClient) -> None:
    page = await console.get("/simulator/faults")
    keys = set(re.findall(r'action="/simulator/faults/presets/([a-z-]+)"', page))

    for key in sorted(keys):
        await console.post(f"/simulator/faults/presets/{key}")

    page = await console.get("/simulator/faults")
    assert len(keys) >= 10
    assert "messages.send fails with error 130429 (Retry-After 1 s), once every 3 times." in page
    armed = (await console.control.json("GET", "/control/faults"))["faults"]
    assert page.count('class="sim-fault') == len(armed)
    await console.get(f"/simulator/faults/{armed[0]['id']}")
    await console.post("/simulator/faults/disarm")
    assert (await console.control.json("GET", "/control/faults"))["faults"] == []


async def test_every_kind_of_fault_has_a_form_that_arms_it(console: ConsoleClient) -> None:
    values = {"whole": "150", "choice": None, "true": None}
    kinds = (await console.control.json("GET", "/control/faults/kinds"))["kinds"]

    for kind in kinds:
        await console.get(f"/simulator/faults/new/{kind['on']}/{kind['name']}")
        value = kind["value"]
        choice = value.get("choices", [""])[0]
        least = str(min(value.get("at_most", 150), max(150, value.get("at_least", 0))))
        fields = {f"what.{value['name']}": choice or least} if value["type"] in values else {}
        await console.post(
            f"/simulator/faults/new/{kind['on']}/{kind['name']}",
            {**fields, "when": "next", "when.next": "2", "for_s": "60", "label": "tried"},
        )

    armed = (await console.control.json("GET", "/control/faults"))["faults"]
    assert len(armed) == len(kinds) == 26
    assert {fault["label"] for fault in armed} == {"tried"}
    assert all(fault["when"] == {"next": 2} and fault["until_ms"] for fault in armed)


async def test_form_of_a_fault_marks_the_invalid_field_and_keeps_its_input(console: ConsoleClient) -> None:
    body = {
        "csrf": await console.csrf(), "what.error": "131016", "what.status": "200",
        "when": "next", "when.next": "2", "label": "kept",
    }  # fmt: skip
    async with console.http.post(console.base_url + "/simulator/faults/new/call/error", data=body) as response:
        page = await response.text()

    assert response.status == 400
    assert "What.status: cannot be 200." in page
    assert re.search(r'id="f-status"[^>]*value="200"[^>]*aria-invalid="true"', page)
    assert 'value="kept"' in page
    assert (await console.control.json("GET", "/control/faults"))["faults"] == []


async def test_pasted_faults_are_armed_and_errors_in_them_are_explained(console: ConsoleClient) -> None:
    fault = {"on": "webhook", "what": {"drop": True}}

    await console.post("/simulator/faults/json", {"json": json.dumps({"faults": [fault, fault]})})
    await console.post("/simulator/faults/json", {"json": "{"}, status=403)
    await console.post("/simulator/faults/json", {"json": '{"on": "moon"}'})
    page = await console.get("/simulator/faults")

    assert len((await console.control.json("GET", "/control/faults"))["faults"]) == 2
    assert "On: cannot be &#39;moon&#39;." in page


async def test_clock_is_advanced_stopped_and_run_from_its_page(tabs: Tabs, console: ConsoleClient) -> None:
    before_ms = await now_ms(console)
    tab = await tabs("/simulator/clock")

    await tab.page.get_by_role("button", name="+1 day").click()
    await tab.page.get_by_text("24 h ahead of machine time").wait_for()
    await tab.page.locator("#shell-clock").get_by_text("clock 24 h ahead").wait_for()
    await tab.page.get_by_role("button", name="Stop").click()
    await tab.page.locator("#shell-clock").get_by_text("clock stopped").wait_for()
    stopped_ms = await now_ms(console)
    await tab.page.get_by_role("button", name="Run").click()
    await tab.page.get_by_role("button", name="Stop").wait_for()

    assert 86_400_000 <= stopped_ms - before_ms < 2 * 86_400_000
    assert (await console.control.json("GET", "/control/clock"))["factor"] == 1


async def test_clock_advances_to_a_time_and_never_moves_back(console: ConsoleClient) -> None:
    to_ms = (await now_ms(console) // 60_000 + 31 * 1440) * 60_000
    to, before = (
        datetime.fromtimestamp(one_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M") for one_ms in (to_ms, to_ms - 86_400_000)
    )
    await console.post("/simulator/clock/advance", {"to": to})
    reached_ms = await now_ms(console)
    await console.post("/simulator/clock/advance", {"to": before})
    page = await console.get("/simulator/clock")
    await console.post("/simulator/clock/advance", {"to": "yesterday"}, status=403)
    await console.post("/simulator/clock/advance", {"by": "1.5", "unit": "hours"})
    await console.post("/simulator/clock/run", {"factor": "60"})

    assert to_ms <= reached_ms < to_ms + 86_400_000
    assert "a clock only goes forward" in page
    assert await now_ms(console) - reached_ms >= 5_400_000
    assert (await console.control.json("GET", "/control/clock"))["factor"] == 60


async def test_clock_advances_to_what_is_due_next(console: ConsoleClient) -> None:
    await console.post("/simulator/review-delay", {"mode": "after", "after_s": "600"})
    await create_template(console, "later")

    due = await console.control.json("GET", "/control/clock/due")
    await console.post("/simulator/clock/next")

    assert {side["name"] for side in due["sides"]} == {"the service", "the simulator"}
    assert (await get_template(console, "later"))["status"] == "APPROVED"


async def test_fleet_is_created_counted_and_deleted(console: ConsoleClient) -> None:
    fields = {
        "name": "crowd", "first": "15551000000", "count": "500", "script": "readers",
        "open_window_to": demo.SOURCE,
    }  # fmt: skip

    await console.post("/simulator/fleets", fields)
    await console.send_text("Hello", to="15551000007")
    page = await console.get("/simulator/fleets/crowd")
    listed = await console.get("/simulator/fleets")
    await console.post("/simulator/fleets/crowd/drop")

    assert "500 phones" in page
    assert "crowd" in listed
    await console.get("/simulator/fleets/crowd", status=404)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("step-0-do", "dance", "“Then” is not valid."),
        ("step-0-from_s", "soon", "is not a number of seconds"),
        ("first", "12", "First: "),
        ("count", "many", "Count: "),
        ("open_window_to", "15559998877", "not one of your numbers"),
    ],
)
async def test_invalid_fleet_is_rejected_with_a_reason(
    console: ConsoleClient, field: str, value: str, error: str
) -> None:
    fields = {
        "name": "crowd",
        "first": "15551000000",
        "count": "5",
        "script": "own",
        "step-0-on": "message",
        "step-0-do": "read",
    }
    body = {"csrf": await console.csrf(), **fields, field: value}

    async with console.http.post(console.base_url + "/simulator/fleets", data=body) as response:
        page = await response.text()

    assert response.status == 400
    assert error.lower() in page.lower()
    assert (await console.control.json("GET", "/control/fleets"))["fleets"] == []


async def test_loading_a_snapshot_restores_the_state_and_keeps_the_session(tabs: Tabs, console: ConsoleClient) -> None:
    tab = await tabs("/simulator/snapshots")
    other = await tabs(f"/apps/{console.app_id}")
    await tab.page.get_by_role("textbox", name="Name").fill("before")
    await tab.page.get_by_role("button", name="Save").click()
    await tab.page.get_by_text("Snapshot before saved.").wait_for()
    await console.post("/simulator/faults/json", {"json": '{"on": "webhook", "what": {"drop": true}}'})
    await console.post("/simulator/clock/advance", {"by": "2", "unit": "days"})

    await tab.page.get_by_role("button", name="Load").click()
    await answer_question(tab.page, "Load")

    await tab.page.get_by_text("Snapshot before loaded.").wait_for()
    assert (await console.control.json("GET", "/control/faults"))["faults"] == []
    assert (await console.control.json("GET", "/control/clock"))["ahead_ms"] < 60_000
    await console.send_text("Still live")
    await other.page.get_by_text("delivered").first.wait_for()


async def test_reset_restores_the_initial_state_and_keeps_the_session(tabs: Tabs, console: ConsoleClient) -> None:
    await create_template(console, "soon_gone")
    await console.post("/simulator/snapshots", {"name": "kept"})
    tab = await tabs("/simulator/snapshots")
    await tab.page.get_by_role("button", name="Reset everything").click()
    await expect(tab.page.get_by_role("button", name="Cancel")).to_be_focused()
    await tab.page.keyboard.press("Escape")
    await expect(tab.page.get_by_role("button", name="Reset everything")).to_be_focused()
    await tab.page.keyboard.press("Enter")
    question = await answer_question(tab.page, "Reset everything")

    await tab.page.get_by_text("Reset to the initial state.").wait_for()
    assert "are deleted" in question
    assert await tab.page.get_by_text("kept", exact=True).count() == 1
    templates = await console.control.json("GET", "/control/templates")
    assert "soon_gone" not in {template["name"] for template in templates["templates"]}
    await console.get("/simulator/faults")


async def test_snapshot_can_be_downloaded_and_deleted_and_is_not_overwritten(console: ConsoleClient) -> None:
    await console.post("/simulator/snapshots", {"name": "mine"})
    await console.post("/simulator/snapshots", {"name": "mine"})
    existing = await console.get("/simulator/snapshots")
    await console.post("/simulator/snapshots", {"name": "no good name"})
    invalid = await console.get("/simulator/snapshots")
    async with console.http.get(console.base_url + "/simulator/snapshots/mine/content") as response:
        content = await response.read()
        disposition = response.headers["Content-Disposition"]
    await console.post("/simulator/snapshots/mine/drop")

    assert "A snapshot named mine already exists." in existing
    assert "notice-bad" in invalid
    assert content[:2] == b"PK"
    assert disposition == 'attachment; filename="mine.waypost"'
    await console.get("/simulator/snapshots/mine/content", status=404)
    await console.post("/simulator/snapshots/mine/load")
    assert "There is no snapshot" in (await console.get("/simulator/snapshots")).replace("Name: t", "T")


async def test_rules_are_shown_changed_and_validated(console: ConsoleClient) -> None:
    page = await console.get("/simulator/rules")
    form = parse_form(page)
    settings = await console.control.json("GET", "/control/settings")

    changed = {**form, "read_after_ms": "1.5", "strict": "on", "marketing_words": "sale\noffer"}
    await console.post("/simulator/rules", changed)
    changed_page = await console.get("/simulator/rules")
    body = {"csrf": await console.csrf(), **form, "templates_at_most": "0"}
    async with console.http.post(console.base_url + "/simulator/rules", data=body) as response:
        rejected_page = await response.text()

    assert "Changed: Marketing words, Strict template rules, Read after." in changed_page
    now = await console.control.json("GET", "/control/settings")
    assert now == {
        **settings, "read_after_ms": 1500, "strict": True, "marketing_words": ["sale", "offer"]
    }  # fmt: skip
    assert response.status == 400
    assert "Templates per account" in rejected_page


@pytest.mark.parametrize(
    ("path", "fields", "field_id", "error"),
    [
        ("/simulator/rules", {"templates_at_most": "0"}, "r-templates_at_most", "at least 1. Accepted: 1 to 6000."),
        ("/simulator/rules", {"read_after_ms": "soon"}, "r-read_after_ms", "Must be a whole number"),
        ("/simulator/fleets", {"name": "A b", "first": "15551000000", "count": "5"}, "f-name", "1 to 64 of a-z"),
        (
            "/simulator/fleets",
            {
                "name": "crowd", "first": "15551000000", "count": "5", "script": "own",
                "step-0-on": "button", "step-0-do": "tap", "step-0-tap-index": "-4",
            },
            "step-0-tap-index",
            "“Button index” is not valid.",
        ),
    ],
)  # fmt: skip
async def test_error_of_the_control_api_is_shown_at_its_field(
    console: ConsoleClient, path: str, fields: dict[str, str], field_id: str, error: str
) -> None:
    form = parse_form(await console.get(path)) if path == "/simulator/rules" else {}
    body = {"csrf": await console.csrf(), **form, **fields}

    async with console.http.post(console.base_url + path, data=body) as response:
        page = await response.text()

    assert response.status == 400
    assert re.search(rf'id="{field_id}" [^>]*aria-invalid="true"', page)
    hint = page[page.index(f'id="{field_id}-hint"') :]
    assert error in hint[: hint.index("</p>")]


async def test_no_page_scrolls_horizontally_on_a_narrow_screen(tabs: Tabs, console: ConsoleClient) -> None:
    await set_manual_review(console)
    await create_template(console, "order_update")
    await console.post("/simulator/faults/presets/bad-day")
    tab = await tabs("/simulator", width=360, height=740)

    for path in PAGES:
        await tab.go("/simulator" + path)
        unfold = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
        await tab.page.evaluate(unfold)
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert await tab.page.evaluate(wide) is False, path


async def set_manual_review(console: ConsoleClient) -> None:
    await console.post("/simulator/review-delay", {"mode": "hand"})


async def create_template(console: ConsoleClient, name: str, *, content: str = "Hello {{1}}, it is ready.") -> None:
    await console.api.form(
        "POST", f"/partner/app/{console.app_id}/templates",
        {
            "elementName": name, "languageCode": "en", "category": "UTILITY", "templateType": "TEXT",
            "vertical": "orders", "content": f"{content} ({name})", "enableSample": "true",
            "example": f"{content.replace('{{1}}', 'Ann')} ({name})",
        },
    )  # fmt: skip
    for _ in range(100):
        if await list_templates(console, name):
            return
    raise AssertionError(f"{name} did not reach the operator")


async def list_templates(console: ConsoleClient, name: str) -> list[dict[str, object]]:
    return (await console.control.json("GET", f"/control/templates?name={name}"))["templates"]


async def get_template(console: ConsoleClient, name: str) -> dict[str, object]:
    [match] = await list_templates(console, name)
    return match


async def now_ms(console: ConsoleClient) -> int:
    return (await console.control.json("GET", "/control/clock"))["now_ms"]


def parse_form(page: str) -> dict[str, str]:
    """Return the fields that the form on the page would send unchanged."""
    fields: dict[str, str] = {}
    form = page[page.index('action="/simulator/rules"') :]
    for tag in re.findall(r"<input [^>]*>", form[: form.index("</form>")]):
        name = re.search(r' name="([^"]+)"', tag)
        value = re.search(r' value="([^"]*)"', tag)
        if name and name[1] != "csrf" and ("checkbox" not in tag or " checked" in tag):
            fields[name[1]] = value[1] if value else "on"
    for name, options in re.findall(r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', form, re.S):
        chosen = re.search(r'value="([^"]*)" selected', options)
        if chosen:
            fields[name] = chosen[1]
    return fields


async def test_template_rejected_at_creation_is_listed_beside_the_reviewed(console: ConsoleClient) -> None:
    fault = {"on": "call", "call": "templates.create", "what": {"error": 100}, "when": {"next": 1}}
    await console.control.json("POST", "/control/faults", {"faults": [fault]})
    form = {
        "elementName": "bakery_offer", "category": "MARKETING", "templateType": "TEXT", "vertical": "Shop",
        "content": "See what is new.", "example": "See what is new.",
    }  # fmt: skip
    await console.api.form("POST", f"/partner/app/{console.app_id}/templates", form)

    page = await poll_until(lambda: console.get("/simulator"), lambda page: "bakery_offer" in page)
    other = await console.get("/simulator?q=another")

    assert "Rejected at creation" in page
    assert "bakery_offer" not in other


async def test_time_to_advance_to_is_not_cut(tabs: Tabs) -> None:
    """Not even with seconds and AM or PM, as browsers in American English show it."""
    field = (await tabs("/simulator/clock")).page.locator("input[name=to]")

    assert await field.evaluate("(field) => field.scrollWidth <= field.clientWidth")
    width = await field.evaluate("(field) => field.getBoundingClientRect().width")
    assert width >= 17 * 15  # 17 rem


async def test_distant_times_are_counted(tabs: Tabs) -> None:
    """`in 1y` and not `next yr.`; only days have names."""
    page = (await tabs("/simulator/clock")).page
    relative = """async (path) => {
      const { now, relative } = await import(path);
      return [366, 31, 1, -1, -366].map((days) => relative(now() + days * 86_400_000 + Math.sign(days) * 60_000));
    }"""

    assert await page.evaluate(relative, Assets().url_path("js/times.js")) == [
        "in 1y",
        "in 1mo",
        "tomorrow",
        "yesterday",
        "1y ago",
    ]
