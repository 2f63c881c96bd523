"""The export of one person's data, from a store with the traffic of two."""

import asyncio
import base64
import hashlib
import json
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Boolean, Connection, Integer, LargeBinary, Table, delete, func, insert, select
from typer.testing import CliRunner, Result

from tests.support.builders import ANN, APP
from tests.support.callback_sink import respond_always, respond_in_turn
from tests.support.media_samples import sample
from tests.support.operator_webhook import post_body
from tests.support.pipeline import ADMIN_TOKEN, API_KEY, PipelineHarness
from tests.support.polling import poll_until
from waypost.admin import personal_data as admin_erasure
from waypost.cli.command_tree import app
from waypost.store.encoding import CALLBACK_BODIES, REQUESTS
from waypost.store.queue.job_subjects import QueueName
from waypost.store.retention import erasure as store_erasure
from waypost.store.retention import export
from waypost.store.retention.columns import PERSONAL_COLUMNS
from waypost.store.tables import callbacks, metadata, queue_jobs

BOB: Final = "4915123456702"
EVE: Final = "4917699987123"
NUMBER, WHATSAPP_ID = "5593987654321", "559387654321"


async def run_export(pipeline: PipelineHarness, *arguments: str) -> Result:
    """Run `waypost recipient export` against the running service."""
    env = {"WAYPOST_ADMIN_URL": pipeline.service_url, "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN}
    return await asyncio.to_thread(CliRunner(env=env).invoke, app, ["recipient", "export", *arguments])


async def exchange(pipeline: PipelineHarness, phone: str, name: str) -> None:
    """Let a person write, send an answer, and wait until its callbacks are delivered."""
    await pipeline.control("PUT", f"phones/{phone}", {"name": f"Name of {name}"})
    await pipeline.open_window(phone)
    await pipeline.reply(phone, f"question from {name}")
    message_id = await pipeline.send_text(f"answer to {name}", to=phone)
    await pipeline.events_of(message_id, until="delivered")


async def test_export_has_everything_of_one_person_and_nothing_of_another(
    pipeline: PipelineHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MAX_WINDOW_ROWS", 2)
    monkeypatch.setattr(export, "MAX_PAGE_RECORDS", 1)
    await exchange(pipeline, ANN, "ann")
    await exchange(pipeline, BOB, "bob")

    printed = await run_export(pipeline, f"+{ANN[:2]} ({ANN[2:5]}) {ANN[5:]}")
    output = tmp_path / "bob.ndjson"
    written = await run_export(pipeline, BOB, "--output", str(output))

    assert (printed.exit_code, written.exit_code) == (0, 0), printed.output + written.output
    for lines, own, other, other_number in (
        (printed.stdout.splitlines(), "ann", "bob", BOB),
        (output.read_text(encoding="utf-8").splitlines(), "bob", "ann", ANN),
    ):
        records = [json.loads(line) for line in lines]
        assert {record["record"] for record in records} >= {"recipient", "message", "inbound_message", "callback"}
        identities = [json.dumps(record, sort_keys=True) for record in records]
        assert len(set(identities)) == len(identities)
        text = "\n".join(lines)
        for expected in (f"question from {own}", f"answer to {own}", f"Name of {own}"):
            assert expected in text
        for foreign in (f"question from {other}", f"answer to {other}", f"Name of {other}", other_number):
            assert foreign not in text


async def test_message_that_no_recipient_is_known_for_yet_is_exported(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    await pipeline.close_operator()
    message_id = await pipeline.send_text("still in the queue")
    await poll_until(pipeline.submission_attempts)

    result = await run_export(pipeline, ANN)

    messages = [json.loads(line) for line in result.stdout.splitlines() if '"record": "message"' in line]
    assert [message["id"] for message in messages if "still in the queue" in json.dumps(message)] == [message_id]


async def test_wrong_number_position_and_file_are_rejected(pipeline: PipelineHarness, tmp_path: Path) -> None:
    existing = tmp_path / "existing"
    existing.write_text("mine", encoding="utf-8")

    number = await run_export(pipeline, "12")
    file = await run_export(pipeline, ANN, "--output", str(existing))
    failed = await run_export(pipeline, "12", "--output", str(tmp_path / "new"))
    response = await pipeline.http.post(
        f"{pipeline.service_url}/admin/recipients/export",
        json={"number": ANN, "position": "nothing:1"},
        headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
    )

    assert number.exit_code == 1
    assert "number must be a phone number of 8 to 15 digits" in number.output
    assert file.exit_code == 1
    assert existing.read_text(encoding="utf-8") == "mine"
    assert failed.exit_code == 1
    assert not (tmp_path / "new").exists()
    assert response.status == 400
    assert "position must be the value of next" in await response.text()


async def run_erase(pipeline: PipelineHarness, *arguments: str) -> Result:
    """Run `waypost recipient erase` against the running service."""
    env = {"WAYPOST_ADMIN_URL": pipeline.service_url, "WAYPOST_ADMIN_TOKEN": ADMIN_TOKEN}
    return await asyncio.to_thread(CliRunner(env=env).invoke, app, ["recipient", "erase", *arguments])


def contents_of(connection: Connection) -> bytes:
    """Return every text and binary value of the store, compressed ones as they were before and secrets left out."""
    values: list[bytes] = []
    for table in metadata.sorted_tables:
        for row in connection.execute(select(table)):
            for value in row:
                if isinstance(value, str):
                    values.append(value.encode())
                elif isinstance(value, bytes):
                    stored = value
                    values += [stored, *map(decompressed, [stored] * 3, DECOMPRESSORS)]
    return b"\n".join(values)


def decompressed(stored: bytes, decompress: Callable[[bytes], bytes]) -> bytes:
    try:
        return decompress(stored)
    except zlib.error:
        return b""


DECOMPRESSORS: Final = (zlib.decompress, CALLBACK_BODIES.decompress, REQUESTS.decompress)


def files_of(pipeline: PipelineHarness, connection: Connection) -> bytes:
    """Return the bytes of every file of the store and of its media; those of PostgreSQL without its log."""
    folders = [pipeline.folder]
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("CHECKPOINT")  # what is in its memory only would not be found
        place = connection.exec_driver_sql(
            "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
        ).one()
        folders.append(Path(place[0]) / "base" / str(place[1]))
    paths = [path for folder in folders for path in folder.rglob("*") if "simulator.db" not in str(path)]
    return b"\n".join(path.read_bytes() for path in paths if path.is_file())


def dialect_of(connection: Connection) -> str:
    return connection.dialect.name


def forms_of(number: str, name: str) -> list[bytes]:
    """Return the forms in which a person may be found: number, name, texts, and ids that encode the number."""
    encoded = [base64.b64encode(b"x" * shift + number.encode())[4 if shift else 0 : -4] for shift in range(3)]
    return [number.encode(), name.encode(), *encoded]


def picture_of(name: str) -> bytes:
    """Return a picture that no other person sends."""
    return sample("png") + name.encode()


async def send_picture(pipeline: PipelineHarness, phone: str, content: bytes) -> None:
    """Send a picture from a phone, and wait until the service has stored it."""
    picture = {"content": base64.b64encode(content).decode(), "mime_type": "image/png", "file_name": "picture.png"}
    body = {"to": APP.phone_number, "type": "image", "media": picture}
    await pipeline.control("POST", f"phones/{phone}/messages", body)
    stored = pipeline.folder / "media" / hashlib.sha256(content).hexdigest()

    async def is_stored() -> bool:
        return stored.exists()

    await poll_until(is_stored)


async def exchange_everything(pipeline: PipelineHarness, phone: str, name: str) -> None:
    """Leave traces of a person wherever the service stores any."""
    await exchange(pipeline, phone, name)
    await send_picture(pipeline, phone, picture_of(name))
    headers = {"Authorization": pipeline.app_token, "Idempotency-Key": f"order for {phone}"}
    text = {"to": phone, "type": "text", "text": json.dumps({"body": f"passthrough to {name}"})}
    sent = await pipeline.send_request("POST", f"/partner/app/{APP.id}/v3/message", text, headers)
    assert sent.status == 200, sent
    await pipeline.events_of(sent.body["messages"][0]["id"], until="delivered")
    # A failed delivery leaves an attempt of its own.
    pipeline.sink.choose_status = respond_in_turn(500, 200)
    pipeline.sink.choose_headers = lambda _: {"X-Echo": name}
    await pipeline.reply(phone, f"again from {name}")
    pipeline.sink.choose_status = respond_always(200)
    await wait_until_idle(pipeline)
    pipeline.sink.choose_headers = lambda _: {}


def count_open(connection: Connection) -> int:
    """Return how many jobs and callbacks are not done."""
    open_callbacks = select(func.count()).where(callbacks.c.ended_on_ms.is_(None))
    jobs = select(func.count()).select_from(queue_jobs)
    return connection.execute(open_callbacks).scalar_one() + connection.execute(jobs).scalar_one()


async def wait_until_idle(pipeline: PipelineHarness) -> None:
    await poll_until(lambda: pipeline.waypost.database.read(count_open), lambda count: count == 0)


def personal_tables() -> list[Table]:
    """Return every table that can hold personal data of a recipient, by the declared columns."""
    names = {column.name.partition(".")[0] for column in PERSONAL_COLUMNS}
    return [table for table in metadata.sorted_tables if table.name in names]


def mark_of(table: Table, name: str) -> str:
    """Return what a row of a table says about a person, as no row of another table does."""
    return f"{name}-in-{table.name}"


def leave_ended_rows(number: str, name: str, connection: Connection) -> None:
    """Write and delete a row of every table that can name a person, with number and name in all its personal columns.

    An ended job of each queue among them: its row is gone, and its bytes may be left in the file of the table.
    """
    personal = {column.name for column in PERSONAL_COLUMNS}
    for table in personal_tables():
        text = f"{number} {mark_of(table, name)}"
        row: dict[str, Any] = {}
        for column in table.columns:
            if f"{table.name}.{column.name}" in personal:
                row[column.name] = text.encode() if isinstance(column.type, LargeBinary) else text
            elif not column.nullable:
                filler = {Integer: -7, LargeBinary: b"7", Boolean: False}
                row[column.name] = next((value for kind, value in filler.items() if isinstance(column.type, kind)), "7")
        for queue in QueueName if table is queue_jobs else (None,):
            if queue is not None:
                row["queue"] = int(queue)
            connection.execute(insert(table).values(row))
            own = [column == row[column.name] for column in table.columns if column.name in row]
            assert connection.execute(delete(table).where(*own)).rowcount == 1


async def test_nothing_of_an_erased_person_is_left_in_the_store_or_its_files(pipeline: PipelineHarness) -> None:
    people = {EVE: "Evelyn-Unmistakable", BOB: "Robert-Unmistakable"}
    for number, name in people.items():
        await exchange_everything(pipeline, number, name)
    await wait_until_idle(pipeline)
    read = pipeline.waypost.database.read
    for number, name in people.items():
        await pipeline.waypost.database.write(partial(leave_ended_rows, number, name))
    before = await read(contents_of), await read(partial(files_of, pipeline))

    erased = await run_erase(pipeline, f"+{EVE}", "--yes")
    again = await run_erase(pipeline, EVE, "--yes")
    export = await run_export(pipeline, EVE)

    assert erased.exit_code == 0, erased.output
    assert "Nothing is stored about this number any more" in erased.stdout
    assert again.exit_code == 0
    assert "erased from" not in again.stdout
    assert export.stdout == ""
    after = await read(contents_of), await read(partial(files_of, pipeline))
    for number, name in people.items():
        found_before = [form for form in forms_of(number, name) if form in before[0]]
        assert {number.encode(), name.encode()} <= set(found_before)
    assert [form for content in after for form in forms_of(EVE, people[EVE]) if form in content] == []
    if await read(dialect_of) == "postgresql":  # SQLite overwrites what it deletes
        marks = [mark_of(table, people[EVE]).encode() for table in personal_tables()]
        assert [mark for mark in marks if mark not in before[1]] == []
    for form in (BOB.encode(), people[BOB].encode()):
        assert before[0].count(form) == after[0].count(form)
    assert not (pipeline.folder / "media" / hashlib.sha256(picture_of(people[EVE])).hexdigest()).exists()
    assert (pipeline.folder / "media" / hashlib.sha256(picture_of(people[BOB])).hexdigest()).exists()


@pytest.mark.parametrize("name", [NUMBER, WHATSAPP_ID])
async def test_number_and_its_whatsapp_id_are_exported_and_erased_together(
    pipeline: PipelineHarness, name: str
) -> None:
    await pipeline.control("PUT", f"phones/{NUMBER}", {"wa_id": WHATSAPP_ID})
    await exchange_everything(pipeline, NUMBER, "Evelyn-Unmistakable")
    await exchange(pipeline, BOB, "bob")
    form, headers = {"user": NUMBER}, {"apikey": API_KEY}
    opted = await pipeline.send_request("POST", f"/sm/api/v1/app/opt/out/{APP.name}", form, headers)
    assert opted.status == 202, opted
    await wait_until_idle(pipeline)

    export = await run_export(pipeline, name)
    erased = await run_erase(pipeline, name, "--yes")
    again = await run_export(pipeline, NUMBER if name == WHATSAPP_ID else WHATSAPP_ID)

    records = [json.loads(line) for line in export.stdout.splitlines()]
    numbers = {record["phone_number"] for record in records if record["record"] == "recipient"}
    assert numbers == {NUMBER, WHATSAPP_ID}
    assert {record["record"] for record in records} >= {"user", "message", "inbound_message", "callback"}
    for text in ("question from", "answer to"):
        assert f"{text} Evelyn-Unmistakable" in export.stdout
    assert erased.exit_code == 0, erased.output
    assert again.stdout == ""
    left = await pipeline.waypost.database.read(contents_of)
    left += await pipeline.waypost.database.read(partial(files_of, pipeline))
    names = (NUMBER, WHATSAPP_ID)
    assert [form for number in names for form in forms_of(number, "Evelyn-Unmistakable") if form in left] == []
    assert b"question from bob" in left


async def test_what_work_is_still_done_for_is_left_and_erased_by_the_next_run(pipeline: PipelineHarness) -> None:
    await exchange(pipeline, EVE, "eve")
    await pipeline.close_operator()
    message_id = await pipeline.send_text("still in the queue", to=EVE)

    waiting = await run_erase(pipeline, EVE, "--yes", "--no-compact")
    await pipeline.open_operator()
    await pipeline.events_of(message_id, until="delivered")  # the service is idle between two statuses too
    await wait_until_idle(pipeline)
    erased = await run_erase(pipeline, EVE, "--yes", "--no-compact")

    assert waiting.exit_code == 1
    assert "work is still done for 1 of messages" in waiting.output
    assert erased.exit_code == 0, erased.output
    assert "erased from recipients" in erased.stdout


async def test_erasure_in_many_steps_is_continued_by_beginning_again(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_erasure, "MAX_SEARCHED_ROWS", 1)
    monkeypatch.setattr(admin_erasure, "MAX_ERASED_WINDOWS", 1)
    await exchange(pipeline, EVE, "eve")
    await wait_until_idle(pipeline)
    url = f"{pipeline.service_url}/admin/recipients/erase"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    for position in (None, None):  # interrupted twice after its first step
        async with pipeline.http.post(url, json={"number": EVE, "position": position}, headers=headers) as response:
            step = await response.json()
            assert not step["complete"]

    erased = await run_erase(pipeline, EVE, "--yes", "--no-compact")

    assert erased.exit_code == 0, erased.output
    assert EVE.encode() not in await pipeline.waypost.database.read(contents_of)
    async with pipeline.http.post(url, json={"number": EVE, "position": "x"}, headers=headers) as response:
        assert response.status == 400
        assert "position must be the value of next" in await response.text()


async def test_callback_that_is_enqueued_during_an_erasure_is_found_by_the_next_one(
    pipeline: PipelineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the person's rows nothing would lead to it any more."""
    monkeypatch.setattr(admin_erasure, "MAX_ERASED_WINDOWS", 1)
    await exchange(pipeline, EVE, "eve")
    await wait_until_idle(pipeline)
    url, headers = f"{pipeline.service_url}/admin/recipients/erase", {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    position, waiting, is_complete = "", dict[str, int](), True
    while position is not None:
        body = {"number": EVE, "position": position or None}
        async with pipeline.http.post(url, json=body, headers=headers) as response:
            step = await response.json()
        position, is_complete = step["next"], step["complete"]
        waiting |= step["waiting"]
        if position is not None and position.startswith("items:"):  # the callbacks have been searched
            await pipeline.reply(EVE, "once more from eve")
            await wait_until_idle(pipeline)

    assert (is_complete, waiting) == (False, {"callbacks": 1})
    erased = await run_erase(pipeline, EVE, "--yes", "--no-compact")
    assert erased.exit_code == 0, erased.output
    assert EVE.encode() not in await pipeline.waypost.database.read(contents_of)


async def test_unreadable_message_of_a_person_is_left_until_its_dead_letter_is_deleted(
    pipeline: PipelineHarness,
) -> None:
    await exchange(pipeline, EVE, "eve")
    await wait_until_idle(pipeline)
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    unreadable = b'{"object":"whatsapp_business_account","entry":[{"id":"1","from":"%s"' % EVE.encode()
    await post_body(pipeline, unreadable)
    dead_letters = await pipeline.send_request("GET", "/admin/dead-letters", headers=admin)
    [dead_letter] = dead_letters.body["dead_letters"]

    waiting = await run_erase(pipeline, EVE, "--yes", "--no-compact")
    await pipeline.send_request("DELETE", f"/admin/dead-letters/{dead_letter['position']}", headers=admin)
    erased = await run_erase(pipeline, EVE, "--yes", "--no-compact")

    assert "work is still done for 1 of webhook_items" in waiting.output, waiting.output
    assert erased.exit_code == 0, erased.output
    assert "Nothing is stored about this number any more" in erased.stdout
