"""`waypost mcp`: the tools with both ends of the pipeline, their errors, and a missing extra."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from tests.support.builders import ANN, APP
from tests.support.pipeline import PipelineHarness
from waypost.cli.mcp.connection import ServiceConnection, ToolError
from waypost.cli.mcp.server import INSTRUCTIONS, UNTRUSTED, input_schema, read_arguments, run_tool
from waypost.cli.mcp.tools import TOOLS
from waypost.config import Settings

NOWHERE: Final = "http://127.0.0.1:9"


@pytest.fixture
def connection(env_file: Path) -> ServiceConnection:
    return ServiceConnection(Settings(), env_file)


async def call(connection: ServiceConnection, tool: str, **arguments: Any) -> Any:
    return (await run_tool(connection, tool, arguments)).structured_content


async def fail(connection: ServiceConnection, tool: str, **arguments: Any) -> Mapping[str, Any]:
    """Return the members of a tool's error."""
    with pytest.raises(ToolError) as error:
        await run_tool(connection, tool, arguments)
    assert str(error.value)
    return error.value.members


async def test_tapped_button_is_waited_for(pipeline: PipelineHarness, connection: ServiceConnection) -> None:
    template_id = connection.variables("TEMPLATE_ID")["TEMPLATE_ID"]

    sent = await call(connection, "send", template=template_id, params=["Ann"])
    reached = await call(connection, "wait_for_message", message_id=sent["message_id"])
    caused = await call(connection, "trigger", event="text", changes={"text": "Hi"})
    callback = await call(connection, "wait_for_callback", event="text")
    trace = await run_tool(connection, "explain_message", {"message_id": sent["message_id"]})

    assert "never instructions" in INSTRUCTIONS
    assert (trace.meta or {}) == UNTRUSTED
    assert trace.model_dump(by_alias=True)["_meta"] == UNTRUSTED
    assert sent["to"] == ANN
    assert reached["state"] in ("delivered", "read")
    assert caused["event"] == "text"
    assert callback["delivered"] is True
    [content] = trace.content
    assert isinstance(content, TextContent)
    assert content.text.startswith(f"message {sent['message_id']}: ")
    await pipeline.events_of(sent["message_id"], until="delivered")


async def test_rejected_send_is_explained_by_the_request_log(connection: ServiceConnection) -> None:
    error = await fail(connection, "send", text="Hello", to="12")
    entry = await call(connection, "explain_request", request_id=error["request_id"])
    listed = await call(connection, "list_requests", status="4xx")

    assert (error["field"], error["status"]) == ("destination", 400)
    assert "8 to 15 digits" in error["accepted"]
    assert (entry["field"], entry["accepted"]) == (error["field"], error["accepted"])
    assert [row["id"] for row in listed["requests"]] == [entry["id"]]


async def test_failed_message_is_an_error_with_the_operators_reason(
    pipeline: PipelineHarness, connection: ServiceConnection
) -> None:
    await pipeline.open_window()
    fault = {"on": "call", "call": "messages.send", "what": {"fail": 131026}}
    armed = await call(connection, "arm_fault", **fault)
    sent = await call(connection, "send", text="Hello")
    error = await fail(connection, "wait_for_message", message_id=sent["message_id"])
    failed = await call(connection, "wait_for_message", message_id=sent["message_id"], state="failed")
    disarmed = await call(connection, "disarm_faults")

    assert "131026" in error["rule"] or str(failed["code"]) in error["rule"]
    assert failed["state"] == "failed"
    assert disarmed["disarmed"] == [fault["id"] for fault in armed["faults"]]


# fmt: off
WRONG: Final[tuple[tuple[str, dict[str, Any], str, str], ...]] = (
    # tool                 arguments                                            field          accepted has
    ("tup",               {},                                                   "name",        "tap"),
    ("send",              {},                                                   "text",        "one of text, template and message"),
    ("send",              {"text": "a", "template": "b"},                       "text and template", "one of"),
    ("send",              {"test": "a"},                                        "test",        "text, template"),
    ("send",              {"text": 7},                                          "text",        "a text"),
    ("send",              {"template": "x", "params": ["a", 1]},                "params[1]",   "a text"),
    ("tap",               {},                                                   "text",        "one of text and index"),
    ("tap",               {"index": 90, "wait_s": 0},                           "",            ""),
    ("trigger",           {"event": "delivred"},                                "event",       "delivered"),
    ("wait_for_message",  {},                                                   "message_id",  "an id such as 01a2"),
    ("wait_for_message",  {"message_id": "x", "state": "gone"},                 "state",       "enqueued, sent, delivered, read or failed"),
    ("wait_for_message",  {"message_id": "x", "timeout_s": 1000},               "timeout_s",   "0 to 300"),
    ("wait_for_message",  {"message_id": "none"},                               "message_id",  ""),
    ("wait_for_callback", {"event": "delivered", "timeout_s": 0},               "event",       "status-update"),
    ("advance_clock",     {},                                                   "hours",       "at least one"),
    ("advance_clock",     {"hours": -1},                                        "hours",       "whole number"),
    ("arm_fault",         {"on": "call", "what": {"explode": True}},            "what",        "error"),
    ("arm_fault",         {"on": "call", "call": "messages.sent", "what": {"fail": 131026}}, "call", "messages.send"),
    ("explain_message",   {"message_id": "none"},                               "message_id",  ""),
    ("list_requests",     {"status": "40"},                                     "status",      "or one status such as 404"),
    ("list_templates",    {"status": "approved"},                               "status",      "PENDING, APPROVED, REJECTED"),
    ("explain_request",   {"request_id": "none"},                               "request_id",  ""),
    ("list_requests",     {"limit": 0},                                         "limit",       "1 to 100"),
)
# fmt: on


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "accepted"), WRONG, ids=[f"{row[0]} {json.dumps(row[1])}" for row in WRONG]
)
async def test_error_names_the_field_and_what_is_accepted(
    pipeline: PipelineHarness, connection: ServiceConnection, tool: str, arguments: Any, field: str, accepted: str
) -> None:
    del pipeline
    error = await fail(connection, tool, **arguments)

    assert error["rule"]
    assert not field or error["field"] == field
    assert accepted in error["accepted"]


async def test_without_a_service_the_error_says_what_to_start(tmp_path: Path) -> None:
    nothing = ServiceConnection(Settings(), tmp_path / "none.env")
    env = tmp_path / "stopped.env"
    env.write_text(f"ADMIN_URL={NOWHERE}/admin\nADMIN_TOKEN=t\nCONTROL_URL={NOWHERE}/control\n")

    missing = await fail(nothing, "list_requests")
    stopped = await fail(ServiceConnection(Settings(), env), "list_requests")

    assert "start `waypost dev`" in missing["rule"]
    assert "start `waypost dev`" in stopped["hint"]


@pytest.mark.parametrize("name", TOOLS)
def test_error_about_an_argument_says_which_values_are_accepted(name: str) -> None:
    """Values, or one after `such as`; the description of the argument is in the schema."""
    arguments_type = TOOLS[name].arguments_type
    for argument, schema in input_schema(arguments_type)["properties"].items():
        is_number = "integer" in json.dumps(schema)
        with pytest.raises(ToolError) as error:
            read_arguments({argument: "x" if is_number else 7.5}, arguments_type)

        accepted = error.value.members["accepted"]
        assert error.value.members["field"] == argument
        assert accepted
        assert accepted not in ("a text", "an object", "a list of any number")
        assert "description" not in accepted.lower()


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_is_described(name: str) -> None:
    schema = input_schema(TOOLS[name].arguments_type)

    assert schema["additionalProperties"] is False
    for argument, described in schema["properties"].items():
        assert any("description" in branch for branch in [described, *described.get("anyOf", ())]), argument


def test_missing_extra_is_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('No module named mcp', name='mcp')\n")
    command = "import sys; sys.path.insert(0, sys.argv.pop()); from waypost.cli.main import main; main()"

    result = subprocess.run(
        [sys.executable, "-c", command, "mcp", str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert f"{sys.executable} -m pip install 'mcp>=" in result.stderr
    assert result.stdout == ""


async def test_agent_does_the_quick_start_alone(pipeline: PipelineHarness, env_file: Path) -> None:
    """The real server over standard input and output; nothing but its tools is used."""
    await pipeline.unsubscribe("all")
    command = StdioServerParameters(command=sys.executable, args=["-m", "waypost", "mcp", "--env-file", str(env_file)])

    async with Client(command) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            return result.structured_content

        deaf = await call("wait_for_callback", event="quick_reply")
        await call("subscribe")
        template = await call(
            "create_template",
            name="parcel",
            text="Hi {{1}}, is today fine?",
            examples=["Ann"],
            buttons=["Yes please", "Another day"],
        )
        approved = await call("wait_for_template", template="parcel")
        listed = await call("list_templates", status="APPROVED")
        sent = await call("send", template="parcel", params=["Ann"], postbacks=["today", "later"])
        await call("tap", text="Another day", message_id=sent["message_id"])
        callback = await call("wait_for_callback", event="quick_reply")
        subscriptions = await subscription_count(pipeline)

    assert deaf["error"]["rule"] == "the app has no active callback subscription, so no callback will come"
    assert "call subscribe first" in deaf["error"]["hint"]
    assert approved["id"] == template["id"]
    assert "parcel" in {row["elementName"] for row in listed["templates"]}
    assert callback["event"] == "quick_reply"
    assert callback["body"]["payload"]["context"]["gsId"] == sent["message_id"]
    assert callback["body"]["payload"]["payload"]["postbackText"] == "(5 characters)"  # text is hidden here: later
    assert subscriptions == 1
    assert await subscription_count(pipeline) == 0


async def subscription_count(pipeline: PipelineHarness) -> int:
    headers = {"Authorization": pipeline.app_token}
    response = await pipeline.send_request("GET", f"/partner/app/{APP.id}/subscription", headers=headers)
    return len(response.body["subscriptions"])
