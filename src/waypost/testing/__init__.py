"""A pytest plugin for other projects: the service, its phones and its callbacks.

The fixture `waypost` gives each test its own `Partner`; everything else is reached from there. Names are
imported when they are first used, so that a test run that does not use them does not wait.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from waypost.client.responses import ApiResponseError
    from waypost.testing.async_wrappers import AsyncPartner, AsyncPhone
    from waypost.testing.callback import Callback
    from waypost.testing.clock import TimeMachine
    from waypost.testing.failures import NotSeen
    from waypost.testing.faults import Fault
    from waypost.testing.message import Button, Message
    from waypost.testing.partner import Partner
    from waypost.testing.phone import Phone
    from waypost.testing.runtime.service import Service
    from waypost.testing.templates import Template
    from waypost.testing.trace import Trace

__all__ = (
    "ApiResponseError",
    "AsyncPartner",
    "AsyncPhone",
    "Button",
    "Callback",
    "Fault",
    "Message",
    "NotSeen",
    "Partner",
    "Phone",
    "Service",
    "Template",
    "TimeMachine",
    "Trace",
)  # fmt: skip

_MODULES: Final = {
    "AsyncPartner": "waypost.testing.async_wrappers",
    "AsyncPhone": "waypost.testing.async_wrappers",
    "Button": "waypost.testing.message",
    "Callback": "waypost.testing.callback",
    "ApiResponseError": "waypost.client.responses",
    "Fault": "waypost.testing.faults",
    "Message": "waypost.testing.message",
    "NotSeen": "waypost.testing.failures",
    "Partner": "waypost.testing.partner",
    "Phone": "waypost.testing.phone",
    "Service": "waypost.testing.runtime.service",
    "Template": "waypost.testing.templates",
    "TimeMachine": "waypost.testing.clock",
    "Trace": "waypost.testing.trace",
}


def __getattr__(name: str) -> Any:
    """Return a public name from its module, which is imported now."""
    if name not in _MODULES:
        raise AttributeError(f"waypost.testing has no {name}")
    return getattr(import_module(_MODULES[name]), name)
