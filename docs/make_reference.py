"""Makes the pages of `docs/reference/` from the tables in the code. `make reference` writes them.

A test holds each page to what this module makes, so no page can say anything that the code does not.
"""

import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer.main

from waypost.accept.limits import RATES
from waypost.accept.routes import ROUTES
from waypost.cli.main import app
from waypost.config import Settings
from waypost.dispatch.retries import SCHEDULES_S
from waypost.domain.lifecycle import MESSAGE_MOVES, TEMPLATE_MOVES
from waypost.domain.template import Draft
from waypost.domain.template_rules import RULES
from waypost.operators.cloud.codes import TRY_AGAIN
from waypost.wire.errors import ERRORS

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Made from the tables in the code by `make reference`. Do not edit. -->"


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def cell(value: object) -> str:
    """A value as a table shows it."""
    return str(value).replace("|", "\\|").replace("\n", " ").strip() or "-"


def settings_page() -> str:
    """Every setting."""
    rows = [
        (
            f"`WAYPOST_{name.upper()}`",
            _default(field.default),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    return page(
        "Settings",
        "Environment variables of `waypost serve`, and of every command that opens a store.",
        table(("Variable", "Default", "Meaning"), rows),
    )


def errors_page() -> str:
    """Every refusal."""
    rows = [
        (
            f"`{reason.value}`",
            row.status,
            f"`{row.text}`" if row.text else "names the field, the rule and what would be accepted",
            row.source,
        )
        for reason, row in ERRORS.items()
    ]
    return page(
        "Refusals",
        'Every refusal is `{"status":"error","message":"…"}`. Where a text is documented it is the whole '
        "`message`, and the explanation travels in the header `Waypost-Reason`.",
        table(("Reason", "Status", "`message`", "Source"), rows),
    )


def rates_page() -> str:
    """Every rate."""
    rows = [
        (f"`{name}`", rate.at_most, f"{rate.within_ms // 1000} s", rate.per, rate.source)
        for name, rate in RATES.items()
    ]
    return page(
        "Rates",
        "One moving window per row and per what it counts. Over it the answer is 429 with `Retry-After`. "
        "Refused requests do not spend. `WAYPOST_RATES=false` switches all of them off.",
        table(("Rate", "At most", "Within", "Per", "Source"), rows),
    )


def rules_page() -> str:
    """Every rule of a template."""
    rows: list[tuple[object, ...]] = []
    for rule in RULES:
        wrong = rule.must(_breaking()) or rule.must(Draft()) or ""
        rows.append(
            (
                f"`{rule.field}`",
                wrong or (rule.must.__doc__ or "").split("\n")[0],
                "at review, or at creation when strict" if rule.operators else "at creation",
                rule.source,
            )
        )
    return page(
        "Template rules",
        "The first broken row answers. The text is what a draft is told that breaks the row; the numbers at "
        "its end are of the draft that this page was made with.",
        table(("Field", "Told", "When", "Source"), rows),
    )


def routes_page() -> str:
    """Every route of the partner and messaging APIs."""
    rows = [
        (
            row.method,
            f"`{row.path}`",
            row.credential,
            f"`{row.rate}`",
            ", ".join(f"`{name}`" for name in row.form) or "no form",
            ", ".join(map(str, row.answers)),
            row.source,
        )
        for row in ROUTES
    ]
    return page(
        "Routes",
        "The partner API and the messaging API. Beside the answers named, any route may answer 413 to a body "
        "over 1 MiB and 500 with the documented text.",
        table(("Method", "Path", "Credential", "Rate", "Form", "Answers", "Source"), rows),
    )


def states_page() -> str:
    """Every state and where it may go."""
    parts = [
        "## Messages",
        table(
            ("From", "To"),
            [
                (f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to)))
                for one, to in MESSAGE_MOVES.items()
            ],
        ),
        "A message that failed only because we doubted it (code 4002) still goes to `sent`, `delivered` or "
        "`read` when the operator says so later.",
        "## Templates",
        table(
            ("From", "To"),
            [
                (f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to)))
                for one, to in TEMPLATE_MOVES.items()
            ],
        ),
        "## What is tried again at the operator",
        "Every code not named here is final: the message fails with it.",
        table(
            ("Code", "Why", "Waits in seconds; the last repeats"),
            [
                (code, why, ", ".join(map(str, SCHEDULES_S.get(code, ()))) or "as an outage")
                for code, why in TRY_AGAIN.items()
            ],
        ),
    ]
    return page("States", "Where messages and templates stand, and where they may go.", *parts)


def commands_page() -> str:
    """Every command with its help."""
    parts = [
        f"## `{name}`\n\n{command.help or ''}\n\n```text\n{_usage(name, command)}\n```"
        for name, command in _commands("waypost", typer.main.get_command(app))
    ]
    return page("Commands", "Each command also answers `--help`.", *parts)


# fmt: off
PAGES: dict[str, Callable[[], str]] = {
    "settings.md":       settings_page,
    "errors.md":         errors_page,
    "rates.md":          rates_page,
    "template-rules.md": rules_page,
    "routes.md":         routes_page,
    "states.md":         states_page,
    "commands.md":       commands_page,
}
# fmt: on


def page(title: str, first: str, *parts: str) -> str:
    """One page."""
    return "\n\n".join((f"# {title}", MADE, *map(wrapped, (first, *parts)))) + "\n"


def wrapped(part: str) -> str:
    """Prose in lines of at most 118 characters; tables, headings and code as they are."""
    return part if part[0] in "|#" else textwrap.fill(part, 118)


def _breaking() -> Draft:
    """A draft that breaks every row that a short one does not."""
    from waypost.domain.buttons import Button, ButtonKind

    buttons = tuple(
        Button(kind, "x" * 30, url="ftp://nowhere/{{1}}", phone_number="none")
        for kind in (
            ButtonKind.QUICK_REPLY, ButtonKind.URL, ButtonKind.QUICK_REPLY, ButtonKind.PHONE_NUMBER,
            ButtonKind.URL, ButtonKind.URL, ButtonKind.PHONE_NUMBER, *[ButtonKind.QUICK_REPLY] * 4,
        )
    )  # fmt: skip
    return Draft(
        element_name="X" * 181,
        category="NONE",
        template_type="NONE",
        vertical="x" * 181,
        content="{{1}} {{3}}" + "x" * 1100,
        example="no",
        header="{{1}} {{3}}" + "x" * 60,
        example_header="no",
        footer="x" * 61,
        buttons=buttons,
    )


def _default(value: object) -> str:
    if value is None:
        return "not set"
    if value == ():
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _commands(name: str, command: Any) -> Iterable[tuple[str, Any]]:
    inner: dict[str, Any] | None = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, one in inner.items():
        yield from _commands(f"{name} {word}", one)


def _usage(name: str, command: Any) -> str:
    words = [name]
    for parameter in command.params:
        option = max(parameter.opts, key=len)
        if parameter.param_type_name == "argument":
            words.append(str(parameter.name).upper())
        elif option != "--help":
            words.append(f"[{option}]" if not parameter.required else option)
    return " ".join(words)


def main() -> int:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
