"""Runs `waypost intercept`: finds or starts the sandbox, checks that it is one, and runs the program."""

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import urlsplit

from waypost.base.http.hosts import hostname_of, is_web_url
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.setting_sources import SettingsWithSources
from waypost.client.api_client import ApiClient, ApiResponseError, ApiUnreachable, HttpTransport
from waypost.client.dev_variables import ENV_FILE, dev_variables
from waypost.config import DEMO_ADMIN_TOKEN, PRODUCTION_SETTINGS
from waypost.interception.child import InterceptedChild, NamesUnavailable, SignalReceiver, exit_as
from waypost.interception.hosts import HOSTS, SandboxSide
from waypost.interception.interception import Interception, InterceptionMethod

SandboxUrls = Mapping[SandboxSide, str]

_DEMO_ACCOUNT: Final = "demo"
_OPERATOR_DOMAINS: Final = ("facebook.com", "fbsbx.com")
_CHECK_TIMEOUT_S: Final = 5
_HOW: Final = {
    InterceptionMethod.NAMES: "by a name map that only this program has, whatever it connects with",
    InterceptionMethod.PROXY: "by the proxy and the authority that its environment names",
}


@dataclass(frozen=True, slots=True)
class InterceptOptions:
    """The options of the command."""

    command: list[str]  # empty: the variables are printed instead
    url: str | None
    graph_url: str | None
    env_file: Path
    by: str
    block_others: bool
    until_stdin_ends: bool


_VALUE_OPTIONS: Final = ("--url", "--graph-url", "--env-file", "--by")
_FLAGS: Final = ("--block-others", "--print-variables", "--until-stdin-ends")


def read_plain_arguments(arguments: Sequence[str]) -> InterceptOptions | None:
    """Return the options of a valid command line in the usual notation; None if the library of commands has to read it.

    The library takes longer to load than all that a start needs, and it has the help and the errors.
    """
    remaining, values, flags = list(arguments), dict[str, str](), set[str]()
    while remaining and remaining[0] != "--":
        option, equals, value = remaining.pop(0).partition("=")
        if option in _FLAGS and not equals:
            flags.add(option)
        elif option in _VALUE_OPTIONS and (equals or remaining):
            values[option] = value if equals else remaining.pop(0)
        else:
            return None
    options = InterceptOptions(
        remaining[1:],
        values.get("--url"),
        values.get("--graph-url"),
        Path(values["--env-file"]) if "--env-file" in values else ENV_FILE,
        values.get("--by", InterceptionMethod.AUTO),
        block_others="--block-others" in flags,
        until_stdin_ends="--until-stdin-ends" in flags,
    )
    return options if find_wrong_usage(options, print_variables="--print-variables" in flags) is None else None


def find_wrong_usage(options: InterceptOptions, *, print_variables: bool) -> str | None:
    """Return what is wrong with a combination of options; None if nothing is."""
    if options.by not in tuple(InterceptionMethod):
        return f"--by must be one of {', '.join(InterceptionMethod)}; {options.by!r} is not"
    if bool(options.command) == print_variables:
        return "name a program after --, or give --print-variables; one of them"
    if print_variables and options.by == InterceptionMethod.NAMES:
        return "--by names needs a program; with --print-variables the hosts are reached by proxy"
    if options.until_stdin_ends and not print_variables:
        return "--until-stdin-ends is for --print-variables: a program has the standard input"
    if options.graph_url is not None and options.url is None:
        return "--graph-url is the simulator of --url: give both"
    return None


class NotASandbox(Exception):
    """The service is none of `waypost dev`, or does not respond; the text has a fix hint."""


def run_intercepted(options: InterceptOptions, given: SettingsWithSources) -> int:
    """Run the program, or print the variables for one; return the exit code."""
    _check_not_production(given)
    urls = _running_urls(options)
    signals = SignalReceiver(lambda number, _is_from_process: os._exit(128 + number))  # until something is open
    statuses: list[int] = []
    if urls is not None:
        try:
            asyncio.run(_run(options, _running_sandbox(urls, options, given), signals, statuses))
        except NotASandbox as error:
            fail(str(error))
    else:
        from waypost.assembly.dev.files import EnvFileInUse
        from waypost.cli.serving import run_until_stopped
        from waypost.simulator import STARTUP_ERRORS

        sandbox = _new_sandbox(options, given)
        run_until_stopped(_run(options, sandbox, signals, statuses), *STARTUP_ERRORS, EnvFileInUse)
    return exit_as(statuses[0])


def _check_not_production(given: SettingsWithSources) -> None:
    """Exit if settings or store are those of a service with real traffic: it is not what a sandbox runs beside."""
    hint = "run it in a terminal and a folder without the settings of that service"
    for name, why in PRODUCTION_SETTINGS.items():
        if getattr(given.settings, name) is not None:
            source = given.sources.get(name, name)
            fail(f"intercept does not run beside production: {source} is set, and {name} {why}; {hint}")
    path = given.settings.store_path
    if not path.is_file():
        return
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            kinds = connection.execute("SELECT value FROM store_properties WHERE name = 'kind'").fetchall()
    except sqlite3.Error as error:
        fail(f"intercept does not run beside production: {path} cannot be read as a sandbox's store ({error}); {hint}")
    if kinds != [("demo",)]:
        fail(f"intercept does not run beside production: {path} is the store of `waypost serve`; {hint}")


def _running_urls(options: InterceptOptions) -> SandboxUrls | None:
    """Return the URLs of the sandbox that runs already; None if one has to be started."""
    variables = dev_variables(options.env_file)
    known = {side: variables.get(name, "") for side, name in _VARIABLES.items()}
    if options.url is None:
        return known if all(known.values()) and _listens(known[SandboxSide.SERVICE]) else None
    url, graph_url = _base_url(options.url, "--url"), options.graph_url
    if graph_url is None:
        if known[SandboxSide.SERVICE] != url:
            fail(f"--graph-url is missing: {options.env_file} has none for --url {url}", code=EXIT_USAGE)
        graph_url = known[SandboxSide.SIMULATOR]
    return {SandboxSide.SERVICE: url, SandboxSide.SIMULATOR: _base_url(graph_url, "--graph-url")}


_VARIABLES: Final = {SandboxSide.SERVICE: "API_URL", SandboxSide.SIMULATOR: "GRAPH_URL"}


def _base_url(text: str, option: str) -> str:
    url = text.rstrip("/")
    if not is_web_url(url) or urlsplit(url).path or urlsplit(url).query:
        fail(f"{option} must be a URL without a path, such as http://127.0.0.1:8080; {text!r} is not", code=EXIT_USAGE)
    return url


def _listens(url: str) -> bool:
    """True if something listens at a URL: the file of a killed `waypost dev` stays."""
    import socket

    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_CHECK_TIMEOUT_S).close()
    except OSError:
        return False
    return True


@contextlib.asynccontextmanager
async def _running_sandbox(
    urls: SandboxUrls, options: InterceptOptions, given: SettingsWithSources
) -> AsyncGenerator[SandboxUrls]:
    """Yield the URLs of a sandbox that runs already.

    Raises:
        NotASandbox: one of them is no part of a sandbox, or its service uses the real operator.
    """
    service, simulator = urls[SandboxSide.SERVICE], urls[SandboxSide.SIMULATOR]
    file_token = dev_variables(options.env_file).get("ADMIN_TOKEN")
    token = given.settings.admin_token or file_token or DEMO_ADMIN_TOKEN
    client = ApiClient(HttpTransport(service, timeout_s=_CHECK_TIMEOUT_S), {"Authorization": f"Bearer {token}"})
    control = ApiClient(HttpTransport(simulator, timeout_s=_CHECK_TIMEOUT_S), {})
    try:
        accounts = (await client.call("GET /admin/operator-accounts"))["operator_accounts"]
    except (ApiUnreachable, ApiResponseError) as error:
        raise NotASandbox(f"{service} is no service of `waypost dev` ({error}); start one, or check --url") from error
    try:
        await control.call("GET /control/clock")
    except (ApiUnreachable, ApiResponseError) as error:
        raise NotASandbox(f"{simulator} is no simulator of `waypost dev` ({error}); check --graph-url") from error
    if all(account["id"] != _DEMO_ACCOUNT for account in accounts):
        raise NotASandbox(f"{service} has a store that is not the sandbox's; start `waypost dev`, or check --url")
    for account in accounts:
        host = hostname_of(account["base_url"])
        if any(host == domain or host.endswith(f".{domain}") for domain in _OPERATOR_DOMAINS):
            raise NotASandbox(
                f"the operator account {account['id']} of {service} is at the real operator ({host}), so a message "
                "might be sent to a person; use a `waypost dev` without it"
            )
    yield urls


@contextlib.asynccontextmanager
async def _new_sandbox(options: InterceptOptions, given: SettingsWithSources) -> AsyncGenerator[SandboxUrls]:
    """Start a `waypost dev` on free ports, with a temporary folder, for as long as the program runs."""
    from waypost.assembly.dev.dev import DevOptions, DevServer
    from waypost.base.clock import SystemClock
    from waypost.base.telemetry.logs import set_up_logs

    set_up_logs(SystemClock(), as_json=given.settings.log_format == "json", level="warning")
    settings = replace(given.settings, host="127.0.0.1", port=0)
    dev = DevServer(DevOptions(settings, simulator_port=0, memory=True, env_file=options.env_file))
    try:
        running = await dev.open()
        yield {SandboxSide.SERVICE: running.base_url, SandboxSide.SIMULATOR: running.graph_url}
    finally:
        await dev.close()


async def _run(
    options: InterceptOptions,
    sandbox: contextlib.AbstractAsyncContextManager[SandboxUrls],
    signals: SignalReceiver,
    statuses: list[int],
) -> None:
    """Open sandbox and interception, run the program, and append its status."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    stopped_by: list[int] = []

    def stop(number: int, _is_from_process: bool) -> None:
        stopped_by.append(number)
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    signals.deliver = stop
    child = InterceptedChild(options.command, signals.previous_mask) if options.command else None  # it starts beside us
    try:
        async with sandbox as urls:
            interception = Interception(urls, blocks_others=options.block_others)
            try:
                await interception.open(os.environ)
                if child is not None:
                    statuses.append(await _run_program(options, interception, child, urls, signals))
                else:
                    await _print_variables(interception, until_stdin_ends=options.until_stdin_ends)
                    statuses.append(0)
            finally:
                await interception.close()
    except asyncio.CancelledError:
        if not stopped_by:
            raise
        statuses.append(128 + stopped_by[0] if options.command else 0)
    finally:
        if child is not None:
            child.kill()


async def _run_program(
    options: InterceptOptions,
    interception: Interception,
    waiting: InterceptedChild,
    urls: SandboxUrls,
    signals: SignalReceiver,
) -> int:
    try:
        child, way = interception.start(waiting, InterceptionMethod(options.by))
    except NamesUnavailable as error:
        fail(f"--by names: this machine does not allow a name map ({error}); --by proxy needs none")
    signals.deliver = child.pass_signal
    _write_lines(sys.stderr, first_lines(interception, way, urls, block_others=options.block_others))
    status = await child.wait()
    _write_lines(sys.stderr, last_lines(interception))
    return status


async def _print_variables(interception: Interception, *, until_stdin_ends: bool) -> None:
    """Print the variables for a program that somebody else starts, and wait."""
    _write_lines(sys.stdout, [*(f"{name}={value}" for name, value in interception.proxy_variables().items()), ""])
    ended = asyncio.Event()
    if until_stdin_ends:
        from waypost.assembly.http.servers import watch_end_of_input  # while the program starts

        watch_end_of_input(ended)
    await ended.wait()


def _write_lines(stream: TextIO, lines: Iterable[str]) -> None:
    """Write lines at once."""
    stream.write("".join(f"{line}\n" for line in lines))
    stream.flush()


def first_lines(
    interception: Interception, way: InterceptionMethod, urls: SandboxUrls, *, block_others: bool
) -> list[str]:
    """Return what is printed when the program starts."""
    lines = [f"waypost intercept: these hosts lead here, {_HOW[way]}"]
    if interception.names_unavailable:
        lines[0] += f" (no name map: {interception.names_unavailable})"
    for side, url in urls.items():
        names = ", ".join(host.name for host in HOSTS if host.side is side)
        lines.append(f"  {url}  {names}")
    lines.append(f"  other hosts are {'blocked' if block_others else 'passed through, unread'}")
    if not interception.has_system_authorities:
        lines.append("  no file of this machine's authorities was found: programs cannot verify other hosts")
    return lines


def last_lines(interception: Interception) -> list[str]:
    """Return what is printed when the program has ended."""
    outcomes = interception.outcomes
    lines = [f"waypost intercept: requests by host: {_format_counts(interception.requests) or 'none'}"]
    if outcomes.passed:
        lines.append(f"  passed through: {_format_counts(outcomes.passed)}")
    if outcomes.blocked:
        lines.append(f"  blocked: {_format_counts(outcomes.blocked)}")
    if outcomes.turned_away:
        lines.append(f"  connections beyond the limit, closed: {outcomes.turned_away}")
    return lines


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
