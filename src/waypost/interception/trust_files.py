"""The files of one interception, in a private folder: authorities as several kinds of program read them, a name map."""

import base64
import hashlib
import re
import ssl
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SYSTEM_BUNDLES: Final = (  # of Debian, Fedora, openSUSE and Alpine, in the order in which Go looks for them
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
BUNDLE_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
TRUST_STORE_PASSWORD: Final = "changeit"  # noqa: S105  of a file of public certificates
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----\s(.+?)-----END CERTIFICATE-----", re.DOTALL)
_HOSTS_LINE: Final = re.compile(r"^hosts:.*$", re.MULTILINE)
_NAME_SERVICES: Final = "hosts:          files dns"
_JKS_MAGIC, _JKS_VERSION, _JKS_TRUSTED = 0xFEEDFEED, 2, 2


@dataclass(frozen=True, slots=True)
class TrustFiles:
    """The files that an intercepted program reads; `binds` has what the name map puts in place of others."""

    bundle: Path
    java_trust_store: Path
    php_folder: Path
    binds: tuple[tuple[str, str], ...]  # file of ours, file in its place; for the child alone
    has_system_authorities: bool


def write_trust_files(
    folder: Path, authority_pem: str, mapped_address: str, hosts: Iterable[str], environment: Mapping[str, str]
) -> TrustFiles:
    """Write the files. The bundle has the machine's own authorities too, so that other hosts still verify.

    Args:
        folder: private, and deleted by the caller.
        mapped_address: to which the name map leads the hosts.
        environment: of the child; it may name bundles of its own, whose authorities stay.
    """
    system = [path for path in (*SYSTEM_BUNDLES, ssl.get_default_verify_paths().openssl_cafile) if Path(path).is_file()]
    named = [environment[name] for name in BUNDLE_VARIABLES if environment.get(name)]
    authorities = _read_authorities(dict.fromkeys((*system, *named)))
    own = "".join(_CERTIFICATE.findall(authority_pem)[0].split())
    bundle = folder / "authorities.pem"
    bundle.write_text(
        authority_pem
        + "".join(
            f"-----BEGIN CERTIFICATE-----\n{_wrap(one)}-----END CERTIFICATE-----\n" for one in authorities if one != own
        )
    )
    store = folder / "authorities.jks"
    store.write_bytes(_java_trust_store([own, *authorities]))
    php = folder / "php"
    php.mkdir()
    (php / "waypost.ini").write_text(f'openssl.cafile="{bundle}"\ncurl.cainfo="{bundle}"\n')
    binds = [(str(_write_name_map(folder, mapped_address, hosts)), "/etc/hosts")]
    if services := _write_name_services(folder):
        binds.append((str(services), "/etc/nsswitch.conf"))
    binds += [(str(bundle), path) for path in SYSTEM_BUNDLES if Path(path).is_file()]
    return TrustFiles(bundle, store, php, tuple(binds), bool(authorities))


def _read_authorities(paths: Iterable[str]) -> list[str]:
    """Return the certificates of some files, in base64 without line breaks; a file that cannot be read has none."""
    found: dict[str, None] = {}
    for path in paths:
        try:
            text = Path(path).read_text(encoding="latin-1")
        except OSError:
            continue
        found |= dict.fromkeys("".join(one.split()) for one in _CERTIFICATE.findall(text))
    return list(found)


def _wrap(text: str) -> str:
    return "".join(f"{text[start : start + 64]}\n" for start in range(0, len(text), 64))


def _java_trust_store(certificates: Iterable[str]) -> bytes:
    """Return a trust store in the format JKS, which every version of Java reads.

    Source: page "Java KeyStore".
    """
    entries = [base64.b64decode(one) for one in certificates]
    content = struct.pack(">III", _JKS_MAGIC, _JKS_VERSION, len(entries))
    for number, entry in enumerate(entries):
        alias = b"authority-%d" % number
        content += struct.pack(">IH", _JKS_TRUSTED, len(alias)) + alias + struct.pack(">QH", 0, 5) + b"X.509"
        content += struct.pack(">I", len(entry)) + entry
    seed = TRUST_STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return content + hashlib.sha1(seed + content, usedforsecurity=False).digest()


def _write_name_map(folder: Path, mapped_address: str, hosts: Iterable[str]) -> Path:
    """Write the machine's name map with our hosts first, and without what it says about them."""
    names = set(hosts)
    try:
        lines = Path("/etc/hosts").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        lines = ["127.0.0.1 localhost"]
    kept = [line for line in lines if names.isdisjoint(line.partition("#")[0].lower().split()[1:])]
    file = folder / "hosts"
    ours = [f"{mapped_address} {name}" for name in sorted(names)]
    file.write_text("\n".join((*ours, *kept, "")), encoding="utf-8", errors="surrogateescape")
    return file


def _write_name_services(folder: Path) -> Path | None:
    """Write the order of name services with files first, if the machine's differs; None if it is right."""
    try:
        text = Path("/etc/nsswitch.conf").read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return None
    line = _HOSTS_LINE.search(text)
    if line is None or line[0].split()[1:2] == ["files"]:
        return None
    file = folder / "nsswitch.conf"
    file.write_text(_HOSTS_LINE.sub(_NAME_SERVICES, text), encoding="utf-8")
    return file
