"""Reference pages of the partner, messaging and admin APIs: routes, fields, errors, rates and rules."""

from dataclasses import is_dataclass
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
from msgspec import UnsetType
from msgspec.structs import fields

from docs.error_texts import case_texts, control_texts, setting_texts
from docs.markdown import as_code, page, table
from waypost.admin.operation import AdminRoute, AnyFields, field_meanings
from waypost.admin.routes import ROUTES as ADMIN_ROUTES
from waypost.api.routes import ROUTES
from waypost.domain.app import Hosting
from waypost.domain.rates import APP_RATES, RATES, SETTABLE_RATES
from waypost.domain.templates.rules import OPERATOR_RULES, SPEC_RULES, TemplateRule
from waypost.wire.errors import ERRORS


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
    if not (msgspec.inspect.is_struct_type(type_) or is_dataclass(type_) or is_typeddict(type_)):
        return ""
    absent: frozenset[str] = getattr(type_, "__optional_keys__", frozenset())
    members = [
        f"{name}{'?' if name in absent or UnsetType in get_args(hint) else ''}"
        f"{f': {inner}' if (inner := shape_of(hint)) else ''}"
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
        parts += [f"### {code.value} ({ERRORS[code].status})", table(("Text", "Request", "Cause"), map(as_code, shown))]
    return page(
        "Error texts",
        *parts,
        "## Control API",
        "Status 400 for a member that is not of its type: `error` has the text, and `accepted` the accepted values.",
        table(("Text", "Cause", "Accepted"), map(as_code, control_texts())),
        "## Settings",
        table(("Text", "Cause"), map(as_code, setting_texts())),
    )


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
