"""Export and erasure of the personal data of a recipient, of every partner: for the administrator."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from waypost.client.api_client import ApiResponseError
from waypost.console.page_request import PageRequest
from waypost.console.settings.app import form_error
from waypost.domain.phone_number import read_phone_number

MAX_NUMBER_CHARS: Final = 64


async def show_personal_data(
    request: PageRequest, values: Mapping[str, str] = {}, wrong: Mapping[str, str] = {},
    *, result: Mapping[str, Any] | None = None,
) -> Response:  # fmt: skip
    """Return the two forms, a rejected one with its errors by field; and the result of an erasure.

    Args:
        result: as the admin API returns its last step, with the counts of all; and the number that was typed.
    """
    return await request.page(
        "settings/personal_data.html", 400 if wrong else 200, values=values, wrong=wrong, result=result
    )


async def export_recipient(request: PageRequest) -> Response:
    """Stream what is stored about a number: one JSON object a line."""
    number = await _number(request, "number")
    try:
        first = await _step(request, "export", number, None)
    except ApiResponseError as error:
        return await show_personal_data(request, {"number": number}, {"number": form_error(error)})
    return StreamingResponse(
        _record_lines(request, number, first),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": 'attachment; filename="recipient.ndjson"'},
    )


async def erase_recipient(request: PageRequest) -> Response:
    """Erase what is stored about a number that was typed twice, and rewrite the tables."""
    number, typed = await _number(request, "erased"), await _number(request, "typed")
    digits = read_phone_number(number)
    if digits is not None and read_phone_number(typed) != digits:
        wrong = {"typed": "Enter the same number again to erase everything about it."}
        return await show_personal_data(request, {"erased": number, "typed": typed}, wrong)
    erased, waiting = Counter[str](), Counter[str]()
    step: dict[str, Any] = {}
    try:
        while step.get("next", "") is not None:
            step = await _step(request, "erase", number, step.get("next"))
            erased.update(step["erased"])
            waiting.update(step["waiting"])
    except ApiResponseError as error:
        return await show_personal_data(request, {"erased": number}, {"erased": form_error(error)})
    if erased:
        await request.admin("POST /admin/store/compact")
    result = {**step, "number": number, "erased": erased, "waiting": waiting}
    return await show_personal_data(request, result=result)


async def _record_lines(request: PageRequest, number: str, first: Any) -> AsyncGenerator[str]:
    page = first
    while True:
        for record in page["records"]:
            yield json.dumps(record, ensure_ascii=False) + "\n"
        if page["next"] is None:
            return
        page = await _step(request, "export", number, page["next"])


async def _step(request: PageRequest, operation: str, number: str, position: str | None) -> Any:
    operation = f"POST /admin/recipients/{operation}"
    return await request.admin(operation, number=number, position=position)


async def _number(request: PageRequest, name: str) -> str:
    return (await request.field(name)).strip()[:MAX_NUMBER_CHARS]
