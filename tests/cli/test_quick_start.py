"""The commands of the quick start: a template is created, awaited, sent and tapped, without JSON by hand."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from tests.support.builders import is_event
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.cli.command_tree import app as commands

TEXT: Final = "Hi {{1}}, your parcel is ready. Shall we bring it today?"


@pytest.fixture
async def waypost(env_file: Path) -> Any:
    """Return a function that runs a command with the pipeline's variables, and returns its JSON."""

    async def run(*arguments: str, exit_code: int = 0) -> Any:
        command = [*arguments, "--env-file", str(env_file), "--json"]
        result: Result = await asyncio.to_thread(CliRunner().invoke, commands, command)
        assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout) if exit_code == 0 else result.stderr

    return run


async def test_template_is_created_awaited_sent_and_tapped_twice_over(pipeline: PipelineHarness, waypost: Any) -> None:
    create = ("create", "parcel", TEXT, "--example", "Ann", "--button", "Yes please", "--button", "Another day")
    for _ in range(2):  # the quick start may be pasted twice
        await waypost("template", *create, "--if-missing")
        assert (await waypost("template", "wait", "parcel"))["status"] == "APPROVED"
        postbacks = ("--postback", "bring-today", "--postback", "another-day")
        sent = await waypost("send", "--template", "parcel", "--param", "Ann", *postbacks)
        tapped = await waypost("tap", "Another day", "--message", sent["message_id"])

        callback = await pipeline.wait_for_callback(is_event("message", id=tapped["wamid"]))
        assert callback["payload"]["payload"]["postbackText"] == "another-day"
        assert callback["payload"]["context"]["gsId"] == sent["message_id"]

    rows = (await waypost("template", "list", "--status", "APPROVED"))["templates"]
    assert [row["elementName"] for row in rows].count("parcel") == 1


async def test_template_of_a_file_has_every_field(waypost: Any, tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    fields = {"elementName": "visit", "languageCode": "de", "category": "UTILITY", "templateType": "TEXT"}
    buttons = [{"type": "URL", "text": "Open", "url": "https://shop.example/visit"}]
    file.write_text(
        json.dumps({**fields, "vertical": "Orders", "content": "Bis bald.", "example": "Bis bald.", "buttons": buttons})
    )

    created = await waypost("template", "create", "--file", str(file))

    assert json.loads(created["containerMeta"])["buttons"][0]["url"] == "https://shop.example/visit"
    assert (created["languageCode"], created["vertical"]) == ("de", "Orders")


# fmt: off
ERRORS: Final = (
    # command                                                          exit   text
    (("template", "create", "x", TEXT),                                1, "the text has 1 parameters, and 0 examples; accepted: one for each of {{1}}"),
    (("template", "create", "x", "Hello", "--example", "Ann"),         1, "the text has 0 parameters, and 1 examples; accepted: none"),
    (("template", "create", "x"),                                      2, "give a name and a text, or --file, as in `waypost template create"),
    (("template", "create", "x", "Hello", "--file", "f"),              2, "give a name and a text, or --file"),
    (("template", "create", "--file", "nosuch.json"),                  2, "--file nosuch.json cannot be read: No such file or directory"),
    (("template", "create", "X Y", "Hello"),                           1, "elementName"),
    (("template", "list", "--status", "NOPE"), 1, "there is no status NOPE of a template; accepted: PENDING, APPROVED,"),
    (("template", "wait", "nosuch"),                                   1, "the app has no template with the name or id 'nosuch'; accepted: greeting"),
    (("send", "--template", "nosuch"),                                 1, "the app has no template with the name or id 'nosuch'; accepted: greeting"),
    (("send", "Hello", "--postback", "x"),                             2, "--postback needs --template"),
    (("tap",),                                                         2, "give the text of a button or --index, as in `waypost tap 'Yes please'`"),
    (("tap", "Yes", "--index", "0"),                                   2, "give the text of a button or --index"),
    (("tap", "--index", "-1"),                                         2, "'--index'"),
    (("tap", "Yes", "--wait", "0"),                                    1, "no message with what this needs, such as a button, has arrived on this phone"),
    (("tap", "Yes", "--message", "nosuch"),                            1, "There is no message nosuch"),
)
# fmt: on


@pytest.mark.parametrize(("command", "exit_code", "text"), ERRORS, ids=[" ".join(row[0]) for row in ERRORS])
async def test_error_names_the_rule_and_what_is_accepted(
    waypost: Any, command: tuple[str, ...], exit_code: int, text: str
) -> None:
    assert text in await waypost(*command, exit_code=exit_code)


async def test_rejected_template_ends_the_wait_with_the_reason(
    pipeline: PipelineHarness, waypost: Any, env_file: Path
) -> None:
    await pipeline.control("PUT", "settings", {"review_delay_ms": None})
    created = await waypost("template", "create", "parcel", "Hello")
    pending = await waypost("template", "wait", created["id"], "--timeout", "0", exit_code=1)

    async def submitted() -> list[Any]:
        templates = (await pipeline.control("GET", "templates"))["templates"]
        return [template["id"] for template in templates if template["name"] == "parcel"]

    [operator_id] = await poll_until(submitted)
    await pipeline.control("POST", f"templates/{operator_id}/reject", {"reason": "INVALID_FORMAT"})

    async def is_rejected() -> bool:
        return (await waypost("template", "list", "--status", "REJECTED"))["templates"] != []

    await poll_until(is_rejected)

    command = ["template", "list", "--env-file", str(env_file)]
    listed = (await asyncio.to_thread(CliRunner().invoke, commands, command)).stdout.splitlines()
    assert listed[0].split() == ["NAME", "STATUS", "CATEGORY", "TYPE", "LANGUAGE", "REASON", "ID"]
    assert len(listed) == 3  # one has no reason
    assert "the template parcel is PENDING after 0 s; accepted: a longer time" in pending
    assert "the template parcel is REJECTED: " in await waypost("template", "wait", "parcel", exit_code=1)


async def test_existing_template_with_another_text_is_an_error(waypost: Any) -> None:
    await waypost("template", "create", "parcel", "Hello")

    error = await waypost("template", "create", "parcel", "Good day", "--if-missing", exit_code=1)

    assert "the template parcel exists with the text 'Hello'; accepted: another name, or the same text" in error
