"""Makes the pages of `docs/reference/`, and that of the specification, from tables. `make reference` writes them.

A test holds each page to what this module makes, so no page can say anything that the code does not.
"""

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import typer.main
from msgspec import Meta
from msgspec.structs import fields

from docs.specification import ALIASES, grouped, rows
from docs.statements import holders, statements
from docs.testing_page import testing_parts
from waypost.admin.route import AnyFields
from waypost.admin.routes import ROUTES as ADMIN_ROUTES
from waypost.api.limits.rate_limits import RATES
from waypost.api.request_fields import wire_name
from waypost.api.routes import ROUTES
from waypost.base.telemetry.tracing import TraceStep
from waypost.cli.main import app
from waypost.config import Settings
from waypost.dispatch.retries import OPERATOR_RETRY_SCHEDULES_S
from waypost.domain.app import Hosting
from waypost.domain.callbacks.subscription import CALLBACK_VERSIONS, MODE_ALIASES, MODE_BITS, MODES
from waypost.domain.lifecycle import (
    EDITABLE,
    MESSAGE_TRANSITIONS,
    NOT_DELETABLE,
    OPERATOR_STATUSES,
    QUALITIES,
    SENDABLE,
    TEMPLATE_TRANSITIONS,
)
from waypost.domain.outcome import INVALID_RESPONSE_CODE, RetryReason
from waypost.domain.templates.rules import OPERATOR_RULES, SPEC_RULES, TemplateRule
from waypost.operations.metrics import METRICS
from waypost.operations.readiness import READINESS_CHECKS
from waypost.operators.cloud.error_codes import OPERATOR_ERROR_ROWS, OperatorErrorRow, ReportMode
from waypost.operators.cloud.responses import NOT_ACCEPTED_YET_STATUSES, REQUEST_TIMEOUT
from waypost.simulator.control.control_api import CALLS
from waypost.simulator.control.endpoints import declared_struct
from waypost.simulator.control.media import MediaBody
from waypost.simulator.control.request_structs import accepted_by, accepted_values
from waypost.simulator.faults.fault_kinds import CALL, FAULT_FILTERS, FAULT_TRIGGERS, WEBHOOK, WEBHOOKS
from waypost.simulator.faults.fault_kinds import FAULT_KINDS as FAULTS
from waypost.simulator.graph.call_names import CALL_NAMES
from waypost.simulator.settings import ChangeableSettings
from waypost.wire.callbacks.kinds import CALLBACK_KINDS as CALLBACKS
from waypost.wire.callbacks.kinds import CHANGE_KINDS
from waypost.wire.errors import ERRORS

FOLDER = Path(__file__).parent / "reference"
SPECIFICATION = Path(__file__).parent / "sources" / "specification.md"
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
        (f"`WAYPOST_{name.upper()}`", _default(field.default), field.description or "")
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
        "`message`, and the explanation travels in the header `Waypost-Reason`. The admin API has a header more: "
        "`Waypost-Error` is JSON of `field`, `rule`, which is the reason, and `accepted`.",
        table(("Reason", "Status", "`message`", "Source"), rows),
    )


def admin_page() -> str:
    """Every operation of the admin API."""
    operations = [
        (
            row.method,
            f"`{row.path.replace(':path', '')}`",
            _members(row.request_type),
            (row.function.__doc__ or "").split("\n")[0],
        )
        for row in ADMIN_ROUTES
    ]
    return page(
        "Admin API",
        "What whoever runs the service can do, by the commands too: JSON, with the admin token as `Authorization: "
        "Bearer …`, for a loopback or known host (decision 0081). `?` marks what may be absent. GET and DELETE take it "
        "in the query, all others in the body. [Refusals](errors.md) name the field in a header.",
        table(("Method", "Path", "Takes", "Does"), operations),
    )


def _members(taken: type[msgspec.Struct] | type[AnyFields] | None) -> str:
    """The fields of a struct as a table shows them."""
    if taken is None:
        return "nothing"
    if not issubclass(get_origin(taken) or taken, msgspec.Struct):
        return "`{kind?, base_url?, …}`: further fields are the operator adapter's"
    names = [one.name + ("" if one.required else "?") for one in fields(taken)]
    return f"`{{{', '.join(names)}}}`" if names else "nothing"


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
    return page(
        "Template rules",
        "What a draft is told at creation is the field, inside `buttons` and `cards` the place, and the text "
        "below. The first broken row answers, so rows further down can rely on those above. `POST "
        "/partner/app/{app_id}/templates/check` takes the same form, keeps nothing, and answers with every row that "
        "the draft breaks, its remedy, and who refuses it: `api` at creation, or the operator's `review`.",
        "## Of the API",
        "They refuse always, with 400.",
        _rules(SPEC_RULES),
        "## Of the operator",
        "They refuse at creation when `WAYPOST_STRICT` is set. Otherwise the draft is taken as PENDING, and the "
        "operator's review says so: the template becomes REJECTED, with its words as `reason`.",
        _rules(OPERATOR_RULES),
    )


def _rules(rules: tuple[TemplateRule, ...]) -> str:
    rows = [
        (f"`{rule.id}`", f"`{rule.field}`", rule.requirement, rule.fix_hint, _only(rule.hosting), rule.source)
        for rule in rules
    ]
    return table(("Rule", "Field", "Text", "Remedy", "Only", "Source"), rows)


def _only(hosting: Hosting | None) -> str:
    return f"{hosting.value.replace('_', '-')} apps" if hosting else "-"


def routes_page() -> str:
    """Every route of the partner and messaging APIs."""
    rows = [
        (
            row.method,
            f"`{row.path}`",
            row.credential,
            f"`{row.rate}`",
            ", ".join(f"`{wire_name(name)}`" for name in row.fields) or "nothing",
            ", ".join(map(str, row.statuses)),
            row.source,
        )
        for row in ROUTES
    ]
    return page(
        "Routes",
        "The partner API and the messaging API. Beside the answers named, any route may answer 413 to a body "
        "over 1 MiB and 500 with the documented text. Every response of `/sm/api/…`, the older address of the messaging "
        "API, has the header `Deprecation` ([0065](../decisions/0065-older-and-withdrawn-calls-are-served-with-the-effect-that-they.md)).",
        table(("Method", "Path", "Credential", "Rate", "Form", "Answers", "Source"), rows),
    )


def states_page() -> str:
    """Every state and where it may go."""
    parts = [
        "## Messages",
        table(
            ("From", "To"),
            [(f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to))) for one, to in MESSAGE_TRANSITIONS.items()],
        ),
        "A message that failed only because we doubted it (code 4002) still goes to `sent`, `delivered`, "
        "`read` or `deleted` when the operator says so later.",
        "## Templates",
        table(
            ("From", "To"),
            [(f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to))) for one, to in TEMPLATE_TRANSITIONS.items()],
        ),
        "What can be done with a template depends on its status. An approved or flagged one keeps its category.",
        table(
            ("Status", "Sent", "Edited", "Deleted"),
            [
                (
                    f"`{one}`",
                    _yes(one in SENDABLE),
                    _yes(one in EDITABLE),
                    _yes(TEMPLATE_TRANSITIONS[one] and one not in NOT_DELETABLE),
                )
                for one in TEMPLATE_TRANSITIONS
            ],
        ),
        "What the operator calls a status, and what it is called here:",
        table(("Operator", "Here"), [(f"`{word}`", f"`{status}`") for word, status in OPERATOR_STATUSES.items()]),
        "And likewise a quality:",
        table(("Operator", "Here"), [(f"`{word}`", f"`{ours}`") for word, ours in QUALITIES.items()]),
        "What the operator refuses, and what is tried again, is in [operator codes](operator-codes.md).",
    ]
    return page("States", "Where messages and templates stand, and where they may go.", *parts)


def operator_codes_page() -> str:
    """Every error code of the operator's, and the rhythm of what is tried again."""
    rows = [
        (
            _code(one),
            one.meaning,
            one.report_mode,
            _then(one),
            one.retry_scope if one.retry_reason and one.retry_reason is not RetryReason.ONCE else "",
            "its own" if one.partner_code is None else one.partner_code,
        )
        for one in OPERATOR_ERROR_ROWS
    ]
    return page(
        "Operator codes",
        "What each error code of the operator means for a submission: the code in the answer decides, never its "
        "HTTP status. A `failed` callback carries the operator's own code, except where only we can mend the cause.",
        "A code that is not here is tried again where the operator calls it passing (`is_transient`), leaves the "
        "message in doubt where the status is 5xx, and is final otherwise.",
        "A failed status is final always: the operator had taken the message, and it is the partner who sends it "
        "again or does not. 131049, for one, not before 24 hours.",
        table(("Code", "Means", "Told in", "Then", "Who waits", "Code in the callback"), rows),
        "## When it is tried again",
        "Each wait is spread by a fifth either way. A wish of the operator's (`Retry-After`) counts when it is longer, "
        "for at most an hour. Where the source, the business account or the operator account waits, everything of it waits for "
        "the first wait of its row. A message that has been tried, or has waited so, for `message_ttl_s` fails with the code "
        "of the last column above.",
        table(
            ("What keeps it", "Waits in seconds; the last repeats"),
            [(again, ", ".join(map(str, waits))) for again, waits in OPERATOR_RETRY_SCHEDULES_S.items()],
        ),
        "## Answers without a code",
        table(
            ("Answer", "Then"),
            [
                ("no connection", "tried again: nothing was handed over"),
                (" and ".join(map(str, NOT_ACCEPTED_YET_STATUSES)) + " without a reason", "tried again"),
                (f"4xx without a reason, but {REQUEST_TIMEOUT}", f"final, as {INVALID_RESPONSE_CODE}"),
                (
                    f"a broken or late answer, 200 or 5xx with what cannot be read, 3xx, {REQUEST_TIMEOUT}",
                    f"in doubt: never sent again; it fails as {INVALID_RESPONSE_CODE} unless a status of it comes",
                ),
            ],
        ),
        "A template or an upload that is in doubt is handed in again: that does nothing twice.",
    )


def _code(row: OperatorErrorRow) -> str:
    if row.last_code is not None:
        return f"{row.code} to {row.last_code}"
    return str(row.code) if row.subcode is None else f"{row.code}, subcode {row.subcode}"


def _then(row: OperatorErrorRow) -> str:
    if row.retry_reason is None:
        return "final"
    if row.retry_reason is RetryReason.ONCE:
        return "one more try, then final"
    return f"tried again: {row.retry_reason}" if row.report_mode is not ReportMode.LATER else "final"


def _yes(claim: object) -> str:
    return "yes" if claim else "no"


BRINGS = {one.mode for one in CALLBACKS}


def callbacks_page() -> str:
    """Every kind of callback, and every mode."""
    rows = [
        (
            f"`{one.mode}`" if one.mode else "any",
            f"`{one.type}`" if one.type else "",
            f"`{one.inner_type}`" if one.inner_type else "",
            f"`{one.field}`" if one.field else "",
            one.value_content,
            one.occasion,
            one.source,
        )
        for one in CALLBACKS
    ]
    return page(
        "Callbacks",
        "Every kind of callback. A subscription gets those of its modes, in its version. A kind without a `type` has no "
        "body in version 2, one without a `field` none in version 3.",
        "[Receive callbacks](../how-to/receive-callbacks.md) shows bodies and a receiver.",
        table(("Mode", "`type`", "`payload.type`", "`field`", "In the value", "When", "Source"), rows),
        "## Fields of the operator",
        "Every documented field of the operator's webhooks, and what it becomes. One that has no shape in version 2 comes in "
        "version 3 as it came, with `gs_app_id`, and with `gs_template_id` where it is about a template of yours. A field "
        "that is not in the table comes in the same way, under `OTHERS` "
        "([decision 0060](../decisions/0060-every-field-of-the-operator-is-called-back.md)).",
        table(
            ("Field", "Version 2", "Version 3", "Mode", "Source"),
            [
                ("`messages`", "see above", "see above", "by what is in it", "facts 4.4, 6, 7"),
                *(
                    (
                        f"`{one.field}`",
                        f"`{one.type}`, `{one.inner_type}`" if one.type else "nothing",
                        "as it came",
                        f"`{one.mode}`",
                        one.source,
                    )
                    for one in CHANGE_KINDS.values()
                ),
            ],
        ),
        "## Modes",
        "`mode` of a subscription is the sum of its modes' bits. `MODE_ALL` is every mode in version 3, and adds "
        "nothing in version 2.",
        table(
            ("Mode", "Bit", "Also written"),
            [
                (
                    f"`{mode}`",
                    MODE_BITS.get(mode, "none known" if mode in BRINGS else "none known; nothing comes"),
                    ", ".join(f"`{one}`" for one, of in MODE_ALIASES.items() if of == mode),
                )
                for mode in MODES
            ],
        ),
        "## Versions",
        table(("Version", "Bodies"), CALLBACK_VERSIONS.items()),
    )


def testing_page() -> str:
    """Every fixture and call for tests of other projects."""
    return page("Testing", *testing_parts(table))


def faults_page() -> str:
    """Every kind of fault, when it may fire, and what it may be for."""
    parts: list[str] = []
    for on, title in ((CALL, "## Of calls"), (WEBHOOK, "## Of webhooks")):
        rows = [
            (
                f"`{one.name}`",
                one.parameter.accepted,
                "; ".join(f"`{more.name}`: {more.accepted}" for more in one.extra_parameters),
                one.each + (f", `{one.only_call}` alone" if one.only_call else ""),
                one.effect,
                one.source,
            )
            for one in FAULTS
            if one.target == on
        ]
        head = ("`what`", "Value", "Beside it", "Counted by", "What the business sees", "Source")
        parts += [title, table(head, rows)]
    return page(
        "Faults",
        "What the simulator can be told to do wrong. A fault is an object with `on`, with `call` or `webhook` (a name below, "
        "or `*`, which is also what its absence means), perhaps with filters, `condition` (always unless told otherwise) and `what`. "
        "`until_ms` ends it by the clock, `seed` is what chance is drawn from, `label` is for people.",
        "[Simulate failures](../how-to/simulate-failures.md) shows how to arm one.",
        *parts,
        "## When",
        table(
            ("`condition`", "Value", "Fires"), [(f"`{one.name}`", one.accepted, fires) for one, fires in FAULT_TRIGGERS]
        ),
        "## Filters",
        table(("Member", "Value"), [(f"`{name}`", text) for name, text in FAULT_FILTERS.items()]),
        "## Calls",
        ", ".join(f"`{name}`" for name in CALL_NAMES) + ".",
        "## Webhooks",
        ", ".join(f"`{name}`" for name in WEBHOOKS) + ".",
    )


def control_page() -> str:
    """Every call of the simulator's control API, and its settings."""
    read_otherwise = {
        ("PUT", "/control/settings"): "some of the [settings](#settings)",
        ("POST", "/control/faults"): "a [fault](faults.md), or `{faults: a list of them, seed?}`",
        ("POST", "/control/media"): f"`{accepted_by(MediaBody)}`; or the file itself, and the others in the query",
    }
    calls: list[tuple[object, ...]] = []
    for method, path, function in CALLS:
        struct = declared_struct(function)
        takes = read_otherwise.get((method, path)) or (f"`{accepted_by(struct)}`" if struct else "nothing")
        calls.append((method, f"`{path}`", takes, (function.__doc__ or "").partition("\n")[0]))
    settings = [
        (
            f"`{one.name}`",
            accepted_values(one.type),
            _default(one.default).replace("not set", "null"),
            next(_descriptions(one.type), ""),
        )
        for one in fields(ChangeableSettings)
    ]
    return page(
        "Control API",
        "What no client of the operator may see or move: the simulator's phones, reviews, clock, faults and settings. "
        "A request with a body has the `Content-Type` `application/json`; a simulator that was started with a control token "
        "takes it as `Authorization: Bearer …`. An error is "
        '`{"error": "…", "field": "…", "rule": "…", "accepted": "…"}`: `error` says the others in one sentence, and a '
        "`hint`, where there is one, names the nearest name.",
        "## Calls",
        "`?` marks what may be absent. A GET takes it in the query, all others in the body.",
        table(("Method", "Path", "Takes", "Does"), calls),
        "## Settings",
        "`PUT /control/settings` changes them while the simulator runs; they stay changed over a restart.",
        table(("Setting", "Accepted", "Default", "Meaning"), settings),
    )


def _descriptions(type_: Any) -> Iterator[str]:
    return (one.description for one in get_args(type_)[1:] if isinstance(one, Meta) and one.description)


def metrics_page() -> str:
    """Every metric, every check of readiness, every step that is logged and traced."""
    metrics = [
        (f"`waypost_{row.name}`", row.kind.value, ", ".join(f"`{name}`" for name in row.labels), row.scope, row.meaning)
        for row in METRICS
    ]
    checks = [(f"`{name}`", means) for name, (_, means) in READINESS_CHECKS.items()]
    steps = [
        (f"`{step.value.text}`", f"`{step.value.part}`", ", ".join(f"`{name}`" for name in step.value.facts))
        for step in TraceStep
    ]
    return page(
        "Metrics, checks and steps",
        "What a running service says of itself. How to use it: [watch it run](../how-to/watch-it-run.md).",
        "## Metrics",
        "`GET /metrics`. Every sample also has the label `process`. What is of the store is the same whichever "
        "process is asked; the rest is what that process has counted since it started. `process_…` metrics of "
        "the machine come with them.",
        table(("Metric", "Kind", "Labels", "Of", "Meaning"), metrics),
        "## Checks",
        "`GET /readyz` asks each, and answers 503 where one fails.",
        table(("Check", "Passes when"), checks),
        "## Steps",
        "Of every message: a record at log level `debug`, at `info` where it failed, and a span. Each has "
        "`message_id`, these facts where they are known, and `took_ms` where the step takes time.",
        table(("Record", "Part", "Facts"), steps),
    )


def commands_page() -> str:
    """Every command with its help."""
    parts = [
        f"## `{name}`\n\n{command.help or ''}\n\n```text\n{_usage(name, command)}\n```"
        for name, command in _commands("waypost", typer.main.get_command(app))
    ]
    return page("Commands", "Each command also answers `--help`.", *parts)


def compatibility_page() -> str:
    """Every statement of the specification."""
    held = holders()
    parts: list[str] = []
    rows: list[tuple[str, ...]] = []
    everything = statements()
    for at, one in enumerate(everything):
        if at == 0 or everything[at - 1].section != one.section:
            parts.append(f"## {one.section}")
            rows = []
        does = f" *{one.does}*" if one.does else ""
        rows.append((f"{one.says}{does}", one.verdict, _holders(held.get(one.key, []))))
        if at + 1 == len(everything) or everything[at + 1].section != one.section:
            parts.append(table(("Statement", "Verdict", "Held by"), rows))
    counts = Counter(one.verdict for one in everything)
    cases = sum("#" in name for names in held.values() for name in names)
    return page(
        "Compatibility",
        f"{len(everything)} statements of the specification: {counts['kept']} kept, {counts['differs']} differ, "
        f"and {counts['answered']} that it leaves open are answered. {cases} times a wire case holds one; "
        "what we do is in italics where there is more to say. Cases are in `tests/wire/cases`.",
        *parts,
    )


def specification_page() -> str:
    """Every statement under the names that code and wire cases cite it by."""
    parts: list[str] = []
    for level, heading, part in grouped():
        also = ", ".join(f'"{name}"' for name in ALIASES.get(heading, ()))
        parts += [f"{'#' * level} {heading}", *([f"Also cited as {also}."] if also else [])]
        parts.append(table(("Statement", "Here"), rows(part)))
    return page(
        "Specification",
        "The statements of the specification, in our words, cited as `spec, Limits`. "
        "[Compatibility](../reference/compatibility.md) says which tests hold each.",
        *parts,
    )


def _holders(names: list[str]) -> str:
    """At most three, by name; the rest as a number."""
    parts = [name.partition("#" if "#" in name else "::") for name in names[:3]]
    shown = [f"[{case}](../../{file})" for file, _, case in parts]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# fmt: off
PAGES: dict[str, Callable[[], str]] = {
    "settings.md":       settings_page,
    "admin.md":          admin_page,
    "errors.md":         errors_page,
    "callbacks.md":      callbacks_page,
    "rates.md":          rates_page,
    "template-rules.md": rules_page,
    "routes.md":         routes_page,
    "states.md":         states_page,
    "operator-codes.md": operator_codes_page,
    "commands.md":       commands_page,
    "control.md":        control_page,
    "faults.md":         faults_page,
    "metrics.md":        metrics_page,
    "testing.md":        testing_page,
    "compatibility.md":  compatibility_page,
}
# fmt: on


def page(title: str, first: str, *parts: str) -> str:
    """One page."""
    return "\n\n".join((f"# {title}", MADE, *map(wrapped, (first, *parts)))) + "\n"


def wrapped(part: str) -> str:
    """Prose in lines of at most 118 characters; tables, headings, lists and code as they are."""
    return part if part.startswith(("|", "#", "- ", "```")) else textwrap.fill(part, 118)


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
    SPECIFICATION.write_text(specification_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
