"""Proxies in front of services: nginx and Caddy with the files of `deploy/`, and TLS with a certificate of the run.

Only addresses, ports and paths of the files are replaced: those that an operator has to change too.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crashes.processes import TIMEOUT_S, Child, NotInTime, free_port

DEPLOY: Final = Path(__file__).parents[1] / "deploy"
HOST: Final = "waypost.example.com"
"""The host name of the files."""
MACHINES: Final = ("10.0.0.11:8080", "10.0.0.12:8080")
"""The machines of the files."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate of one host, and its key, as files."""

    certificate: Path
    key: Path


class ProxyUnderTest:
    """One proxy as a process; opened and closed.

    Args:
        name: `nginx` or `caddy`.
        folder: for its files; another user can enter it.
        services: URLs of two services.

    Attributes:
        port: where it listens, with TLS.
        url: for clients of `session`.
    """

    def __init__(self, name: str, folder: Path, services: Sequence[str]) -> None:
        self.port = free_port()
        self.url = f"https://{HOST}:{self.port}"
        self._certificate = create_certificate(folder, HOST)
        command = PROXIES[name](folder, self.port, [urlsplit(url).netloc for url in services], self._certificate)
        self.child = Child(name, command, {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}, folder / f"{name}.log")

    def tls(self) -> ssl.SSLContext:
        """Return a context that accepts the proxy's certificate only."""
        return ssl.create_default_context(cafile=str(self._certificate.certificate))

    def session(self, *, address: str = "127.0.0.1") -> aiohttp.ClientSession:
        """Return a client of the proxy, with an address of this machine."""
        connector = aiohttp.TCPConnector(ssl=self.tls(), limit=0, resolver=_LoopbackResolver(), local_addr=(address, 0))
        return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))

    async def open(self) -> None:
        """Start it, and return when a service responds through it."""
        self.child.start()
        deadline_s = time.monotonic() + TIMEOUT_S
        async with self.session() as http:
            while self.child.status is None and time.monotonic() < deadline_s:
                try:
                    async with http.get(f"{self.url}/readyz") as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.02)
        raise NotInTime(f"the proxy does not respond with 200\n{self.child.last_lines()}")

    async def close(self) -> None:
        """End it."""
        await asyncio.to_thread(self.child.close)


class _LoopbackResolver(AbstractResolver):
    """Resolves every name to this machine."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        pass


def create_certificate(folder: Path, host: str) -> Certificate:
    """Create a self-signed certificate for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    files = Certificate(folder / "proxy.crt", folder / "proxy.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def is_installed(name: str) -> bool:
    """True if a proxy can be started here."""
    return _program(name) is not None


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")


def _replace_all(text: str, replacements: Mapping[str, str]) -> str:
    """Replace each text, which must occur."""
    for old, new in replacements.items():
        assert old in text, f"the file has no {old!r}"
        text = text.replace(old, new)
    return text


def _nginx_command(folder: Path, port: int, services: Sequence[str], files: Certificate) -> list[str]:
    server = _replace_all(
        (DEPLOY / "nginx" / "waypost.conf").read_text(encoding="utf-8"),
        {
            **dict(zip(MACHINES, services, strict=True)),
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/ssl/waypost.crt": str(files.certificate),
            "/etc/ssl/waypost.key": str(files.key),
        },
    )
    (folder / "waypost.conf").write_text(server, encoding="utf-8")
    paths = "".join(
        f"    {name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.getuid() == 0 else ""  # the folder belongs to this user
    main = folder / "nginx.conf"
    main.write_text(
        f"{user}daemon off;\nworker_processes 2;\npid {folder}/nginx.pid;\nerror_log stderr warn;\n"
        f"events {{ worker_connections 1024; }}\nhttp {{\n    access_log off;\n{paths}    include {folder}/waypost.conf;\n}}\n",
        encoding="utf-8",
    )
    return [_program("nginx") or "nginx", "-c", str(main), "-e", "stderr", "-p", str(folder)]


def _caddy_command(folder: Path, port: int, services: Sequence[str], files: Certificate) -> list[str]:
    text = _replace_all(
        (DEPLOY / "caddy" / "Caddyfile").read_text(encoding="utf-8"),
        {
            **dict(zip(MACHINES, services, strict=True)),
            "\tservers {": "\tadmin off\n\tauto_https disable_redirects\n\tservers {",
            f"https://{HOST} {{": f"https://{HOST}:{port} {{\n\tbind 127.0.0.1",
            "/etc/ssl/waypost.crt": str(files.certificate),
            "/etc/ssl/waypost.key": str(files.key),
        },
    )
    (folder / "Caddyfile").write_text(text, encoding="utf-8")
    return [_program("caddy") or "caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


PROXIES: Final[Mapping[str, Callable[[Path, int, Sequence[str], Certificate], list[str]]]] = {
    "nginx": _nginx_command,
    "caddy": _caddy_command,
}
