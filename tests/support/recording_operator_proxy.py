"""An operator proxy that records the messages sent to the operator, and can respond in its place."""

import json
from typing import Any

from aiohttp import web

from tests.support.operator_proxy import OperatorProxy


class RecordedSends(OperatorProxy):
    """Records the body and the path of every message that the service sends to the operator, by our id.

    Args:
        responds: whether it responds itself, as an operator that accepts everything.
    """

    def __init__(self, *, responds: bool = False) -> None:
        super().__init__()
        self.bodies: dict[str, dict[str, Any]] = {}
        self.paths: dict[str, str] = {}
        self._responds = responds

    async def _forward(self, request: web.Request, base_url: str) -> tuple[int, dict[str, str], bytes]:
        if request.method != "POST" or not request.path.endswith(("/messages", "/marketing_messages")):
            return await super()._forward(request, base_url)
        body = json.loads(await request.read())
        if "biz_opaque_callback_data" not in body:  # a read receipt
            return await super()._forward(request, base_url)
        message_id = body["biz_opaque_callback_data"].partition(" ")[0]
        self.paths[message_id] = request.path
        self.bodies[message_id] = body
        if not self._responds:
            return await super()._forward(request, base_url)
        response = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": "1", "wa_id": "15551234567"}],
            "messages": [{"id": f"wamid.{len(self.bodies)}"}],
        }
        return 200, {"Content-Type": "application/json"}, json.dumps(response).encode()
