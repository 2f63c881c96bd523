"""Reference pages of the running service: settings, metrics, and commands."""

from collections.abc import Iterable
from typing import Any

import typer.main

from docs.markdown import default_text, page, table
from waypost.base.telemetry.tracing import TraceStep
from waypost.cli.setting_sources import CONFIG_FILE, CONFIG_VARIABLE
from waypost.cli.variables import COMMAND_SECRETS, OTHER_VARIABLES
from waypost.config import SECRETS, SETTINGS
from waypost.domain.wait_reasons import WAIT_EXPLANATIONS
from waypost.operations.metrics import METRICS
from waypost.operations.readiness import READINESS_CHECKS


def settings_page() -> str:
    """Return the page of the settings."""
    rows = [
        (f"`WAYPOST_{name.upper()}`", default_text(field.default), field.metadata["meaning"])
        for name, field in SETTINGS.items()
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
    waits = [
        (f"`{reason}`", row.text, row.cause.value, row.ends, "yes" if row.is_problem else "")
        for reason, row in WAIT_EXPLANATIONS.items()
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
        "## Wait reasons",
        "Why a job is not worked now: `waypost trace`, the pages of the console, `waypost doctor` and the admin API use "
        "these words, and `waypost_queue_waiting_groups` these labels. The process that works the job gives the reason; "
        "another one does not know it. `waypost doctor` warns of a problem.",
        table(("Reason", "Waiting, because", "Whose", "Ends with", "Problem"), waits),
        "## Steps",
        "Each step of a message is a log record at level `debug`, or `info` if it failed, and a span. Each has "
        "`message_id`, the fields below if they are known, and `took_ms` if the step takes time.",
        table(("Record", "Logger", "Fields"), steps),
    )


def commands_page() -> str:
    """Return the page of the commands with their help texts."""
    from waypost.cli.command_tree import app  # it reads the table of operations, which may just have been written

    parts = [
        f"## `{name}`\n\n{command.help or ''}\n\n```text\n{_usage(name, command)}\n```"
        for name, command in _commands("waypost", typer.main.get_command(app))
    ]
    return page("Commands", "Each command also has `--help`.", *parts)


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
