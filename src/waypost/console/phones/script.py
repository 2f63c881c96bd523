"""The page of a phone's script: what it does when messages arrive, as a form."""

from functools import partial
from typing import Any

import msgspec
from starlette.responses import Response

from waypost.base.written_numbers import encode_json
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import form_texts
from waypost.console.page_request import PageRequest
from waypost.console.phones.sending import PhoneClient, get_phone_client
from waypost.console.simulator.scripts import (
    EDIT_FIELD,
    SCRIPT_PRESETS,
    ScriptRow,
    StepDeclarations,
    edit_rows,
    explain_error,
    format_rows,
    parse_rows,
    read_rows,
    read_steps_declaration,
)
from waypost.console.web.errors import InvalidPageRequest

_MAX_SEED_CHARS = 64


async def show_script(request: PageRequest) -> Response:
    """Return the form with the steps of the phone's script, or with those of a preset, which are not saved yet."""
    client, declared = get_phone_client(request), await read_steps_declaration(request)
    state = await client.read_state()
    presets = {preset.key: list(preset.steps) for preset in SCRIPT_PRESETS}
    steps: list[Any] = presets.get(request.query("preset")) or state["script"]
    text = msgspec.json.format(encode_json(steps), indent=2).decode() if steps else ""
    return await _page(client, state, declared, format_rows(steps, declared), state["seed"], text=text)


async def save_script(request: PageRequest) -> Response:
    """Save the script, or add, remove or import rows of its form; an error is shown at its step."""
    client, declared = get_phone_client(request), await read_steps_declaration(request)
    fields = await form_texts(request)
    rows, seed, text = read_rows(fields), fields.get("seed", "").strip()[:_MAX_SEED_CHARS], fields.get("json", "")
    edit = fields.get(EDIT_FIELD, "")
    state = await client.read_state()
    page = partial(_page, client, state, declared, seed=seed, text=text)
    try:
        if edit:
            return await page(edit_rows(rows, edit, text, declared))
        steps = parse_rows(rows, declared)
        await request.control.json("PUT", f"/control/phones/{client.phone}", {"script": steps, "seed": seed})
    except InvalidPageRequest as error:
        return await page(rows, wrong=f"{error.text} {error.hint}")
    except ApiResponseError as error:
        return await page(rows, **explain_error(error, rows))
    return client.respond("Saved. The script runs from the next message on." if steps else "Script removed.")


async def _page(
    client: PhoneClient, state: dict[str, Any], declared: StepDeclarations, rows: list[ScriptRow], seed: str, *,
    text: str, wrong: str = "", wrong_row: int | None = None, wrong_field: str = "",
) -> Response:  # fmt: skip
    return await client.request.page(
        "phones/script.html", 400 if wrong else 200,
        phone=client.phone, state=state, declared=declared, rows=rows, seed=seed, text=text, wrong=wrong,
        wrong_row=wrong_row, wrong_field=wrong_field, presets=[preset for preset in SCRIPT_PRESETS if preset.steps],
    )  # fmt: skip
