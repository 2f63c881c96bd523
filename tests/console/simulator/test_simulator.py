"""The simulator's pages: what a person decides there is what the operator does."""

import json
import re
from datetime import UTC, datetime

import aiohttp
import pytest

from tests.console.conftest import LOOP, Desk, Tabs
from waypost.assembly.dev import demo

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)

PAGES = ("", "/faults", "/faults/new/call/error", "/clock", "/fleets", "/snapshots", "/rules")


async def test_template_that_waits_is_approved_on_its_page(tabs: Tabs, desk: Desk) -> None:
    await by_hand(desk)
    tab = await tabs("/simulator")

    await create_template(desk, "order_update")
    card = tab.page.locator("#waiting article").filter(has_text="order_update")
    await card.get_by_role("button", name="Approve").click()

    await tab.page.locator("#others summary").filter(has_text="order_update").wait_for()
    await card.wait_for(state="detached")
    assert (await template(desk, "order_update"))["status"] == "APPROVED"


async def test_what_is_typed_into_a_rejection_stays_while_others_come(tabs: Tabs, desk: Desk) -> None:
    await by_hand(desk)
    await create_template(desk, "first")
    tab = await tabs("/simulator")
    await tab.page.get_by_text("Reject…").click()
    await tab.page.get_by_label("Explanation").fill("Too loud.")
    await tab.page.get_by_label("Recommendation").fill("Say it softly.")

    await create_template(desk, "second")
    await tab.page.locator("#waiting article").nth(1).wait_for()
    await tab.page.get_by_role("button", name="Reject", exact=True).first.click()

    await tab.page.locator("#others summary").filter(has_text="first").wait_for()
    found = await template(desk, "first")
    assert (found["status"], found["rejected_reason"]) == ("REJECTED", "INVALID_FORMAT")


async def test_pause_quality_category_and_pacing_are_told_to_the_operator(desk: Desk) -> None:
    one = await template(desk, "order_ready")
    base = f"/simulator/templates/{one['id']}"

    await desk.post(f"{base}/quality", {"score": "YELLOW"})
    await desk.post(f"{base}/category", {"category": "MARKETING", "when": "announced"})
    await desk.post(f"{base}/pace", {"for_s": "", "verdict": "drop"})
    held = await template(desk, "order_ready")
    await desk.post(f"{base}/release")
    await desk.post(f"{base}/pause")
    paused = await template(desk, "order_ready")

    assert (held["quality"], held["correct_category"], held["is_paced"]) == ("YELLOW", "MARKETING", True)
    assert (paused["status"], paused["is_paced"]) == ("PAUSED", False)


async def test_template_of_another_account_does_not_exist(desk: Desk) -> None:
    await desk.control.json(
        "PUT", "/control/accounts/1000000000000009",
        {"name": "Other", "token": "other", "app_id": "77", "app_secret": "s"},
    )  # fmt: skip
    async with (
        aiohttp.ClientSession() as http,
        http.post(
            f"{desk.running.graph_url}/v23.0/1000000000000009/message_templates",
            headers={"Authorization": "Bearer other"},
            json={
                "name": "not_yours", "language": "en_US", "category": "UTILITY",
                "components": [{"type": "BODY", "text": "Hello there"}],
            },
        ) as answer,
    ):  # fmt: skip
        other = await answer.json()

    page = await desk.get("/simulator")
    await desk.post(f"/simulator/templates/{other['id']}/disable", status=404)

    assert "not_yours" not in page
    assert (await template(desk, "not_yours"))["status"] != "DISABLED"


async def test_what_a_template_says_is_text_and_no_markup(desk: Desk) -> None:
    await by_hand(desk)
    await create_template(desk, "sly", content="<script>alert(1)</script> hello")

    page = await desk.get("/simulator")

    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page


async def test_ready_fault_is_armed_shown_everywhere_counts_and_goes(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/simulator/faults")

    recipe = tab.page.locator("article").filter(has_text="Every third message throttled")
    await recipe.get_by_role("button", name="Arm").click()
    await tab.page.get_by_text("1 fault armed").wait_for()
    for text in ("one", "two", "three"):
        await desk.send_text(text)
    await tab.page.locator("#armed .sim-counts").filter(has_text="fired 1 of").wait_for()
    await tab.page.locator("#armed").get_by_role("button", name="Disarm").click()

    await tab.page.locator("#armed-none").wait_for()
    assert (await desk.control.json("GET", "/control/faults"))["faults"] == []


async def test_every_ready_fault_can_be_armed_and_reads_as_a_sentence(desk: Desk) -> None:
    page = await desk.get("/simulator/faults")
    keys = set(re.findall(r'action="/simulator/faults/presets/([a-z-]+)"', page))

    for key in sorted(keys):
        await desk.post(f"/simulator/faults/presets/{key}")

    page = await desk.get("/simulator/faults")
    assert len(keys) >= 10
    assert "messages.send fails with error 130429 (Retry-After 1 s), once every 3 times." in page
    armed = (await desk.control.json("GET", "/control/faults"))["faults"]
    assert page.count('class="sim-fault') == len(armed)
    await desk.get(f"/simulator/faults/{armed[0]['id']}")
    await desk.post("/simulator/faults/disarm")
    assert (await desk.control.json("GET", "/control/faults"))["faults"] == []


async def test_every_kind_has_a_form_that_arms_it(desk: Desk) -> None:
    values = {"whole": "150", "choice": None, "true": None}
    kinds = (await desk.control.json("GET", "/control/faults/kinds"))["kinds"]

    for kind in kinds:
        await desk.get(f"/simulator/faults/new/{kind['on']}/{kind['name']}")
        value = kind["value"]
        choice = value.get("choices", [""])[0]
        least = str(min(value.get("at_most", 150), max(150, value.get("at_least", 0))))
        fields = {f"what.{value['name']}": choice or least} if value["type"] in values else {}
        await desk.post(
            f"/simulator/faults/new/{kind['on']}/{kind['name']}",
            {**fields, "when": "next", "when.next": "2", "for_s": "60", "label": "tried"},
        )

    armed = (await desk.control.json("GET", "/control/faults"))["faults"]
    assert len(armed) == len(kinds) == 14
    assert {one["label"] for one in armed} == {"tried"}
    assert all(one["when"] == {"next": 2} and one["until_ms"] for one in armed)


async def test_form_of_a_fault_says_which_field_is_wrong_and_keeps_what_was_typed(desk: Desk) -> None:
    body = {
        "csrf": await desk.csrf(), "what.error": "131016", "what.status": "200",
        "when": "next", "when.next": "2", "label": "kept",
    }  # fmt: skip
    async with desk.http.post(desk.base_url + "/simulator/faults/new/call/error", data=body) as answer:
        page = await answer.text()

    assert answer.status == 400
    assert "What.status: cannot be 200." in page
    assert re.search(r'id="f-status"[^>]*value="200"[^>]*aria-invalid="true"', page)
    assert 'value="kept"' in page
    assert (await desk.control.json("GET", "/control/faults"))["faults"] == []


async def test_pasted_scenario_is_armed_and_a_wrong_one_is_explained(desk: Desk) -> None:
    fault = {"on": "webhook", "what": {"drop": True}}

    await desk.post("/simulator/faults/json", {"json": json.dumps({"faults": [fault, fault]})})
    await desk.post("/simulator/faults/json", {"json": "{"}, status=403)
    await desk.post("/simulator/faults/json", {"json": '{"on": "moon"}'})
    page = await desk.get("/simulator/faults")

    assert len((await desk.control.json("GET", "/control/faults"))["faults"]) == 2
    assert "On: cannot be &#39;moon&#39;." in page


async def test_clock_is_moved_frozen_and_run_from_its_page(tabs: Tabs, desk: Desk) -> None:
    before_ms = await now_ms(desk)
    tab = await tabs("/simulator/clock")

    await tab.page.get_by_role("button", name="+1 day").click()
    await tab.page.get_by_text("24 h ahead of machine time").wait_for()
    await tab.page.get_by_role("button", name="Stop").click()
    await tab.page.locator("#shell-clock").get_by_text("clock stopped").wait_for()
    stood_ms = await now_ms(desk)
    await tab.page.get_by_role("button", name="Run").click()
    await tab.page.get_by_role("button", name="Stop").wait_for()

    assert 86_400_000 <= stood_ms - before_ms < 2 * 86_400_000
    assert (await desk.control.json("GET", "/control/clock"))["factor"] == 1


async def test_clock_goes_to_a_time_and_never_back(desk: Desk) -> None:
    to_ms = (await now_ms(desk) // 60_000 + 31 * 1440) * 60_000
    to, before = (
        datetime.fromtimestamp(one_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M") for one_ms in (to_ms, to_ms - 86_400_000)
    )
    await desk.post("/simulator/clock/advance", {"to": to})
    there_ms = await now_ms(desk)
    await desk.post("/simulator/clock/advance", {"to": before})
    page = await desk.get("/simulator/clock")
    await desk.post("/simulator/clock/advance", {"to": "yesterday"}, status=403)
    await desk.post("/simulator/clock/advance", {"by": "1.5", "unit": "hours"})
    await desk.post("/simulator/clock/run", {"factor": "60"})

    assert to_ms <= there_ms < to_ms + 86_400_000
    assert "a clock only goes forward" in page
    assert await now_ms(desk) - there_ms >= 5_400_000
    assert (await desk.control.json("GET", "/control/clock"))["factor"] == 60


async def test_clock_page_says_what_is_due_and_goes_there(desk: Desk) -> None:
    await desk.post("/simulator/review-delay", {"mode": "after", "after_s": "600"})
    await create_template(desk, "later")

    due = await desk.control.json("GET", "/control/clock/due")
    await desk.post("/simulator/clock/next")

    assert {one["name"] for one in due["sides"]} == {"the service", "the simulator"}
    assert (await template(desk, "later"))["status"] == "APPROVED"


async def test_fleet_is_made_counted_and_dropped(desk: Desk) -> None:
    fields = {
        "name": "crowd", "first": "15551000000", "count": "500", "script": "readers",
        "open_window_to": demo.SOURCE,
    }  # fmt: skip

    await desk.post("/simulator/fleets", fields)
    await desk.send_text("Hello", to="15551000007")
    page = await desk.get("/simulator/fleets/crowd")
    listed = await desk.get("/simulator/fleets")
    await desk.post("/simulator/fleets/crowd/drop")

    assert "500 phones" in page
    assert "crowd" in listed
    await desk.get("/simulator/fleets/crowd", status=404)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("steps", '[{"on": "message", "do": "dance"}]', "script[0].do"),
        ("steps", "[{", "The script is not valid JSON"),
        ("first", "12", "First: "),
        ("count", "many", "Count: "),
        ("open_window_to", "15559998877", "not one of your numbers"),
    ],
)
async def test_fleet_that_cannot_be_is_explained(desk: Desk, field: str, value: str, said: str) -> None:
    fields = {"name": "crowd", "first": "15551000000", "count": "5", "script": "own", "steps": "[]"}
    body = {"csrf": await desk.csrf(), **fields, field: value}

    async with desk.http.post(desk.base_url + "/simulator/fleets", data=body) as answer:
        page = await answer.text()

    assert answer.status == 400
    assert said.lower() in page.lower()
    assert (await desk.control.json("GET", "/control/fleets"))["fleets"] == []


async def test_snapshot_brings_everything_back_and_whoever_asked_stays_signed_in(tabs: Tabs, desk: Desk) -> None:
    tab = await tabs("/simulator/snapshots")
    other = await tabs(f"/apps/{desk.app_id}")
    tab.page.on("dialog", lambda dialog: dialog.accept())
    await tab.page.get_by_role("textbox", name="Name").fill("before")
    await tab.page.get_by_role("button", name="Save").click()
    await tab.page.get_by_text("Snapshot before saved.").wait_for()
    await desk.post("/simulator/faults/json", {"json": '{"on": "webhook", "what": {"drop": true}}'})
    await desk.post("/simulator/clock/advance", {"by": "2", "unit": "days"})

    await tab.page.get_by_role("button", name="Load").click()

    await tab.page.get_by_text("Snapshot before loaded.").wait_for()
    assert (await desk.control.json("GET", "/control/faults"))["faults"] == []
    assert (await desk.control.json("GET", "/control/clock"))["ahead_ms"] < 60_000
    await desk.send_text("Still live")
    await other.page.get_by_text("delivered").first.wait_for()


async def test_reset_goes_back_to_the_start_and_stays_signed_in(tabs: Tabs, desk: Desk) -> None:
    await create_template(desk, "soon_gone")
    await desk.post("/simulator/snapshots", {"name": "kept"})
    tab = await tabs("/simulator/snapshots")
    questions: list[str] = []

    async def agree(dialog: object) -> None:
        questions.append(dialog.message)  # type: ignore[attr-defined]
        await dialog.accept()  # type: ignore[attr-defined]

    tab.page.on("dialog", agree)
    await tab.page.get_by_role("button", name="Reset everything").click()

    await tab.page.get_by_text("Reset to the initial state.").wait_for()
    assert "are deleted" in questions[0]
    assert await tab.page.get_by_text("kept", exact=True).count() == 1
    found = await desk.control.json("GET", "/control/templates")
    assert "soon_gone" not in {one["name"] for one in found["templates"]}
    await desk.get("/simulator/faults")


async def test_snapshot_can_be_downloaded_and_deleted_and_is_not_replaced_by_mistake(desk: Desk) -> None:
    await desk.post("/simulator/snapshots", {"name": "mine"})
    await desk.post("/simulator/snapshots", {"name": "mine"})
    told = await desk.get("/simulator/snapshots")
    await desk.post("/simulator/snapshots", {"name": "no good name"})
    also_told = await desk.get("/simulator/snapshots")
    async with desk.http.get(desk.base_url + "/simulator/snapshots/mine/content") as answer:
        content = await answer.read()
        named = answer.headers["Content-Disposition"]
    await desk.post("/simulator/snapshots/mine/drop")

    assert "A snapshot named mine already exists." in told
    assert "notice-bad" in also_told
    assert content[:2] == b"PK"
    assert named == 'attachment; filename="mine.waypost"'
    await desk.get("/simulator/snapshots/mine/content", status=404)
    await desk.post("/simulator/snapshots/mine/load")
    assert "There is no snapshot" in (await desk.get("/simulator/snapshots")).replace("Name: t", "T")


async def test_rules_are_shown_changed_and_explained(desk: Desk) -> None:
    page = await desk.get("/simulator/rules")
    form = fields_of(page)
    settings = await desk.control.json("GET", "/control/settings")

    changed = {**form, "read_after_ms": "1.5", "strict": "on", "marketing_words": "sale\noffer"}
    await desk.post("/simulator/rules", changed)
    told = await desk.get("/simulator/rules")
    body = {"csrf": await desk.csrf(), **form, "templates_at_most": "0"}
    async with desk.http.post(desk.base_url + "/simulator/rules", data=body) as answer:
        refused = await answer.text()

    assert "Changed: Marketing words, Strict template rules, Read after." in told
    now = await desk.control.json("GET", "/control/settings")
    assert now == {
        **settings, "read_after_ms": 1500, "strict": True, "marketing_words": ["sale", "offer"]
    }  # fmt: skip
    assert answer.status == 400
    assert "Templates per account" in refused


async def test_no_page_scrolls_sideways_on_a_phone(tabs: Tabs, desk: Desk) -> None:
    await by_hand(desk)
    await create_template(desk, "order_update")
    await desk.post("/simulator/faults/presets/bad-day")
    tab = await tabs("/simulator", width=360, height=740)

    for path in PAGES:
        await tab.go("/simulator" + path)
        unfold = "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
        await tab.page.evaluate(unfold)
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert await tab.page.evaluate(wide) is False, path


async def by_hand(desk: Desk) -> None:
    await desk.post("/simulator/review-delay", {"mode": "hand"})


async def create_template(desk: Desk, name: str, *, content: str = "Hello {{1}}, it is ready.") -> None:
    await desk.api.form(
        "POST", f"/partner/app/{desk.app_id}/templates",
        {
            "elementName": name, "languageCode": "en", "category": "UTILITY", "templateType": "TEXT",
            "vertical": "orders", "content": f"{content} ({name})", "enableSample": "true",
            "example": f"{content.replace('{{1}}', 'Ann')} ({name})",
        },
    )  # fmt: skip
    for _ in range(100):
        if await find_template(desk, name):
            return
    raise AssertionError(f"{name} has not come to the operator")


async def find_template(desk: Desk, name: str) -> list[dict[str, object]]:
    return (await desk.control.json("GET", f"/control/templates?name={name}"))["templates"]


async def template(desk: Desk, name: str) -> dict[str, object]:
    [found] = await find_template(desk, name)
    return found


async def now_ms(desk: Desk) -> int:
    return (await desk.control.json("GET", "/control/clock"))["now_ms"]


def fields_of(page: str) -> dict[str, str]:
    """What the form on the page would send as it is."""
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
