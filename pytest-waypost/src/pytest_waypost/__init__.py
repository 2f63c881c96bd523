"""A pytest plugin: tests with a messaging service, its simulated phones and its callbacks.

The fixture `waypost` gives each test its own `Partner`; everything else is reached from there. Names are
imported when they are first used, so that a test run that does not use them does not wait.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pytest_waypost.async_wrappers import AsyncPartner, AsyncPhone
    from pytest_waypost.callback import Callback
    from pytest_waypost.client import ApiResponseError
    from pytest_waypost.failures import NotSeen
    from pytest_waypost.flow import PlayedFlow
    from pytest_waypost.message import Button, Message, Trace
    from pytest_waypost.partner import Partner
    from pytest_waypost.phone import Phone
    from pytest_waypost.service import Service
    from pytest_waypost.simulator import Fault, TimeMachine
    from pytest_waypost.templates import Template

__version__ = "0.1.0"
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
    "PlayedFlow",
    "Service",
    "Template",
    "TimeMachine",
    "Trace",
)  # fmt: skip

# fmt: off
_MODULES: Final = {
    "ApiResponseError": "pytest_waypost.client",
    "AsyncPartner":     "pytest_waypost.async_wrappers",
    "AsyncPhone":       "pytest_waypost.async_wrappers",
    "Button":           "pytest_waypost.message",
    "Callback":         "pytest_waypost.callback",
    "Fault":            "pytest_waypost.simulator",
    "Message":          "pytest_waypost.message",
    "NotSeen":          "pytest_waypost.failures",
    "Partner":          "pytest_waypost.partner",
    "Phone":            "pytest_waypost.phone",
    "PlayedFlow":       "pytest_waypost.flow",
    "Service":          "pytest_waypost.service",
    "Template":         "pytest_waypost.templates",
    "TimeMachine":      "pytest_waypost.simulator",
    "Trace":            "pytest_waypost.message",
}
# fmt: on


def __getattr__(name: str) -> Any:
    """Return a public name from its module, which is imported now."""
    if name not in _MODULES:
        raise AttributeError(f"pytest_waypost has no {name}")
    return getattr(import_module(_MODULES[name]), name)
