"""Responses of the APIs as text: a table for each list, a line for each other field."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

EMPTY: Final = "-"
"""A field without a value."""
_TIMES: Final = tuple(f"_{name}_ms" for name in ["on", "at", "due", "from", "to", "since", "now", "until", "attempt"])
"""Endings of the names of times, each a whole word; other milliseconds are durations."""
_BODY: Final = "body"
_MAX_BODY_CHARS: Final = 40
"""Of a body in a table; `--json` prints all of it."""
_NO_UNIT: Final = "_on_ms"
_SHARES: Final = ("under_5_s", "over_10_s")
"""Names of shares, from 0 to 1."""
_GAP: Final = "  "

View = Mapping[str, Any]
"""A JSON object of a response."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a listing."""

    columns: tuple[str, ...]  # names of the fields; `a.b` is a field of a nested object, and a heading follows a colon
    # names of nested lists, outermost first: one line for each item of the innermost, and one for an item that has
    # none. Their columns are `member.field`.
    members: tuple[str, ...] = ()


_COLUMNS: Final = {  # by the name of the list, each column with its heading if that is not its name
    "templates": "elementName:name, status, category, templateType:type, languageCode:language, reason, id",
    "attempts": "at_ms:at, kind, status, error, duration_ms:ms, response_body:response",
    "partners": "id, name, email, contact_name, phone_number, admin",
    "client_secrets": "id, created_on_ms, expires_on_ms, expired",
    "api_keys": "id, name, created_on_ms",
    "apps": (
        "id, name, partner_id:partner, phone_number, phone_number_id, business_account_id:business account, live, "
        "hosting"
    ),
    "rates": "rate, per, in_force, source, documented, service, app",
    "operator_accounts": (
        "id, kind, version, base_url, business_accounts.id:business account, business_accounts.partner_id:partner, "
        "apps.name:app, apps.phone_number:phone number"
    ),
    "numbers": (
        "id, display_phone_number, verified_name, status, quality_rating, name_status, throughput.level:throughput"
    ),
    "dead_letters": "position, queue, ref, defects, note",
    "subscriptions": "id, app_id, tag, state, circuit, waiting, replaying, url",
    "requests": "at_ms:at, status, route, app_id:app, credential, error, field, took_ms:ms, id",
    "entries": "id, at_ms, actor, partner_id:partner, action, subject, status, detail",
}
_MEMBERS: Final = {"operator_accounts": ("business_accounts", "apps")}
TABLES: Final = {name: Columns(tuple(text.split(", ")), _MEMBERS.get(name, ())) for name, text in _COLUMNS.items()}
"""Used if the rows have all of the columns."""


def format_view(view: View) -> Iterator[str]:
    """Yield the lines of a response: its single fields, then a table for each list of objects."""
    if by_name := _rows_by_name(view):
        yield from format_table(by_name, choose_columns("", by_name))
        return
    lists = {name: rows for name, rows in view.items() if _is_list_of_objects(rows)}
    fields = list(_flatten({name: value for name, value in view.items() if name not in lists}))
    is_listing = len(lists) == 1 and all(value is None for _, value in fields)
    if fields and not is_listing:
        yield from format_fields(fields)
    for name, rows in lists.items():
        if not is_listing:
            yield ""
            yield f"{name.replace('_', ' ')}:"
        if rows:
            yield from format_table(rows, choose_columns(name, rows))
        else:
            yield f"no {name.replace('_', ' ')}"


def format_fields(fields: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Yield one line for each field, its value aligned."""
    width = max(len(_label(name)) for name, _ in fields)
    for name, value in fields:
        first, *more = format_cell(name, value).splitlines() or [""]
        yield f"{_label(name):{width}}{_GAP}{first}".rstrip()
        yield from (f"{'':{width}}{_GAP}{line}".rstrip() for line in more)


def format_table(rows: Sequence[View], table: Columns) -> Iterator[str]:
    """Yield a line of headings, and one for each row; a column is as wide as its widest cell."""
    columns = [name.partition(":") for name in table.columns]
    headings = [(heading or _label(name).replace(".", " ")).upper() for name, _, heading in columns]
    cells = [
        [_shorten(name, _join_lines(format_cell(name, _find(row, name)))) for name, _, _ in columns]
        for item in rows
        for row in _expand(item, table.members)
    ]
    yield from align_columns([headings, *cells])


def align_columns(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines of cells with aligned columns."""
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        yield _GAP.join(padded).rstrip()


def choose_columns(name: str, rows: Sequence[View]) -> Columns:
    """Return the columns of a list by its name; otherwise every field with a single value, in the order of the rows."""
    table = TABLES.get(name)
    if table and all(column.partition(":")[0] in rows[0] for column in table.columns if "." not in column):
        return table
    names = dict.fromkeys(field for row in rows for field, value in _flatten(row) if not _is_list_of_objects(value))
    return Columns(tuple(names))


def format_cell(name: str, value: Any) -> str:
    """Return a value as text; a time is in UTC, and what has no value is a hyphen."""
    match value:
        case None | "" | [] | {}:
            return EMPTY
        case bool():
            return "yes" if value else "no"
        case int() | float() if _is_time(name):
            return format_moment(int(value)) if value else EMPTY
        case int() | float() if name in _SHARES:
            return f"{value * 100:.4g} %"
        case list():
            items = cast("list[Any]", value)
            return ", ".join(format_cell("", item) for item in items)
        case dict():
            members = cast("dict[str, Any]", value)
            return ", ".join(f"{key}={format_cell(key, item)}" for key, item in members.items())
        case _:
            return str(value)


def format_moment(time_ms: int) -> str:
    """Return a time as text in UTC, with milliseconds only if it has some."""
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    return moment.isoformat(" ", "seconds").removesuffix("+00:00") + "Z"


def _rows_by_name(view: View) -> list[View]:
    """Return one row for each member if all are objects with the same single values; otherwise none."""
    rows = [cast("View", row) for row in view.values() if isinstance(row, dict)]
    is_uniform = len(rows) == len(view) > 1 and all(row.keys() == rows[0].keys() for row in rows)
    if not is_uniform or any(isinstance(value, (dict, list)) for row in rows for value in row.values()):
        return []
    return [{"name": name.replace("_", " "), **row} for name, row in zip(view, rows, strict=True)]


def _flatten(view: View, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield fields by name; those of a nested object with its name before theirs."""
    for name, value in view.items():
        if isinstance(value, dict) and value:
            yield from _flatten(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _expand(item: View, members: Sequence[str]) -> Iterator[View]:
    """Yield one row for each item of the innermost nested list, or the item itself if it has none."""
    if not members:
        yield item
        return
    name, *inner = members
    nested: list[View] = item.get(name) or []
    if not nested:
        yield {**item, name: {}}
    for child in nested:
        for row in _expand(child, inner):
            yield {**row, **item, name: row, **{deeper: row.get(deeper) for deeper in inner}}


def _find(row: View, name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = cast("View", value).get(part) if isinstance(value, Mapping) else None
    return value


def _is_list_of_objects(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    items = cast("list[Any]", value)
    return all(isinstance(item, dict) for item in items)


def _label(name: str) -> str:
    """Return the name of a field as words: a time without its unit."""
    if name.endswith(_NO_UNIT):
        return name.removesuffix(_NO_UNIT).replace("_", " ")
    return (name.removesuffix("_ms") if _is_time(name) else name).replace("_", " ")


def _is_time(name: str) -> bool:
    return f"_{name.rpartition('.')[2]}".endswith(_TIMES)


def _shorten(name: str, text: str) -> str:
    is_long = name.endswith(_BODY) and len(text) > _MAX_BODY_CHARS
    return f"{text[: _MAX_BODY_CHARS - 1]}…" if is_long else text


def _join_lines(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split(" "))


def _width(text: str) -> int:
    """Return the columns of a terminal that a text takes: a wide character takes two, a combining one none."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text)
