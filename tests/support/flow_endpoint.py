"""A business's endpoint of a Flow: a real HTTP server that decrypts requests and encrypts its responses."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from aiohttp import web
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PING_RESPONSE = {"data": {"status": "active"}}
_PADDING = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


@cache
def private_key() -> rsa.RSAPrivateKey:
    """Return the business's key, one for all tests of a process."""
    return rsa.generate_private_key(65537, 2048)


def public_pem() -> str:
    """Return the public part of the key in PEM."""
    return public_pem_of(private_key())


def public_pem_of(key: rsa.RSAPrivateKey) -> str:
    """Return the public part of a key in PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@dataclass
class FlowEndpoint:
    """The endpoint.

    Attributes:
        respond: what it answers to a decrypted request, or a coroutine that returns it.
        encrypt: how it encrypts: key, initial vector and text to the body.
        status: of HTTP, of every response.
        content_type: of every response.
        headers: further ones of every response.
        key: the private key that decrypts requests; a request that it cannot decrypt gets 421.
        request_padding: of the encrypted AES keys.
        requests: decrypted, in order.
        signatures: for each request: True if it was signed with the secret.
        checks_signature: respond 432 to a request that was not.
        arrived: how many requests came, decrypted or not.
    """

    secret: str
    respond: Callable[[dict[str, Any]], Any] = lambda _request: PING_RESPONSE
    encrypt: Callable[[bytes, bytes, bytes], bytes] = field(default=lambda key, vector, text: seal(key, vector, text))
    status: int = 200
    content_type: str = "text/plain"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    key: rsa.RSAPrivateKey = field(default_factory=lambda: private_key())
    request_padding: padding.AsymmetricPadding = field(default_factory=lambda: _PADDING)
    checks_signature: bool = False
    arrived: int = 0
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    signatures: list[bool] = field(default_factory=list[bool])

    async def handle(self, request: web.Request) -> web.Response:
        """Serve one request."""
        raw = await request.read()
        self.arrived += 1
        expected = "sha256=" + hmac.new(self.secret.encode(), raw, hashlib.sha256).hexdigest()
        is_signed = hmac.compare_digest(request.headers.get("X-Hub-Signature-256", ""), expected)
        self.signatures.append(is_signed)
        if self.checks_signature and not is_signed:
            return web.Response(status=432)
        body = {name: base64.b64decode(value) for name, value in json.loads(raw).items()}
        vector = body["initial_vector"]
        try:
            key = self.key.decrypt(body["encrypted_aes_key"], self.request_padding)
            decrypted = json.loads(AESGCM(key).decrypt(vector, body["encrypted_flow_data"], None))
        except (ValueError, InvalidTag):
            return web.Response(status=421)
        self.requests.append(decrypted)
        answer = self.respond(decrypted)
        content: object = await cast("Awaitable[object]", answer) if isinstance(answer, Awaitable) else answer
        encrypted = self.encrypt(key, vector, json.dumps(content).encode())
        headers = {"Content-Type": self.content_type, **self.headers}
        return web.Response(status=self.status, body=encrypted, headers=headers)


def seal(key: bytes, vector: bytes, text: bytes) -> bytes:
    """Return a response as it must be: encrypted with the inverted initial vector, the tag at its end, in base64."""
    return base64.b64encode(AESGCM(key).encrypt(bytes(byte ^ 0xFF for byte in vector), text, None))


@asynccontextmanager
async def running_flow_endpoint(secret: str) -> AsyncGenerator[FlowEndpoint]:
    """Run an endpoint on a free port of this machine."""
    endpoint = FlowEndpoint(secret)
    application = web.Application()
    application.router.add_post("/flow", endpoint.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint.url = f"http://127.0.0.1:{runner.addresses[0][1]}/flow"
    try:
        yield endpoint
    finally:
        await runner.cleanup()
