"""The environment variables of an intercepted program: a row each, with who reads it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from waypost.interception.hosts import HOST_NAMES
from waypost.interception.trust_files import TRUST_STORE_PASSWORD, TrustFiles

PROXY_VARIABLES: Final = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
"""Hosts that are reached without a proxy."""


@dataclass(frozen=True, slots=True)
class ChildVariable:
    """A variable of the child.

    Attributes:
        readers: who reads it, as the how-to page says it.
        value: from the files, the proxy's URL and the value before, which is empty if there was none.
        for_proxy: True if it is set only where the hosts are reached by the proxy.
    """

    name: str
    readers: str
    value: Callable[[TrustFiles, str, str], str]
    for_proxy: bool = False


def _bundle(files: TrustFiles, _proxy_url: str, _before: str) -> str:
    return str(files.bundle)


def _proxy(_files: TrustFiles, proxy_url: str, _before: str) -> str:
    return proxy_url


def _no_proxy(_files: TrustFiles, _proxy_url: str, before: str) -> str:
    """Keep what went past a proxy before, except for what would cover our hosts."""
    entries = (entry.strip() for entry in before.split(","))
    return ",".join(dict.fromkeys((*LOCAL, *(entry for entry in entries if entry and not _covers_ours(entry)))))


def _covers_ours(entry: str) -> bool:
    suffix = entry.lower().lstrip("*").lstrip(".").partition(":")[0]
    return not suffix or any(name == suffix or name.endswith(f".{suffix}") for name in HOST_NAMES)


def _php_folders(files: TrustFiles, _proxy_url: str, before: str) -> str:
    return f"{before}:{files.php_folder}"  # an empty first part is the folder that PHP was built with


def _java_options(files: TrustFiles, proxy_url: str, before: str) -> str:
    options = [
        f"-Djavax.net.ssl.trustStore={files.java_trust_store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}",
    ]
    if proxy_url:
        proxy = urlsplit(proxy_url)
        for scheme in ("http", "https"):
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port}"]
        options.append("-Dhttp.nonProxyHosts=localhost|127.*|[::1]")
    return " ".join(filter(None, (before, *options)))


def _enabled(_files: TrustFiles, _proxy_url: str, _before: str) -> str:
    return "1"


CHILD_VARIABLES: Final = (
    # Source: page "Programs behind a proxy"
    ChildVariable("SSL_CERT_FILE", "OpenSSL, and so Python, Ruby, PHP streams; httpx, curl, Go", _bundle),
    ChildVariable("REQUESTS_CA_BUNDLE", "requests (Python)", _bundle),
    ChildVariable("CURL_CA_BUNDLE", "curl; requests too", _bundle),
    ChildVariable("NODE_EXTRA_CA_CERTS", "Node", _bundle),
    ChildVariable("PHP_INI_SCAN_DIR", "PHP, for `openssl.cafile` and `curl.cainfo`", _php_folders),
    ChildVariable("JAVA_TOOL_OPTIONS", "Java, for its trust store and its proxy", _java_options),
    ChildVariable("HTTPS_PROXY", "Python, Go, Ruby, Node, axios, Guzzle", _proxy, for_proxy=True),
    ChildVariable("https_proxy", "curl, and most of those", _proxy, for_proxy=True),
    ChildVariable("HTTP_PROXY", "the same, for http", _proxy, for_proxy=True),
    ChildVariable("http_proxy", "curl, for http", _proxy, for_proxy=True),
    ChildVariable("NO_PROXY", "all of those: this machine is reached without a proxy", _no_proxy, for_proxy=True),
    ChildVariable("no_proxy", "curl, and most of those", _no_proxy, for_proxy=True),
    ChildVariable(
        "NODE_USE_ENV_PROXY", "Node 22.21 and 24.5, whose own clients then use a proxy", _enabled, for_proxy=True
    ),
)


def make_child_variables(environment: Mapping[str, str], files: TrustFiles, proxy_url: str) -> dict[str, str]:
    """Return what is set in the environment of the child.

    Args:
        environment: the child's without us.
        proxy_url: empty: the hosts are reached by a name map, and no proxy is used.
    """
    before_no_proxy = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return {
        row.name: row.value(
            files, proxy_url, before_no_proxy if row.value is _no_proxy else environment.get(row.name, "")
        )
        for row in CHILD_VARIABLES
        if proxy_url or not row.for_proxy
    }


def uses_proxy(environment: Mapping[str, str]) -> bool:
    """True if the environment names a proxy, to which the child would send requests for our hosts."""
    return any(environment.get(name) for name in PROXY_VARIABLES)
