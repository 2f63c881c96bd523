"""The page of a phone's script: what it does when messages arrive, as a form."""

from typing import Any

import msgspec
from starlette.responses import Response

from waypost.base.written_numbers import encode_json
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import form_texts
from waypost.console.page_tools import PageTools
from waypost.console.phones.sending import PhoneClient, get_phone_client
from waypost.console.phones.view_models import get_control
from waypost.console.simulator.scripts import (
    EDIT_FIELD,
    SCRIPT_PRESETS,
    STEP_EFFECTS,
    STEP_EVENTS,
    STEP_OPTIONS,
    ScriptRow,
    edit_rows,
    explain_error,
    format_rows,
    parse_rows,
    read_rows,
)
from waypost.console.web.page_request import InvalidPageRequest, PageRequest

_MAX_SEED_CHARS = 64


async def show_script(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the form with the steps of the phone's script, or with those of a preset, which are not saved yet."""
    client = get_phone_client(tools, page_request)
    state = await client.read_state()
    presets = {preset.key: list(preset.steps) for preset in SCRIPT_PRESETS}
    steps: list[Any] = presets.get(page_request.query("preset")) or state["script"]
    return await _page(client, state, format_rows(steps), state["seed"], text=_format_json(steps))


async def save_script(tools: PageTools, page_request: PageRequest) -> Response:
    """Save the script, or add, remove or import rows of its form; an error is shown at its step."""
    client = get_phone_client(tools, page_request)
    fields = await form_texts(page_request)
    rows, seed, text = read_rows(fields), fields.get("seed", "").strip()[:_MAX_SEED_CHARS], fields.get("json", "")
    edit = fields.get(EDIT_FIELD, "")
    state = await client.read_state()
    try:
        if edit:
            return await _page(client, state, edit_rows(rows, edit, text), seed, text=text)
        steps = parse_rows(rows)
        await get_control(tools).json("PUT", f"/control/phones/{client.phone}", {"script": steps, "seed": seed})
    except InvalidPageRequest as error:
        return await _page(client, state, rows, seed, text=text, wrong=f"{error.text} {error.hint}")
    except ApiResponseError as error:
        wrong_row, wrong = explain_error(error)
        return await _page(client, state, rows, seed, text=text, wrong=wrong, wrong_row=wrong_row)
    return client.respond("Saved. The script runs from the next message on." if steps else "Script removed.")


async def _page(
    client: PhoneClient, state: dict[str, Any], rows: list[ScriptRow], seed: str, *, text: str, wrong: str = "",
    wrong_row: int | None = None,
) -> Response:  # fmt: skip
    return await client.tools.page(
        client.page_request,
        "phones/script.html",
        400 if wrong else 200,
        phone=client.phone,
        state=state,
        rows=rows,
        seed=seed,
        text=text,
        wrong=wrong,
        wrong_row=wrong_row,
        presets=[preset for preset in SCRIPT_PRESETS if preset.steps],
        events=STEP_EVENTS,
        effects=STEP_EFFECTS,
        options=STEP_OPTIONS,
    )


def _format_json(steps: list[Any]) -> str:
    return msgspec.json.format(encode_json(steps), indent=2).decode() if steps else ""
