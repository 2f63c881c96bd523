"""The reference of `pytest_waypost`, generated from its docstrings and signatures."""

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from docs.markdown import table
from pytest_waypost import plugin
from pytest_waypost.callback import Callback
from pytest_waypost.flow import PlayedFlow
from pytest_waypost.message import Button, Message, MessageTraceStep, Trace
from pytest_waypost.partner import Partner
from pytest_waypost.phone import Phone
from pytest_waypost.service import Service
from pytest_waypost.simulator import Fault, TimeMachine
from pytest_waypost.templates import Template

CLASSES = (
    Partner, Phone, PlayedFlow, TimeMachine, Fault, Message, Button, Callback, Trace, MessageTraceStep, Template, Service,
)  # fmt: skip
FIXTURES = (
    "waypost", "async_waypost", "make_waypost_partner", "waypost_service", "waypost_host_variables", "waypost_hosts",
)  # fmt: skip
_WIDTH = 118
_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes):$", re.MULTILINE)


def testing_parts() -> tuple[str, ...]:
    """Return the parts of the page after its title."""
    parts = [
        "Fixtures and calls of the pytest plugin. "
        "[Test your integration](../how-to/test-your-integration.md) shows how to use them.",
        "## Fixtures",
        table(("Fixture", "Scope", "Value"), map(_fixture, FIXTURES)),
        "## Options",
        table(("Option", "In the ini file", "Default", "Meaning"), plugin.OPTIONS),
    ]
    for one in CLASSES:
        parts += [f"## `{one.__name__}`", *_markdown(inspect.getdoc(one) or "")]
        for name, member in _members(one):
            parts += [f"### `{one.__name__}.{name}`", *_member(name, member)]
    parts += [
        "## Coroutines",
        "`AsyncPartner`, `AsyncPhone`, `AsyncPlayedFlow`, `AsyncTimeMachine` and `AsyncFault` have the same calls, awaited. "
        "A property above that calls the service (`chat`, `inbox`, `hits`) is a method there. "
        "`original` is the object with the blocking calls.",
    ]
    return tuple(parts)


def _fixture(name: str) -> tuple[str, str, str]:
    marked: Any = getattr(plugin, name)
    scope: str = marked._fixture_function_marker.scope  # noqa: SLF001  pytest has no public attribute for it
    return f"`{name}`", scope, (inspect.getdoc(marked) or "").splitlines()[0]


def _members(one: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class defines itself, in the order of its source."""
    for name, member in vars(one).items():
        is_documented = isinstance(member, property) or inspect.isfunction(member)
        if is_documented and not name.startswith("_"):
            yield name, member


def _member(name: str, member: Any) -> Iterator[str]:
    if not isinstance(member, property):
        signature = inspect.signature(member)
        shown = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
        plain = str(signature.replace(parameters=shown[1:], return_annotation=inspect.Signature.empty))
        yield f"```text\n{name}{plain}\n```"
    yield from _markdown(inspect.getdoc(member) or "")


def _markdown(docstring: str) -> Iterator[str]:
    """Yield the parts of a docstring as Markdown; its sections become lists."""
    plain, *sections = _SECTION.split(docstring)
    for paragraph in plain.strip().split("\n\n"):
        yield " ".join(paragraph.split())
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        described, _, rest = textwrap.dedent(body.lstrip("\n")).partition("\n\n")
        items = re.split(r"\n(?! )", described.strip())
        yield f"{title}:"
        yield "\n".join(_item(" ".join(item.split()), named=title != "Returns") for item in items)
        if rest.strip():
            yield " ".join(rest.split())


def _item(text: str, *, named: bool) -> str:
    name, colon, meaning = text.partition(": ")
    line = f"`{name}`: {meaning}" if named and colon else text
    return textwrap.fill(f"- {line}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
