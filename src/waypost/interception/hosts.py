"""The hosts that an intercepted program reaches here instead: a row each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class SandboxSide(StrEnum):
    """A half of the sandbox."""

    SERVICE = "service"
    SIMULATOR = "simulator"


@dataclass(frozen=True, slots=True)
class InterceptedHost:
    """A host that clients have in their code.

    Attributes:
        purpose: what it serves at the vendor or the operator, as the how-to page says it.
    """

    name: str
    side: SandboxSide
    purpose: str


_SERVICE, _SIMULATOR = SandboxSide.SERVICE, SandboxSide.SIMULATOR

HOSTS: Final = (
    # Source: page "Hosts of the vendor and the operator"
    InterceptedHost("partner.gupshup.io", _SERVICE, "partner API"),
    InterceptedHost("api.gupshup.io", _SERVICE, "messaging API"),
    InterceptedHost("filemanager.gupshup.io", _SERVICE, "media links of callbacks"),
    InterceptedHost("graph.facebook.com", _SIMULATOR, "Graph API"),
    InterceptedHost("api.facebook.com", _SIMULATOR, "archive of templates"),
    InterceptedHost("lookaside.fbsbx.com", _SIMULATOR, "media downloads"),
    InterceptedHost("connect.facebook.net", _SIMULATOR, "script of the signup window"),
    InterceptedHost("www.facebook.com", _SIMULATOR, "signup window"),
    InterceptedHost("web.facebook.com", _SIMULATOR, "signup window"),
)
HOST_NAMES: Final = frozenset(host.name for host in HOSTS)
