"""Export and erasure of the personal data of a recipient, of every partner: for the administrator."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.settings.app import form_error
from waypost.console.web.page_request import PageRequest
from waypost.domain.phone_number import read_phone_number

MAX_NUMBER_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """The results of an erasure, for the page.

    Attributes:
        erased: number of rows by table.
        waiting: number of rows by table that are left because work is still done for them.
        pseudonym: stands for the number in the audit log of the admin API.
    """

    number: str
    erased: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    waiting: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    pseudonym: str = ""
    is_complete: bool = False


async def show_personal_data(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the two forms."""
    return await _page(tools, page_request)


async def export_recipient(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what is stored about a number: one JSON object a line."""
    number = await _number(page_request, "number")
    try:
        first = await _step(tools, "export", number, None)
    except ApiResponseError as error:
        return await _page(tools, page_request, {"number": number}, {"number": form_error(error)})
    return StreamingResponse(
        _record_lines(tools, number, first),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": 'attachment; filename="recipient.ndjson"'},
    )


async def erase_recipient(tools: PageTools, page_request: PageRequest) -> Response:
    """Erase what is stored about a number that was typed twice, and rewrite the tables."""
    number, typed = await _number(page_request, "erased"), await _number(page_request, "typed")
    digits = read_phone_number(number)
    if digits is not None and read_phone_number(typed) != digits:
        wrong = {"typed": "Enter the same number again to erase everything about it."}
        return await _page(tools, page_request, {"erased": number, "typed": typed}, wrong)
    erased, waiting = Counter[str](), Counter[str]()
    position: str | None = None
    try:
        while True:
            step = await _step(tools, "erase", number, position)
            erased.update(step["erased"])
            waiting.update(step["waiting"])
            position = step["next"]
            if position is None:
                break
    except ApiResponseError as error:
        return await _page(tools, page_request, {"erased": number}, {"erased": form_error(error)})
    if erased:
        await tools.services.apis.admin.json("POST", "/admin/store/compact", {})
    result = ErasureResult(number, sorted(erased.items()), sorted(waiting.items()), step["id"], step["complete"])
    return await _page(tools, page_request, result=result)


async def _record_lines(tools: PageTools, number: str, first: Any) -> AsyncGenerator[str]:
    page = first
    while True:
        for record in page["records"]:
            yield json.dumps(record, ensure_ascii=False) + "\n"
        if page["next"] is None:
            return
        page = await _step(tools, "export", number, page["next"])


async def _step(tools: PageTools, operation: str, number: str, position: str | None) -> Any:
    body = {"number": number, "position": position}
    return await tools.services.apis.admin.json("POST", f"/admin/recipients/{operation}", body)


async def _number(page_request: PageRequest, name: str) -> str:
    return (await page_request.field(name)).strip()[:MAX_NUMBER_CHARS]


async def _page(
    tools: PageTools,
    page_request: PageRequest,
    values: dict[str, str] | None = None,
    wrong: dict[str, str] | None = None,
    *,
    result: ErasureResult | None = None,
) -> Response:
    return await tools.page(
        page_request,
        "settings/personal_data.html",
        400 if wrong else 200,
        values=values or {},
        wrong=wrong or {},
        result=result,
    )
