"""The fields of the console's acts and queries: as its forms have them, and as its code asks for them."""

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from waypost.assembly.dev import demo
from waypost.console.route import PageRoute

_ASKED: Final = re.compile(
    r"""(?:visit\.(?:field|flag|file|query)|given\.get|typed\.get|query_params\.get|form\.get|_seconds|_field|_flag)\(\s*(?:visit,\s*)?["']([a-z][\w.-]*)["']"""
)
_QUERIED: Final = re.compile(r"""(?:visit\.query|query_params\.getlist)\(\s*["']([a-z][\w.-]*)["']""")
_PARAMETER: Final = re.compile(r"\{(\w+)(:path)?\}")

# fmt: off
SENSIBLE: Final[Mapping[str, str]] = {  # what is sent in a field beside what stands in its form; of one address, or of all pages, where it says so
    "text": "Hello", "latitude": "52.5", "longitude": "13.4", "number": "15550009001", "email": "a@b.test",
    "emoji": "😀", "response": '{"guests": "2"}', "order": '{"catalog_id": "1", "product_items": [{"product_retailer_id": "rye", "quantity": 1, "item_price": 2, "currency": "EUR"}]}',
    "script": '[{"on": "message", "do": "answer", "text": "Hi"}]', "seed": "7", "to": "15550002077", "user_id": "", "username": "ann",
    "hours": "1", "after_s": "1", "mode": "after", "json": '{"on": "call", "call": "messages.send", "phone": "15559990000", "what": {"error": 131000}}',
    "factor": "2", "by": "1", "unit": "seconds", "theme": "dark", "next": "/", "password": demo.PASSWORD, "old": demo.PASSWORD,
    "new": "Correct-horse-1", "again": "Correct-horse-1", "url": "http://127.0.0.1:9/a", "version": "2", "life": "week",
    "day": "2027-01-01", "key_name": "a till", "token_name": "a till", "typed": demo.APP_NAME, "first": "15557000000", "count": "2",
    "destination": demo.DESTINATION, "which": "both", "do": "check", "index": "0", "operator_account_id": "demo",
    "headers": "X-Shop: 1", "GET to": "2027-01-01T00:00", "/phones/{phone}/chats/{number}/older before": "20", "show": demo.DESTINATION, "chats": demo.SOURCE, "q": "a", "from": "2026-11-22T00:00", "keep_old_for_s": "86400", "kind": "auto", "explanation": "No", "recommendation": "Yes", "reason": "INVALID_FORMAT",
}
# fmt: on
MORE: Final[Mapping[str, tuple[str, ...]]] = {  # what acts ask for in another module than their own
    "/phones/{phone}/items/{position}/location": ("latitude", "longitude", "name", "address"),
    "/phones/{phone}/items/{position}/contact": ("name", "number", "email"),
}
FRESH: Final[Mapping[str, str]] = {
    "name": "spare-{}",
    "tag": "spare-{}",
    "elementName": "spare_{}",
    "first": "15557{:06}",
}
"""What must be new each time."""


@dataclass
class Form:
    """The fields of one form.

    Attributes:
        choices: of each field, what may be chosen in it; the first is what stands there.
        files: those that take a file.
        method: by which it is sent.
    """

    method: str = "POST"
    choices: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    files: set[str] = field(default_factory=set[str])

    def add(self, name: str, value: str) -> None:
        """One more choice of a field."""
        known = self.choices.setdefault(name, [])
        if value not in known:
            known.append(value)

    @property
    def names(self) -> list[str]:
        """Of all fields, in order."""
        return [*self.choices, *sorted(self.files - self.choices.keys())]


class _Reader(HTMLParser):
    """Collects the forms of a page, by where they are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, Form]] = []
        self._open: Form | None = None
        self._by_id: dict[str, Form] = {}
        self._select: tuple[Form, str] | None = None
        self._written: tuple[Form, str, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        for name in ("href", "src"):
            if told.get(name, "").startswith("/"):
                self.found.append((told[name], Form("GET")))
        if tag == "form":
            self._open = Form()
            if told.get("id"):
                self._open = self._by_id.setdefault(told["id"], self._open)
            self._open.method = told.get("method", "get").upper()
            self.found.append((told.get("action", ""), self._open))
            return
        of = self._by_id.get(told["form"]) if told.get("form") else self._open
        if tag == "option" and self._select is not None:
            form, name = self._select
            form.add(name, told.get("value", ""))
        if of is None or not told.get("name"):
            return
        name = told["name"]
        if tag == "select":
            self._select = (of, name)
        elif tag == "textarea":
            self._written = (of, name, [])
        elif tag == "input" and told.get("type") == "file":
            of.files.add(name)
        elif tag in ("input", "button"):
            of.add(name, told.get("value", "on" if told.get("type") in ("checkbox", "radio") else ""))

    def handle_data(self, data: str) -> None:
        if self._written is not None:
            self._written[2].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = None
        elif tag == "textarea" and self._written is not None:
            form, name, words = self._written
            form.add(name, "".join(words))
            self._written = None


def forms_of(page: str) -> list[tuple[str, Form]]:
    """The forms of a page: where each is sent, and its fields."""
    reader = _Reader()
    reader.feed(page)
    return reader.found


@dataclass
class Address:
    """What is known of one row of the console's table.

    Attributes:
        form: all fields of it: those of its forms, and those that its module asks for.
        paths: of things that are there: to which forms on pages are sent, or to which they lead.
    """

    form: Form
    paths: list[str]


def known_of(row: PageRoute, found: Iterable[tuple[str, Form]]) -> Address:
    """Collect what forms say of a row. What is asked of a list is asked of its stream and its further pages, too."""
    place = re.compile(_PARAMETER.sub("[^/]+", row.path) + "$")
    end = row.path[row.path.rfind("/") :]
    address = Address(Form(row.method), [])
    for action, one in found:
        where = action.partition("?")[0]
        if one.method != row.method or not where:
            continue
        if place.match(where) and where not in address.paths:
            address.paths.append(where)
        if place.match(where) or (row.method == "GET" and place.match(where + end)):
            for name, values in one.choices.items():
                for value in values:
                    address.form.add(name, value)
            address.form.files |= one.files
    for name in (*asked_in(row), *MORE.get(row.path, ())):
        address.form.choices.setdefault(name, [])
        if name in ("file", "header-file"):
            address.form.files.add(name)
    address.form.choices.pop("csrf", None)
    for name in address.form.files:
        address.form.choices.pop(name, None)
    for name, values in address.form.choices.items():
        sensible = next(
            (SENSIBLE[key] for key in (f"{row.path} {name}", f"{row.method} {name}", name) if key in SENSIBLE), ""
        )
        if sensible not in values and (sensible or not values):
            values.insert(0 if values in ([], [""]) else len(values), sensible)
    return address


def asked_in(row: PageRoute) -> list[str]:
    """The names of fields that an act's module asks a form for, or the package of a page a query."""
    place = Path(inspect.getsourcefile(row.endpoint) or "")
    if row.method == "POST":
        return list(dict.fromkeys(_ASKED.findall(place.read_text("utf-8"))))
    files = [place] if place.parent.name == "console" else sorted(place.parent.glob("*.py"))
    return list(dict.fromkeys(name for one in files for name in _QUERIED.findall(one.read_text("utf-8"))))


def filled_oddly(row: PageRoute, values: Mapping[str, str], odd: Mapping[str, str]) -> str:
    """A row's path with odd segments in place of some of its parameters.

    Args:
        row: of the console's table.
        values: what is there, by the parameter.
        odd: quoted segments, by the parameter.
    """
    return _PARAMETER.sub(lambda found: odd.get(found[1], values.get(found[1], "1")), row.path)
