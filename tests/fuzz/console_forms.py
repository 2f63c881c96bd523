"""The fields of the console's actions and queries, collected from its forms and from the code that reads them."""

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from waypost.assembly.dev import demo
from waypost.console.route import PageRoute

_FORM_FIELD: Final = re.compile(
    r"""(?:request\.(?:field|is_checked|file|query)"""
    r"""|(?:fields|given|typed|values|query_params|form)\.get|_seconds|_field|_flag)"""
    r"""\(\s*(?:\w+,\s*)?["']([a-z][\w.-]*)["']"""
)
_QUERY_FIELD: Final = re.compile(r"""(?:request\.query|query_params\.getlist)\(\s*["']([a-z][\w.-]*)["']""")
_PARAMETER: Final = re.compile(r"\{(\w+)(:path)?\}")

# fmt: off
VALID_VALUES: Final[Mapping[str, str]] = {  # sent besides the value in the form; a key may name a method or a path too
    "text": "Hello", "latitude": "52.5", "longitude": "13.4", "number": "15550009001", "email": "a@b.test",
    "emoji": "😀", "response": '{"guests": "2"}', "order": '{"catalog_id": "1", "product_items": [{"product_retailer_id": "rye", "quantity": 1, "item_price": 2, "currency": "EUR"}]}',
    "script": '[{"on": "message", "do": "reply", "text": "Hi"}]', "seed": "7", "to": "15550002077", "user_id": "", "username": "ann",
    "hours": "1", "after_s": "1", "mode": "after", "json": '{"on": "call", "call": "messages.send", "phone": "15559990000", "what": {"error": 131000}}',
    "factor": "2", "by": "1", "unit": "seconds", "theme": "dark", "next": "/", "password": demo.PASSWORD, "old": demo.PASSWORD,
    "new": "Correct-horse-1", "again": "Correct-horse-1", "url": "http://127.0.0.1:9/a", "version": "2", "life": "week",
    "day": "2027-01-01", "key_name": "a till", "token_name": "a till", "typed": demo.APP_NAME, "first": "15557000000", "count": "2",
    "destination": demo.DESTINATION, "which": "both", "do": "check", "index": "0", "operator_account_id": "demo",
    "headers": "X-Shop: 1", "GET to": "2027-01-01T00:00", "/phones/{phone}/chats/{number}/older before": "20", "show": demo.DESTINATION, "chats": demo.SOURCE, "q": "a", "from": "2026-11-22T00:00", "keep_old_for_s": "86400", "kind": "auto", "explanation": "No", "recommendation": "Yes", "reason": "INVALID_FORMAT",
}
# fmt: on
MORE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {  # fields that are read outside the action's module
    "/phones/{phone}/items/{position}/location": ("latitude", "longitude", "name", "address"),
    "/phones/{phone}/items/{position}/contact": ("name", "number", "email"),
}
UNIQUE_VALUES: Final[Mapping[str, str]] = {
    "name": "spare-{}",
    "tag": "spare-{}",
    "elementName": "spare_{}",
    "first": "15557{:06}",
}
"""Fields whose values must be unique."""


@dataclass
class Form:
    """The fields of one form.

    Attributes:
        choices: the values of each field; the first is the preset one.
        files: the fields for files.
        method: of the request.
    """

    method: str = "POST"
    choices: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    files: set[str] = field(default_factory=set[str])

    def add(self, name: str, value: str) -> None:
        """Add a value to the choices of a field."""
        values = self.choices.setdefault(name, [])
        if value not in values:
            values.append(value)

    @property
    def names(self) -> list[str]:
        """The names of all fields, in order."""
        return [*self.choices, *sorted(self.files - self.choices.keys())]


class _Reader(HTMLParser):
    """Collects the forms of a page and their URLs."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, Form]] = []
        self._open: Form | None = None
        self._by_id: dict[str, Form] = {}
        self._select: tuple[Form, str] | None = None
        self._textarea: tuple[Form, str, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        for name in ("href", "src"):
            if attributes.get(name, "").startswith("/"):
                self.forms.append((attributes[name], Form("GET")))
        if tag == "form":
            self._open = Form()
            if attributes.get("id"):
                self._open = self._by_id.setdefault(attributes["id"], self._open)
            self._open.method = attributes.get("method", "get").upper()
            self.forms.append((attributes.get("action", ""), self._open))
            return
        owner = self._by_id.get(attributes["form"]) if attributes.get("form") else self._open
        if tag == "option" and self._select is not None:
            form, name = self._select
            form.add(name, attributes.get("value", ""))
        if owner is None or not attributes.get("name"):
            return
        name = attributes["name"]
        if tag == "select":
            self._select = (owner, name)
        elif tag == "textarea":
            self._textarea = (owner, name, [])
        elif tag == "input" and attributes.get("type") == "file":
            owner.files.add(name)
        elif tag in ("input", "button"):
            owner.add(name, attributes.get("value", "on" if attributes.get("type") in ("checkbox", "radio") else ""))

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._textarea[2].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = None
        elif tag == "textarea" and self._textarea is not None:
            form, name, texts = self._textarea
            form.add(name, "".join(texts))
            self._textarea = None


def forms_of(page: str) -> list[tuple[str, Form]]:
    """Return the forms of a page, each with its URL."""
    reader = _Reader()
    reader.feed(page)
    return reader.forms


@dataclass
class RouteInputs:
    """The fields and paths of one row of the console's route table.

    Attributes:
        form: all its fields: those of its forms, and those that its module reads.
        paths: paths of existing objects, from the forms and links of pages.
    """

    form: Form
    paths: list[str]


def collect_inputs(row: PageRoute, forms: Iterable[tuple[str, Form]]) -> RouteInputs:
    """Collect the fields and paths of a row. The fields of a list apply to its stream and its further pages, too."""
    pattern = re.compile(_PARAMETER.sub("[^/]+", row.path) + "$")
    end = row.path[row.path.rfind("/") :]
    inputs = RouteInputs(Form(row.method), [])
    for action, form in forms:
        path = action.partition("?")[0]
        if form.method != row.method or not path:
            continue
        if pattern.match(path) and path not in inputs.paths:
            inputs.paths.append(path)
        if pattern.match(path) or (row.method == "GET" and pattern.match(path + end)):
            for name, values in form.choices.items():
                for value in values:
                    inputs.form.add(name, value)
            inputs.form.files |= form.files
    for name in (*fields_read_by(row), *MORE_FIELDS.get(row.path, ())):
        inputs.form.choices.setdefault(name, [])
        if name in ("file", "header-file"):
            inputs.form.files.add(name)
    inputs.form.choices.pop("csrf", None)
    for name in inputs.form.files:
        inputs.form.choices.pop(name, None)
    for name, values in inputs.form.choices.items():
        valid = next(
            (VALID_VALUES[key] for key in (f"{row.path} {name}", f"{row.method} {name}", name) if key in VALID_VALUES),
            "",
        )
        if valid not in values and (valid or not values):
            values.insert(0 if values in ([], [""]) else len(values), valid)
    return inputs


def fields_read_by(row: PageRoute) -> list[str]:
    """Return the form fields that an action's module reads, or the query fields that a page's package reads."""
    module = Path(inspect.getsourcefile(row.endpoint) or "")
    if row.method == "POST":
        return list(dict.fromkeys(_FORM_FIELD.findall(module.read_text("utf-8"))))
    files = [module] if module.parent.name == "console" else sorted(module.parent.glob("*.py"))
    return list(dict.fromkeys(name for path in files for name in _QUERY_FIELD.findall(path.read_text("utf-8"))))


def fill_with_hostile_segments(row: PageRoute, values: Mapping[str, str], segments: Mapping[str, str]) -> str:
    """Return a row's path with hostile segments in place of some of its parameters.

    Args:
        row: of the console's route table.
        values: of existing objects, by parameter.
        segments: quoted hostile segments, by parameter.
    """
    return _PARAMETER.sub(lambda match: segments.get(match[1], values.get(match[1], "1")), row.path)
