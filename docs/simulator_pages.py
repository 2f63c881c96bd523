"""Reference pages of the simulator: the control API, the Graph API, and faults."""

import json
from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Meta
from msgspec.structs import fields

from docs.api_pages import shape_of
from docs.markdown import default_text, page, table
from waypost.base.invalid_values import accepted_by, accepted_values
from waypost.simulator.apis.control_operations import declared_struct, response_type
from waypost.simulator.faults.fault_kinds import (
    CALL,
    ENDPOINT,
    ENDPOINT_REQUESTS,
    FAULT_FILTERS,
    FAULT_TRIGGERS,
    ONBOARDING,
    WEBHOOK,
    WEBHOOKS,
)
from waypost.simulator.faults.fault_kinds import FAULT_KINDS as FAULTS
from waypost.simulator.media.control import MediaBody
from waypost.simulator.serving.control_api import CALLS
from waypost.simulator.serving.graph_routes import NODE_IDS, OPERATIONS
from waypost.simulator.state.embedded_signup import BREAKS, SCREENS, SESSION_OPENED, WINDOW_ERRORS
from waypost.simulator.state.graph_operations import GraphOperation, call_names
from waypost.simulator.state.settings import ChangeableSettings


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
            default_text(one.default).replace("not set", "null"),
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
        "Of the calls whose response is JSON. `?` marks members that a response may lack, `[…]` a list.",
        table(
            ("Call", "Response"),
            [
                (f"`{method} {path}`", f"`{shape_of(response)}`")
                for method, path, function in CALLS
                if (response := response_type(function)) is not None
            ],
        ),
        "## Settings",
        "`PUT /control/settings` changes them while the simulator runs; the new values survive a restart.",
        table(("Setting", "Accepted", "Default", "Meaning"), settings),
    )


def _descriptions(type_: Any) -> Iterator[str]:
    return (one.description for one in get_args(type_)[1:] if isinstance(one, Meta) and one.description)


def graph_page() -> str:
    """Return the page of the simulator's Graph API, with a sample of each response that only reads."""
    operations = [
        (
            row.method,
            f"`{_graph_path(row)}`",
            f"`{row.name}`",
            "no token"
            if row.is_open
            else f"`{row.permission}`"
            if row.permission and isinstance(row.node, type)
            else "any",
            (row.function.__doc__ or "").partition("\n")[0].partition(" Source: ")[0],
        )
        for row in sorted(OPERATIONS, key=_graph_path)
    ]
    samples = [
        part
        for row in OPERATIONS
        if row.sample is not None
        for part in (
            f"### GET {_graph_path(row)}",
            f"```json\n{json.dumps(row.sample, indent=2, ensure_ascii=False)}\n```",
        )
    ]
    return page(
        "Graph API of the simulator",
        "The operations of the operator's Graph API that the simulator has, below any version, such as `/v25.0/`. The token "
        "is `Authorization: Bearer …`; an object of another account looks like an unknown one. [Faults](faults.md) of "
        "calls are armed by the operation's name.",
        "## Operations",
        table(("Method", "Path", "Name", "Permission", "Effect"), operations),
        "## Samples",
        "Responses to requests that only read, without `fields`. A test compares them with those of a running simulator.",
        *samples,
    )


def _graph_path(row: GraphOperation) -> str:
    begin = row.node if isinstance(row.node, str) else f"{{{NODE_IDS[row.node]}}}"
    return f"/{begin}/{row.edge.replace('{}', '{name}')}".rstrip("/")


def faults_page() -> str:
    """Return the page of the fault kinds, their triggers and their filters."""
    parts: list[str] = []
    titles = ((CALL, "## Faults of calls"), (WEBHOOK, "## Faults of webhooks"))
    further = (
        (ONBOARDING, "## Faults of embedded signup"),
        (ENDPOINT, "## Faults between handsets and endpoints of Flows"),
    )
    for on, title in (*titles, *further):
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
        "The faults that the simulator can be armed with. A fault is an object with `on` (`call`, `webhook`, "
        "`onboarding` or `endpoint`), the member of "
        "that name (a name below, or `*`, the default), filters, `when` (the default is always) and `what`. `until_ms` is "
        "the time of the clock at which it ends, `seed` makes its random choices repeatable, and `label` is for people.",
        "[Simulate failures](../how-to/simulate-failures.md) shows how to arm one.",
        *parts,
        "## When",
        table(("`when`", "Value", "Fires"), [(f"`{one.name}`", one.accepted, fires) for one, fires in FAULT_TRIGGERS]),
        "## Filters",
        table(("Member", "Value"), [(f"`{name}`", text) for name, text in FAULT_FILTERS.items()]),
        "## Calls",
        ", ".join(f"`{name}`" for name in call_names()) + ".",
        "## Webhooks",
        ", ".join(f"`{name}`" for name in WEBHOOKS) + ".",
        "## Requests to endpoints of Flows",
        ", ".join(f"`{name}`" for name in ENDPOINT_REQUESTS) + ".",
        "## Embedded signup",
        f"`{SESSION_OPENED}` and the screens of the window, each with the errors that it can show.",
        table(
            ("Name", "`current_step`", "Input", "Errors"),
            [
                (
                    f"`{name}`",
                    f"`{screen.current_step}`" if screen.current_step else "",
                    screen.inputs,
                    ", ".join(str(code) for code, row in WINDOW_ERRORS.items() if name in row.screens),
                )
                for name, screen in SCREENS.items()
            ],
        ),
        table(("`window_error`", "Text"), [(str(code), row.text) for code, row in WINDOW_ERRORS.items()]),
        table(("`break`", "Effect"), [(f"`{name}`", row.effect) for name, row in BREAKS.items()]),
    )
