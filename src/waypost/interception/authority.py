"""A certificate authority that lives in memory, for the intercepted hosts and no other."""

import os
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_BEFORE: Final = timedelta(days=1)
_VALID_FOR: Final = timedelta(days=30)


class PrivateAuthority:
    """An authority for some hosts, whose keys stay in memory; each host gets its certificate when it is connected to.

    Its own certificate names the hosts that it may vouch for, so that even its key would be of no use for another one.

    Attributes:
        certificate_pem: what a program has to trust.

    Source: RFC 5280.
    """

    def __init__(self, hosts: Sequence[str], now_ms: int) -> None:
        self._hosts = frozenset(hosts)
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._at = datetime.fromtimestamp(now_ms / 1000, UTC)
        self._key, self._host_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Waypost intercept, of one process")])
        self._key_identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        permitted = x509.NameConstraints(
            permitted_subtrees=[x509.DNSName(host) for host in hosts],
            excluded_subtrees=[x509.IPAddress(ip_network(network)) for network in ("0.0.0.0/0", "::/0")],
        )
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(permitted, critical=True)
            .add_extension(self._key_identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate_pem = certificate.public_bytes(Encoding.PEM).decode()

    def server_context(self, block: Callable[[str], None]) -> ssl.SSLContext:
        """Return the context of a listener: it takes the certificate of the host that a client names.

        A connection that names another host, or none, ends in the handshake.

        Args:
            block: called with the name that has no certificate here.
        """

        def choose(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
            host = (name or "").lower()
            if host not in self._hosts:
                block(name or "a connection without a host name")
                return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
            connection.context = self._context_of(host)
            return None

        listening = _server_context()
        listening.sni_callback = choose
        return listening

    def host_of(self, context: ssl.SSLContext) -> str | None:
        """Return the host whose context a connection has; None for another context."""
        return next((name for name, one in self._contexts.items() if one is context), None)

    def _context_of(self, host: str) -> ssl.SSLContext:
        """Return the context of a host, with a certificate that is for this one alone."""
        if host not in self._contexts:
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
            authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._key_identifier)
            certificate = (
                self._builder(subject, self._host_key.public_key())
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .add_extension(_key_usage(signs_certificates=False), critical=True)
                .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
                .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
                .add_extension(authority, critical=False)
                .sign(self._key, hashes.SHA256())
            )
            key_pem = self._host_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            self._contexts[host] = _server_context()
            _load(self._contexts[host], key_pem + certificate.public_bytes(Encoding.PEM))
        return self._contexts[host]

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._at - _VALID_BEFORE)
            .not_valid_after(self._at + _VALID_FOR)
        )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load key and certificate, which the library takes from a file only: one that no folder has."""
    with os.fdopen(os.memfd_create("certificate"), "wb") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
