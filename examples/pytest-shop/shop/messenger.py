"""The client of the API: submits templates, and sends template messages and texts."""

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any


class Messenger:
    """Client for one app. `env` has the URLs, ids and credentials from `waypost-dev.env`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def submit_template(self, name: str, content: str, example: str, buttons: Sequence[str]) -> str:
        """Submit a template with quick replies, and return its id. The result of its review is a callback."""
        replies = [{"type": "QUICK_REPLY", "text": text} for text in buttons]
        fields = {
            "elementName": name,
            "languageCode": "en_US",
            "category": "UTILITY",
            "templateType": "TEXT",
            "vertical": "Orders",
            "content": content,
            "example": example,
        } | ({"buttons": json.dumps(replies)} if replies else {})
        url = f"{self._env['PARTNER_URL']}/partner/app/{self._env['APP_ID']}/templates"
        response = _post(url, fields, {"Authorization": self._env["APP_TOKEN"]})
        return str(response["template"]["id"])

    def send_template(
        self, template_id: str, to: str, params: Sequence[str], postback_texts: Sequence[str] = ()
    ) -> str:
        """Send a template message, and return its id."""
        texts = [{"index": index, "text": text} for index, text in enumerate(postback_texts)]
        template = {"id": template_id, "params": list(params)}
        fields = {"template": json.dumps(template)}
        fields |= {"postbackTexts": json.dumps(texts)} if texts else {}
        return self._send("/wa/api/v1/template/msg", to, fields)

    def send_text(self, to: str, text: str) -> str:
        """Send a text to a customer who wrote in the last 24 hours, and return its id."""
        message = json.dumps({"type": "text", "text": text})
        return self._send("/wa/api/v1/msg", to, {"message": message})

    def _send(self, path: str, to: str, fields: Mapping[str, str]) -> str:
        form = {
            "channel": "whatsapp",
            "source": self._env["SOURCE"],
            "src.name": self._env["SRC_NAME"],
            "destination": to,
            **fields,
        }
        response = _post(self._env["API_URL"] + path, form, {"apikey": self._env["API_KEY"]})
        return str(response["messageId"])


def _post(url: str, fields: Mapping[str, str], headers: Mapping[str, str]) -> Any:
    body = urllib.parse.urlencode(fields).encode()
    request = urllib.request.Request(url, body, dict(headers))
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)
