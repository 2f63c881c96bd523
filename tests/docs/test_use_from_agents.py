"""The recorded sessions of the page about the tools for agents: three tasks, each call made again by an MCP client.

`waypost mcp` runs over stdio beside a `waypost dev`. `RECORD_SESSION=1 pytest tests/docs/test_use_from_agents.py` writes
what the tools return now into the page.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from tests.docs.repository import ROOT
from tests.support.polling import HANGS_AFTER_S
from waypost.cli.mcp.tools import TOOLS

PAGE: Final = ROOT / "docs" / "how-to" / "use-from-agents.md"
SESSION: Final = re.compile(r"(?<=```text\n)(.*?)(?=```)", re.DOTALL)
MAX_CHARS: Final = 118

Results = dict[str, Any]
"""What earlier calls of a task returned, by the name under which a later one refers to it."""


class ToolCall(NamedTuple):
    """One call of a task.

    Attributes:
        tool: its name.
        arguments: of it; `$name.member` is a member of what an earlier call returned.
        keep: the name under which its result is kept.
        members: of the result that the page shows; none: all, or the text that the tool returns.
    """

    tool: str
    arguments: dict[str, Any]
    keep: str = ""
    members: tuple[str, ...] = ()


# fmt: off
TASKS: Final[tuple[tuple[ToolCall, ...], ...]] = (
    (  # a customer taps a button, and the application gets the callback
        ToolCall("send",              {"template": "order_ready", "params": ["Ann", "4711"]}, "sent"),
        ToolCall("wait_for_message",  {"message_id": "$sent.message_id"}, members=("id", "state", "destination")),
        ToolCall("tap",               {"index": 0}, members=("button",)),
        ToolCall("wait_for_callback", {"event": "quick_reply"}, members=("event", "delivered", "body")),
    ),
    (  # why a call is not accepted, and what would be
        ToolCall("send",            {"text": "Hello", "to": "12"}),
        ToolCall("list_requests",   {"status": "4xx", "limit": 1}, "log", members=("requests.status", "requests.route", "requests.field", "requests.request_id")),
        ToolCall("explain_request", {"request_id": "$log.requests.0.request_id"}, members=("status", "message", "explanation", "field", "accepted", "request")),
        ToolCall("send",            {"text": "Hello", "too": "15550002001"}),
    ),
    (  # what happens after 24 hours, and when the operator cannot deliver
        ToolCall("trigger",          {"event": "text", "changes": {"text": "Where is my order?"}}, members=("event",)),
        ToolCall("advance_clock",    {"hours": 25}),
        ToolCall("send",             {"text": "It is on its way."}, "late"),
        ToolCall("wait_for_message", {"message_id": "$late.message_id"}),
        ToolCall("arm_fault",        {"on": "call", "call": "messages.send", "when": {"next": 1}, "what": {"fail": 131026}}, members=("faults.id", "faults.what")),
        ToolCall("send",             {"template": "order_ready", "params": ["Ann", "4711"]}, "failing"),
        ToolCall("wait_for_message", {"message_id": "$failing.message_id", "state": "read"}),
        ToolCall("wait_for_callback", {"event": "failed", "message_id": "$failing.message_id"}, members=("event", "delivered")),
        ToolCall("explain_message",  {"message_id": "$failing.message_id"}),
        ToolCall("disarm_faults",    {}),
    ),
)
VARYING: Final = (  # what differs each time
    #           pattern                                                            shown as
    (re.compile(r"01a[0-9a-f]{5}-?[0-9a-f]{4}-?7[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}"), "ID"),
    (re.compile(r"wamid\.[A-Za-z0-9+/=]+"),                                        "WAMID"),
    (re.compile(r"\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"),                     "TIME"),
    (re.compile(r"\b1[789]\d{11}\b"),                                              "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"),                                              "HOST"),
    (re.compile(r"[0-9]+ (stops)\b"),                                           r"N \1"),
    (re.compile(r"\d+ ms"),                                                        "N ms"),
    (re.compile(r"\s+"),                                                           " "),
)
# fmt: on


async def test_recorded_tasks_are_what_the_tools_return(running: Path) -> None:
    listener = start_listener(running)
    try:
        async with connect(running) as client:
            sessions = [await run_task(client, task) for task in TASKS]
    finally:
        os.kill(listener, signal.SIGTERM)
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("RECORD_SESSION"):
        texts = iter(sessions)
        PAGE.write_text(SESSION.sub(lambda _: next(texts), page), encoding="utf-8")
        return
    recorded = SESSION.findall(page)

    assert [normalise(session) for session in sessions] == [normalise(session) for session in recorded]


async def test_page_names_every_tool(running: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    async with connect(running) as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}

    assert list(offered) == list(TOOLS)
    assert [name for name in offered if f"| `{name}` |" not in page] == []
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in offered.values())


def connect(folder: Path) -> Client:
    """Return a client of a `waypost mcp` that it starts."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return Client(StdioServerParameters(command="waypost", args=["mcp"], cwd=folder, env=environment))


def start_listener(folder: Path) -> int:
    """Start `waypost listen` as the application that gets callbacks; return its process id."""
    command = [sys.executable, "-m", "waypost", "listen", "--background"]
    with (folder / "callbacks.txt").open("w+", encoding="utf-8") as file:  # a pipe stays open with the listener
        subprocess.run(command, cwd=folder, stdout=file, stderr=file, check=True, timeout=HANGS_AFTER_S)
        file.seek(0)
        started = re.search(r"kill (\d+)", file.read())
    assert started is not None
    return int(started[1])


async def run_task(client: Client, task: tuple[ToolCall, ...]) -> str:
    """Make the calls of a task; return them and their results as the page shows them."""
    got: Results = {}
    shown = ""
    for call in task:
        arguments = {name: fill(value, got) for name, value in call.arguments.items()}
        async with asyncio.timeout(HANGS_AFTER_S):
            result = await client.call_tool(call.tool, arguments)
        if call.keep:
            got[call.keep] = result.structured_content
        shown += f"> {call.tool} {json.dumps(arguments)}\n{format_result(result, call.members)}\n"
    return shown


def fill(value: Any, got: Results) -> Any:
    """Return an argument, or the member of an earlier result that it names."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    found: Any = got
    for part in value[1:].split("."):
        found = found[int(part) if part.isdecimal() else part]
    return found


def format_result(result: CallToolResult, members: tuple[str, ...]) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    if result.is_error:
        return f"error: {content.text}"
    if not members:
        is_json = content.text.startswith("{")
        return format_value(result.structured_content) if is_json else content.text
    return format_value(select(result.structured_content, members))


def select(value: Any, members: tuple[str, ...]) -> Any:
    """Return these members of an object; `a.b` are members of the objects in a list."""
    chosen: dict[str, Any] = {}
    for name in members:
        outer, _, inner = name.partition(".")
        if not inner:
            chosen[name] = value[name]
            continue
        rows = chosen.setdefault(outer, [{} for _ in value[outer]])
        for row, source in zip(rows, value[outer], strict=True):
            row[inner] = source[inner]
    return chosen


def format_value(value: Any) -> str:
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= MAX_CHARS else json.dumps(value, ensure_ascii=False, indent=2)


def normalise(session: str) -> str:
    """Return a session without what differs each time."""
    for pattern, shown in VARYING:
        session = pattern.sub(shown, session)
    return session
