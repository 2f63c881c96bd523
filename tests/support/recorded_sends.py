"""A line to the operator that keeps what passes to it, and may answer in its place."""

import json
from typing import Any

from aiohttp import web

from tests.support.operator_proxy import Between


class RecordedSends(Between):
    """Keeps the body of every message that the service hands to the operator, under our id.

    Args:
        answers: it answers itself, as an operator who accepts everything.
    """

    def __init__(self, *, answers: bool = False) -> None:
        super().__init__()
        self.bodies: dict[str, dict[str, Any]] = {}
        self._answers = answers

    async def _pass_on(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method != "POST" or not request.path.endswith("/messages"):
            return await super()._pass_on(request, base_url)
        body = json.loads(await request.read())
        if "biz_opaque_callback_data" not in body:  # a read receipt
            return await super()._pass_on(request, base_url)
        self.bodies[body["biz_opaque_callback_data"].partition(" ")[0]] = body
        if not self._answers:
            return await super()._pass_on(request, base_url)
        answer = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": "1", "wa_id": "15551234567"}],
            "messages": [{"id": f"wamid.{len(self.bodies)}"}],
        }
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()
