"""Generate the pages of `docs/reference/`, and the specification page, from the tables in the code.

`make reference` writes them, and a test compares each page with the output of this module. So the pages always
match the code.
"""

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
import typer.main
from msgspec import Meta, UnsetType
from msgspec.structs import fields

from docs.coverage import CoverageRow, coverage, coverage_parts
from docs.decision_pages import INDEX, decisions
from docs.error_texts import case_texts, control_texts, setting_texts
from docs.operation_table import operation_table
from docs.promises import promise_parts
from docs.source_pages import NAMES, source_parts
from docs.specification import ALIASES, grouped, rows
from docs.statements import holders, statements
from docs.testing_page import testing_parts
from waypost.admin.operation import AdminRoute, AnyFields, field_meanings
from waypost.admin.routes import ROUTES as ADMIN_ROUTES
from waypost.api.routes import ROUTES
from waypost.base.invalid_values import accepted_by, accepted_values
from waypost.base.telemetry.tracing import TraceStep
from waypost.cli.setting_sources import CONFIG_FILE, CONFIG_VARIABLE
from waypost.cli.variables import COMMAND_SECRETS, OTHER_VARIABLES
from waypost.client.operations import TABLE
from waypost.config import SECRETS, Settings
from waypost.dispatch.operator_circuits import OPERATOR_PROBE_DELAYS_S
from waypost.dispatch.retries import OPERATOR_RETRY_SCHEDULES_S
from waypost.domain.app import Hosting
from waypost.domain.callbacks import CALLBACK_VERSIONS, MODE_ALIASES, MODE_BITS, MODES
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
from waypost.domain.rates import APP_RATES, RATES, SETTABLE_RATES
from waypost.domain.templates.rules import OPERATOR_RULES, SPEC_RULES, TemplateRule
from waypost.operations.metrics import METRICS
from waypost.operations.readiness import READINESS_CHECKS
from waypost.operators.cloud.error_codes import OPERATOR_ERROR_ROWS, OperatorErrorRow, ReportMode
from waypost.operators.cloud.responses import NOT_ACCEPTED_YET_STATUSES, REQUEST_TIMEOUT
from waypost.simulator.control.control_api import CALLS
from waypost.simulator.control.endpoints import declared_struct, response_struct
from waypost.simulator.control.media import MediaBody
from waypost.simulator.faults.fault_kinds import CALL, FAULT_FILTERS, FAULT_TRIGGERS, WEBHOOK, WEBHOOKS
from waypost.simulator.faults.fault_kinds import FAULT_KINDS as FAULTS
from waypost.simulator.graph.routes import CALL_NAMES
from waypost.simulator.settings import ChangeableSettings
from waypost.wire.callbacks.kinds import CALLBACK_KINDS as CALLBACKS
from waypost.wire.callbacks.kinds import CHANGE_KINDS
from waypost.wire.errors import ERRORS

FOLDER = Path(__file__).parent / "reference"
SPECIFICATION = Path(__file__).parent / "sources" / "specification.md"
PROMISES = Path(__file__).parent / "contributing" / "promises.md"
GENERATED = "<!-- Generated from {} by `make reference`. Do not edit. -->"


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def cell(value: object) -> str:
    """Return a value as the text of a table cell."""
    return str(value).replace("|", "\\|").replace("\n", " ").strip() or "-"


def settings_page() -> str:
    """Return the page of the settings."""
    rows = [
        (f"`WAYPOST_{name.upper()}`", _default(field.default), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    file_names = [f"`WAYPOST_{name.upper()}_FILE`" for name in SECRETS]
    others = [
        (f"`{name}`", f"{reader}{'; or `' + name + '_FILE`' if name in COMMAND_SECRETS else ''}")
        for name, reader in OTHER_VARIABLES.items()
    ]
    return page(
        "Settings",
        "Settings of `waypost serve` and `waypost dev`, and of every command that opens a store. The first of these that "
        "has a setting is used:",
        "- an option of the command, such as `--port 8080`;\n"
        "- an environment variable, such as `WAYPOST_PORT=8080`; an empty one is unset;\n"
        f"- for a secret, the file that a variable names: {', '.join(file_names)}; the line break at its end does not "
        "count, and variable and file together are an error;\n"
        f"- a TOML file with the names in small letters, such as `port = 8080`: the one of `--config` or "
        f'`{CONFIG_VARIABLE}`, otherwise `{CONFIG_FILE}` in the working folder; `secret_key_file = "PATH"` names a file '
        "there too;\n"
        "- the default.",
        "An unknown name that begins with `WAYPOST_`, or in the TOML file, ends the command with the most similar name. "
        "`waypost config` shows each setting, its value and its source, and of a secret only that it is set.",
        table(("Variable", "Default", "Meaning"), rows),
        "## Other variables",
        table(("Variable", "Read by"), others),
    )


def errors_page() -> str:
    """Return the page of the error codes."""
    rows = [
        (
            f"`{code.value}`",
            row.status,
            f"`{row.text}`" if row.text else "names the field, the rule and what would be accepted",
            row.source,
        )
        for code, row in ERRORS.items()
    ]
    return page(
        "Errors",
        'Every error response is `{"status":"error","message":"…"}`. If the specification documents a text, that text '
        "is the whole `message`, and the header `Waypost-Reason` has the explanation. The admin API has one more header, "
        "`Waypost-Error`: JSON with `field`, `rule` (the error code) and `accepted`.",
        table(("Error code", "Status", "`message`", "Source"), rows),
    )


def error_texts_page() -> str:
    """Return the page of the error texts, each with an example."""
    parts = [
        "Each error text once, with a request or a value that causes it. The text names the field, what is wrong, and what "
        "is accepted. [Errors](errors.md) lists the error codes with their status. `{…}` stands for a value of the request.",
        "## Partner API, messaging API and admin API",
    ]
    texts = case_texts()
    for code, shown in texts.items():
        parts += [
            f"### {code.value} ({ERRORS[code].status})",
            table(("Text", "Request", "Cause"), map(_as_code, shown)),
        ]
    return page(
        "Error texts",
        *parts,
        "## Control API",
        "Status 400 for a member that is not of its type: `error` has the text, and `accepted` the accepted values.",
        table(("Text", "Cause", "Accepted"), map(_as_code, control_texts())),
        "## Settings",
        table(("Text", "Cause"), map(_as_code, setting_texts())),
    )


def _as_code(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as code of Markdown, in which nothing is markup."""
    return tuple(f"`` {text} ``" if "`" in text else f"`{text}`" for text in texts)


def admin_page() -> str:
    """Return the page of the admin API."""
    operations = [
        (row.method, f"`{row.path.replace(':path', '')}`", _members(row), (row.function.__doc__ or "").split("\n")[0])
        for row in ADMIN_ROUTES
    ]
    meanings = [
        (f"`{row.method} {row.path.replace(':path', '')}`", f"`{name}`", meaning)
        for row in ADMIN_ROUTES
        for name, meaning in field_meanings(row.request_type).items()
    ]
    return page(
        "Admin API",
        "The API for administrators; the commands use it too. It accepts JSON with the admin token as `Authorization: "
        "Bearer …`, for a loopback or known host (decision 0081). `?` marks optional members. GET and DELETE read them "
        "from the query, all other methods from the body. [Errors](errors.md) name the field in a header.",
        table(("Method", "Path", "Request", "Effect"), operations),
        "## Fields",
        table(("Operation", "Field", "Meaning"), meanings),
        "## Responses",
        "`?` marks members that a response may lack, `[…]` a list, and `{…: }` members by any name.",
        table(
            ("Operation", "Response"),
            [
                (f"`{row.method} {row.path.replace(':path', '')}`", f"`{shape_of(row.response_type)}`")
                for row in ADMIN_ROUTES
            ],
        ),
    )


def shape_of(type_: Any) -> str:
    """Return the members of a response's type, those of inner objects too; only the name of a member that is a value."""
    arguments: tuple[Any, ...] = get_args(type_)
    if get_origin(type_) is dict:
        return f"{{…: {shape_of(arguments[1])}}}" if shape_of(arguments[1]) else "{…}"
    if get_origin(type_) in (list, tuple):
        return f"[{shape_of(arguments[0]) or '…'}]"
    if arguments and get_origin(type_) is not Literal:  # a union, of which one option is an object at most
        return next((shape for shape in map(shape_of, arguments) if shape), "")
    if not (msgspec.inspect.is_struct_type(type_) or is_dataclass(type_)):
        return ""
    members = [
        f"{name}{'?' if UnsetType in get_args(hint) else ''}{f': {inner}' if (inner := shape_of(hint)) else ''}"
        for name, hint in get_type_hints(type_).items()
    ]
    return f"{{{', '.join(members)}}}"


def _members(row: AdminRoute) -> str:
    """Return the fields of a request as the text of a table cell."""
    if row.request_type == AnyFields:
        return "`{kind?, base_url?, …}`: further fields are the operator adapter's"
    if row.request_type is None or not field_meanings(row.request_type):
        return "nothing"
    names = [one.name + ("" if one.required else "?") for one in fields(cast("type[msgspec.Struct]", row.request_type))]
    return f"`{{{', '.join(names)}}}`"


def rates_page() -> str:
    """Return the page of the rate limits."""
    rows = [
        (f"`{name}`", rate.at_most, f"{rate.within_ms // 1000} s", rate.per, rate.source)
        for name, rate in RATES.items()
    ]
    return page(
        "Rates",
        "Each row is a sliding window, one for each value of the column Per. A request above the limit gets 429 with "
        "`Retry-After`. Requests that get an error do not count. `WAYPOST_RATES=false`, or `waypost dev --no-rates`, "
        "disables all rates, and those of apps; failed logins stay limited.",
        "`WAYPOST_RATE_LIMITS=templates=20/60s,download=100/1h` sets rows for all apps; in a TOML file it is a table "
        '`[rate_limits]` with members such as `templates = "20/60s"`. A period has the unit s, m or h. These rows can '
        f"be set: {', '.join(f'`{name}`' for name in SETTABLE_RATES)}. `waypost serve` prints at its start whether it "
        "applies the documented rates. `/docs` and `/openapi.json` name the rates of the service, with the documented one "
        "where a setting changes it; an error names the one that applied.",
        "`waypost app rates APP_ID templates=20/60s` gives one app rates of its own, instead of the service's, without a "
        "restart; without rates it shows all rows, and `--reset` removes its own. The same by the "
        "[admin API](admin.md), `PUT /admin/apps/{app_id}/rates`, and by "
        "[a set-up file](../how-to/set-up-from-a-file.md). In the console, the settings page of an app shows each rate and "
        "where it comes from: documented, a setting, or the app; an administrator can change and reset it there. What an app has sent before still counts. Rates per partner "
        f"are not among them: {', '.join(f'`{name}`' for name in SETTABLE_RATES if name not in APP_RATES)}.",
        table(("Rate", "At most", "Within", "Per", "Source"), rows),
    )


def rules_page() -> str:
    """Return the page of the validation rules."""
    return page(
        "Template rules",
        "The error at creation is the field, the position within `buttons` and `cards`, and the text below. Rules are "
        "checked from the top, and the first one that the draft breaks is reported; a rule can rely on those above it. "
        "`POST /partner/app/{app_id}/templates/check` accepts the same form and stores nothing. It returns every rule "
        "that the draft breaks, with a fix hint (`remedy`) and who rejects the draft (`refused_by`): the `api` at "
        "creation, or the operator's `review`.",
        "## Rules of the API",
        "A draft that breaks one of these rules always gets 400.",
        _rules(SPEC_RULES),
        "## Rules of the operator",
        "A draft that breaks one of these rules gets 400 if `WAYPOST_STRICT` is set. Otherwise it is accepted as PENDING, "
        "and the operator's review rejects it: the template becomes REJECTED, with the operator's text as `reason`.",
        _rules(OPERATOR_RULES),
    )


def _rules(rules: tuple[TemplateRule, ...]) -> str:
    rows = [
        (f"`{rule.id}`", f"`{rule.field}`", rule.requirement, rule.fix_hint, _only(rule.hosting), rule.source)
        for rule in rules
    ]
    return table(("Rule", "Field", "Text", "Fix hint", "Only", "Source"), rows)


def _only(hosting: Hosting | None) -> str:
    return f"{hosting.value.replace('_', '-')} apps" if hosting else "-"


def routes_page() -> str:
    """Return the page of the partner and messaging APIs."""
    rows = [
        (
            row.method,
            f"`{row.path}`",
            row.credential,
            f"`{row.rate}`",
            ", ".join(f"`{field.name}`" for field in row.fields) or "nothing",
            ", ".join(map(str, row.statuses)),
            row.source,
        )
        for row in ROUTES
    ]
    return page(
        "Routes",
        "The routes of the partner API and the messaging API. In addition to the statuses listed, any route may return 413 "
        "for a body over 1 MiB, and 500 with the documented text. Every response of `/sm/api/…`, the older path of the "
        "messaging API, has the header `Deprecation` ([0065](../decisions/compatibility.md#0065-older-and-withdrawn-calls-are-served-with-the-effect-that-they-can-have)).",
        table(("Method", "Path", "Credential", "Rate", "Form", "Statuses", "Source"), rows),
    )


def states_page() -> str:
    """Return the page of the states and their transitions."""
    parts = [
        "## Messages",
        table(
            ("From", "To"),
            [(f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to))) for one, to in MESSAGE_TRANSITIONS.items()],
        ),
        "A message that failed because its outcome was not known (code 4002) can still become `sent`, `delivered`, "
        "`read` or `deleted`, if a later status of the operator says so.",
        "## Templates",
        table(
            ("From", "To"),
            [(f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to))) for one, to in TEMPLATE_TRANSITIONS.items()],
        ),
        "The status decides what can be done with a template. The category of an approved or flagged one cannot be edited.",
        table(
            ("Status", "Can be sent", "Can be edited", "Can be deleted"),
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
        "The operator's names of a status, and ours:",
        table(("Operator", "Ours"), [(f"`{theirs}`", f"`{ours}`") for theirs, ours in OPERATOR_STATUSES.items()]),
        "The operator's names of a quality, and ours:",
        table(("Operator", "Ours"), [(f"`{theirs}`", f"`{ours}`") for theirs, ours in QUALITIES.items()]),
        "[Operator codes](operator-codes.md) lists which errors of the operator are final, and which are retried.",
    ]
    return page("States", "The states of messages and templates, and the transitions between them.", *parts)


def operator_codes_page() -> str:
    """Return the page of the operator's error codes and of the retry schedules."""
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
        "The effect of each error code of the operator on a submission. The code in the response decides, never the "
        "HTTP status. A `failed` callback has the operator's own code, unless only the administrator can fix the cause.",
        "A code that is not listed is retried if the operator marks it as transient (`is_transient`). Otherwise the "
        "message becomes uncertain if the status is 5xx, and fails if it is not.",
        "A failed status is always final: the operator had accepted the message. The partner decides whether to send it "
        "again; after 131049, wait at least 24 hours.",
        table(("Code", "Meaning", "Reported in", "Effect", "Paused", "Code in the callback"), rows),
        "## Retry schedules",
        "Each delay varies at random by up to a fifth. A longer delay in `Retry-After` is used instead, up to an hour. "
        "If the source, the business account or the operator account is paused, all its submissions wait for the first "
        "delay of the row. While an operator is away, its messages wait and are not attempted: one at a time tests it, at "
        f"most {OPERATOR_PROBE_DELAYS_S[-1]} s after the last, and all continue when it is back (decision 0092). A message that has been retried or delayed for `message_ttl_s` fails with the code in the last "
        "column above.",
        table(
            ("Reason", "Delays in seconds; the last one repeats"),
            [(again, ", ".join(map(str, waits))) for again, waits in OPERATOR_RETRY_SCHEDULES_S.items()],
        ),
        "## Responses without a code",
        table(
            ("Response", "Effect"),
            [
                ("no connection", "retried: the operator has nothing"),
                (" and ".join(map(str, NOT_ACCEPTED_YET_STATUSES)) + " without a code", "retried"),
                (f"4xx without a code, except {REQUEST_TIMEOUT}", f"final, with code {INVALID_RESPONSE_CODE}"),
                (
                    f"an incomplete or late response, an unreadable 200 or 5xx, 3xx, {REQUEST_TIMEOUT}",
                    f"uncertain: never sent again; fails with code {INVALID_RESPONSE_CODE} unless a status arrives",
                ),
            ],
        ),
        "A template or an upload whose outcome is not known is submitted again, because submitting it twice is harmless.",
    )


def _code(row: OperatorErrorRow) -> str:
    if row.last_code is not None:
        return f"{row.code} to {row.last_code}"
    return str(row.code) if row.subcode is None else f"{row.code}, subcode {row.subcode}"


def _then(row: OperatorErrorRow) -> str:
    if row.retry_reason is None:
        return "final"
    if row.retry_reason is RetryReason.ONCE:
        return "one retry, then final"
    return f"retried: {row.retry_reason}" if row.report_mode is not ReportMode.LATER else "final"


def _yes(claim: object) -> str:
    return "yes" if claim else "no"


MODES_WITH_CALLBACKS = {one.mode for one in CALLBACKS}


def callbacks_page() -> str:
    """Return the page of the callback kinds and the modes."""
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
        "Every kind of callback. A subscription gets the kinds of its modes, in its version. A kind without a `type` has "
        "no body in version 2; a kind without a `field` has none in version 3.",
        "[Receive callbacks](../how-to/receive-callbacks.md) shows bodies and a receiver.",
        table(("Mode", "`type`", "`payload.type`", "`field`", "In the value", "When", "Source"), rows),
        "## Fields of the operator",
        "Every documented field of the operator's webhooks, and its callback. A field without a body in version 2 is passed "
        "on unchanged in version 3, with `gs_app_id`, and with `gs_template_id` if it is about one of your templates. A "
        "field that is not in the table is passed on in the same way, under `OTHERS` "
        "([decision 0060](../decisions/events.md#0060-every-field-of-the-operator-is-called-back)).",
        table(
            ("Field", "Version 2", "Version 3", "Mode", "Source"),
            [
                ("`messages`", "see above", "see above", "by its content", "facts 4.4, 6, 7"),
                *(
                    (
                        f"`{one.field}`",
                        f"`{one.type}`, `{one.inner_type}`" if one.type else "nothing",
                        "as received",
                        f"`{one.mode}`",
                        one.source,
                    )
                    for one in CHANGE_KINDS.values()
                ),
            ],
        ),
        "## Modes",
        "The `mode` of a subscription is the sum of the bits of its modes. `ALL` means every mode in version 3, and adds "
        "nothing in version 2.",
        table(
            ("Mode", "Bit", "Also written"),
            [
                (
                    f"`{mode}`",
                    MODE_BITS.get(mode, "none known" if mode in MODES_WITH_CALLBACKS else "none known; no callbacks"),
                    ", ".join(f"`{one}`" for one, of in MODE_ALIASES.items() if of == mode),
                )
                for mode in MODES
            ],
        ),
        "## Versions",
        table(("Version", "Bodies"), CALLBACK_VERSIONS.items()),
    )


def testing_page() -> str:
    """Return the page of the pytest plugin."""
    return page("Testing", *testing_parts(table))


def faults_page() -> str:
    """Return the page of the fault kinds, their triggers and their filters."""
    parts: list[str] = []
    for on, title in ((CALL, "## Faults of calls"), (WEBHOOK, "## Faults of webhooks")):
        rows = [
            (
                f"`{one.name}`",
                one.parameter.accepted,
                "; ".join(f"`{more.name}`: {more.accepted}" for more in one.extra_parameters),
                one.each + (f", `{one.only_call}` only" if one.only_call else ""),
                one.effect,
                one.source,
            )
            for one in FAULTS
            if one.target == on
        ]
        head = ("`what`", "Value", "Optional members", "Counted by", "Effect", "Source")
        parts += [title, table(head, rows)]
    return page(
        "Faults",
        "The faults that the simulator can be armed with. A fault is an object with `on` (`call` or `webhook`), the member of "
        "that name (a name below, or `*`, the default), filters, `when` (the default is always) and `what`. `until_ms` is "
        "the time of the clock at which it ends, `seed` makes its random choices repeatable, and `label` is for people.",
        "[Simulate failures](../how-to/simulate-failures.md) shows how to arm one.",
        *parts,
        "## When",
        table(("`when`", "Value", "Fires"), [(f"`{one.name}`", one.accepted, fires) for one, fires in FAULT_TRIGGERS]),
        "## Filters",
        table(("Member", "Value"), [(f"`{name}`", text) for name, text in FAULT_FILTERS.items()]),
        "## Calls",
        ", ".join(f"`{name}`" for name in CALL_NAMES) + ".",
        "## Webhooks",
        ", ".join(f"`{name}`" for name in WEBHOOKS) + ".",
    )


def control_page() -> str:
    """Return the page of the simulator's control API and its settings."""
    special_requests = {
        ("PUT", "/control/settings"): "any of the [settings](#settings)",
        ("POST", "/control/faults"): "a [fault](faults.md), or `{faults: a list of them, seed?}`",
        ("POST", "/control/media"): f"`{accepted_by(MediaBody)}`; or the file as the body, the rest in the query",
    }
    calls: list[tuple[object, ...]] = []
    for method, path, function in CALLS:
        struct = declared_struct(function)
        accepts = special_requests.get((method, path)) or (f"`{accepted_by(struct)}`" if struct else "nothing")
        calls.append((method, f"`{path}`", accepts, (function.__doc__ or "").partition("\n")[0]))
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
        "State and actions that a client of the operator does not have: the simulator's phones, reviews, clock, faults and "
        "settings. A request with a body has the `Content-Type` `application/json`. A simulator that was started with a "
        "control token requires it as `Authorization: Bearer …`. An error is "
        '`{"error": "…", "field": "…", "rule": "…", "accepted": "…"}`: `error` is one sentence with the other members. '
        "An error about an unknown name may have a `hint` with the most similar name.",
        "## Calls",
        "`?` marks optional members. GET reads them from the query, all other methods from the body.",
        table(("Method", "Path", "Request", "Effect"), calls),
        "## Responses",
        "Of the calls that declare one. `?` marks members that a response may lack, `[…]` a list.",
        table(
            ("Call", "Response"),
            [
                (f"`{method} {path}`", f"`{shape_of(response)}`")
                for method, path, function in CALLS
                if (response := response_struct(function)) is not None
            ],
        ),
        "## Settings",
        "`PUT /control/settings` changes them while the simulator runs; the new values survive a restart.",
        table(("Setting", "Accepted", "Default", "Meaning"), settings),
    )


def _descriptions(type_: Any) -> Iterator[str]:
    return (one.description for one in get_args(type_)[1:] if isinstance(one, Meta) and one.description)


def metrics_page() -> str:
    """Return the page of the metrics, the readiness checks and the trace steps."""
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
        "What a running service reports about itself. [Monitor the service](../how-to/watch-it-run.md) shows how to use it.",
        "## Metrics",
        "`GET /metrics` returns them. Every sample also has the label `process`. Metrics of the store are the same in "
        "every process; the others count what that process has done since its start. The usual `process_…` metrics are "
        "included.",
        table(("Metric", "Kind", "Labels", "Scope", "Meaning"), metrics),
        "## Checks",
        "`GET /readyz` runs each, and returns 503 if one fails.",
        table(("Check", "Passes when"), checks),
        "## Steps",
        "Each step of a message is a log record at level `debug`, or `info` if it failed, and a span. Each has "
        "`message_id`, the fields below if they are known, and `took_ms` if the step takes time.",
        table(("Record", "Logger", "Fields"), steps),
    )


def commands_page() -> str:
    """Return the page of the commands with their help texts."""
    from waypost.cli.main import app  # it reads the table of operations, which may just have been written

    parts = [
        f"## `{name}`\n\n{command.help or ''}\n\n```text\n{_usage(name, command)}\n```"
        for name, command in _commands("waypost", typer.main.get_command(app))
    ]
    return page("Commands", "Each command also has `--help`.", *parts)


def compatibility_page() -> str:
    """Return the page of the specification's statements and their tests."""
    tests = holders()
    parts: list[str] = []
    rows: list[tuple[str, ...]] = []
    everything = statements()
    for at, one in enumerate(everything):
        if at == 0 or everything[at - 1].section != one.section:
            parts.append(f"## {one.section}")
            rows = []
        does = f" *{one.does}*" if one.does else ""
        rows.append((f"{one.says}{does}", one.verdict, _test_links(tests.get(one.key, []))))
        if at + 1 == len(everything) or everything[at + 1].section != one.section:
            parts.append(table(("Statement", "Verdict", "Tests"), rows))
    counts = Counter(one.verdict for one in everything)
    cases = sum("#" in name for one in everything for name in tests.get(one.key, []))
    return page(
        "Compatibility",
        f"The specification has {len(everything)} statements. Waypost does what {counts['kept']} of them say (`kept`), and "
        f"something else for {counts['differs']} (`differs`). {counts['decided']} leave something open, and Waypost "
        f"decides (`decided`). Text in italics says what Waypost does. The wire cases in `tests/wire/cases` check "
        f"statements {cases} times.",
        *parts,
    )


def differences_page() -> str:
    """Return the page of what a client of the partner API finds different, from the same rows as the pages with tests."""
    rows = coverage()

    def noted(*, state: str, is_event: bool) -> list[CoverageRow]:
        return [row for row in rows if row.note and (row.state, row.is_event) == (state, is_event)]

    return page(
        "Differences",
        "What a client of the partner API or the messaging API finds different with Waypost. Everything else is as the "
        "API's documents say; [API coverage](api-coverage.md) and [compatibility](compatibility.md) list all of it with "
        "its tests. `A` stands for `/partner/app/{appId}`.",
        "## Calls that return an error",
        table(("Call", "Why"), ((row.subject, row.note) for row in noted(state="declined", is_event=False))),
        "## Calls that differ",
        table(("Call", "What differs"), ((row.subject, row.note) for row in noted(state="served", is_event=False))),
        "## Callbacks that differ",
        table(("Callback", "What differs"), ((row.subject, row.note) for row in noted(state="served", is_event=True))),
        "## Rules that differ",
        table(("Documented", "Waypost"), ((one.says, one.does) for one in statements() if one.verdict == "differs")),
    )


def coverage_page() -> str:
    """Return the page of the documented operations and events and their tests."""
    return page(
        "API coverage",
        "Every operation and event of the public partner API that its documents describe, and what Waypost does with it. "
        "Where the documents and the [specification](compatibility.md) differ, the specification decides. Tests are made "
        "from the documented requests, responses and events. `A` stands for `/partner/app/{appId}`.",
        *coverage_parts(table, _test_links),
    )


def promises_page() -> str:
    """Return the page of the promises about packaging and operations, and their tests."""
    return page(
        "Promises and their tests",
        "What pages promise about packaging and operations, and the tests that hold it. A change of such a page comes "
        "with its row in `docs/sources/promises.toml` and a test. Tests in `tests/deployment` and `tests/operations/in_prometheus.py` "
        "are run by `make` targets of their own.",
        *promise_parts(table, _test_links),
        source="`docs/sources/promises.toml`",
    )


def decisions_page() -> str:
    """Return the index of the decisions, by number and by subject."""
    found = decisions()
    pages = {decision.page: decision.subject for decision in found.values()}
    rows = [
        (f"[{number}]({found[number].link})", found[number].title, found[number].subject) for number in sorted(found)
    ]
    return page(
        "Decisions",
        "The choices that a reader would question, above all where the specification is silent or contradicts itself: a page "
        "for each subject, a section for each decision. Code and pages cite a section by its number.",
        "A section has three to eight sentences: the choice and its reason, what was rejected (`Rejected:`), and how we would "
        "notice that it was wrong (`Wrong if:`). A new one gets the next free number, on the page of its subject; a changed "
        "choice is written over the old one. One that is replaced stays, and says by which. `make reference` writes this "
        "page.",
        "Subjects: " + ", ".join(f"[{subject}]({name})" for name, subject in pages.items()) + ".",
        table(("Number", "Decision", "Subject"), rows),
        source="the pages of this folder",
    )


def specification_page() -> str:
    """Return the page of the statements, by the names under which code and wire cases cite them."""
    parts: list[str] = []
    for level, heading, part in grouped():
        also = ", ".join(f'"{name}"' for name in ALIASES.get(heading, ()))
        parts += [f"{'#' * level} {heading}", *([f"Also cited as {also}."] if also else [])]
        parts.append(table(("Statement", "Waypost"), rows(part)))
    return page(
        "Specification",
        "The statements of the specification, in our words, cited as `spec, Limits`. "
        "[Compatibility](../reference/compatibility.md) lists the tests of each.",
        *parts,
        source="`statements.toml`",
    )


def source_page(name: str) -> str:
    """Return a page of facts."""
    return page(*source_parts(name, table), source=f"`{name}.toml`")


def _test_links(names: list[str]) -> str:
    """Return links to at most three tests, and the number of the others."""
    parts = [name.partition("#" if "#" in name else "::") for name in names[:3]]
    shown = [f"[{case or Path(file).name}](../../{file})" for file, _, case in parts]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


# fmt: off
PAGES: dict[str, Callable[[], str]] = {
    "settings.md":       settings_page,
    "admin.md":          admin_page,
    "errors.md":         errors_page,
    "error-texts.md":    error_texts_page,
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
    "api-coverage.md":   coverage_page,
    "differences.md":    differences_page,
}
# fmt: on
PAGES_ELSEWHERE: dict[Path, Callable[[], str]] = {
    PROMISES: promises_page,
    SPECIFICATION: specification_page,
    INDEX: decisions_page,
    **{SPECIFICATION.with_name(f"{name}.md"): partial(source_page, name) for name in NAMES},
}


def page(title: str, first: str, *parts: str, source: str = "the tables in the code") -> str:
    """Return the text of one page, which says from what it is generated."""
    return "\n\n".join((f"# {title}", GENERATED.format(source), *map(wrapped, (first, *parts)))) + "\n"


def wrapped(part: str) -> str:
    """Return prose and items of lists in lines of at most 118 characters; tables, headings and code unchanged."""
    if part.startswith(("|", "#", "```")):
        return part
    fill = partial(textwrap.fill, width=118, break_long_words=False, break_on_hyphens=False)
    if part.startswith("- "):
        return "\n".join(fill(item, subsequent_indent="  ") for item in part.splitlines())
    return fill(part)


def _default(value: object) -> str:
    if value is None:
        return "not set"
    if value == ():
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _commands(name: str, command: Any) -> Iterable[tuple[str, Any]]:
    inner: dict[str, Any] | None = getattr(command, "commands", None)
    if inner is None or command.invoke_without_command:
        yield name, command
    for subcommand, one in (inner or {}).items():
        yield from _commands(f"{name} {subcommand}", one)


def _usage(name: str, command: Any) -> str:
    usage = [name]
    for parameter in command.params:
        option = max(parameter.opts, key=len)
        if parameter.param_type_name == "argument":
            usage.append(str(parameter.name).upper())
        elif option != "--help":
            usage.append(f"[{option}]" if not parameter.required else option)
    return " ".join(usage)


def main() -> int:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    TABLE.write_text(operation_table(), encoding="utf-8")
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
    for path, make in PAGES_ELSEWHERE.items():
        path.write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
