"""The frozen baseline: raw ASGI on uvicorn, the checks of a message, a response, and no store.

Every target is a ratio to this server measured in the same run, so its speed must never change: a
change here would make all kept results incomparable. It imports nothing of ours.
"""

import argparse
import hashlib
import os
import re
import uuid
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import uvicorn

API_KEY = "b0a7" * 16
SOURCES = {f"1555000{n:04d}": f"BenchApp{n}" for n in range(16)}
TEMPLATE_ID = "01990000-0000-7000-8000-00000000be0c"

PARTNERS = {hashlib.sha256(API_KEY.encode()).hexdigest(): 1}
APPS = {(1, source): name for source, name in SOURCES.items()}
PUNCTUATION = str.maketrans("", "", "+ -()")
DIGITS = re.compile(r"[0-9]{8,15}", re.ASCII)
FORM = "application/x-www-form-urlencoded"


class Text(msgspec.Struct):
    """The message of a session text."""

    type: str = "text"
    text: str | None = None


class Template(msgspec.Struct):
    """The template of a template message."""

    id: str
    params: list[str] | None = None


read_text = msgspec.json.Decoder(Text).decode
read_template = msgspec.json.Decoder(Template).decode


def check_request(path: str, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    """Return the response status of a request."""
    headers_by_name = {name: value.decode().strip() for name, value in headers}
    key = headers_by_name.get(b"apikey")
    partner = PARTNERS.get(hashlib.sha256(key.encode()).hexdigest()) if key else None
    if partner is None:
        return 401
    if headers_by_name.get(b"content-type", FORM).partition(";")[0].strip().lower() != FORM:
        return 400
    try:
        form = dict(parse_qsl(body.decode(), True, errors="strict", max_num_fields=200))
        digits = form["destination"].translate(PUNCTUATION)
        if not DIGITS.fullmatch(digits) or form.get("channel", "whatsapp") != "whatsapp":
            return 400
        if APPS.get((partner, form["source"].translate(PUNCTUATION))) != form["src.name"]:
            return 400
        if path == "/wa/api/v1/template/msg":
            return 200 if read_template(form["template"]).id == TEMPLATE_ID else 400
        message = read_text(form["message"])
    except (KeyError, ValueError, msgspec.MsgspecError):
        return 400
    is_text = message.type == "text" and message.text and message.text.strip()
    return 200 if is_text and len(message.text or "") <= 4096 else 400


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Respond to one request."""
    message = await receive()
    body = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    status = check_request(scope["path"], scope["headers"], body)
    response = b'{"status":"submitted","messageId":"' + str(uuid.uuid4()).encode() + b'"}'
    if status != 200:
        response = b'{"status":"error"}'
    length = (b"content-length", str(len(response)).encode())
    headers = [length, (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": response})


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--core", type=int)
    chosen = options.parse_args()
    if chosen.core is not None:
        os.sched_setaffinity(0, {chosen.core})
    uvicorn.run(
        application, host="127.0.0.1", port=chosen.port, loop="uvloop", http="httptools", ws="none",
        lifespan="off", access_log=False, log_level="warning", server_header=False,
    )  # fmt: skip
